"""The parts of bench/faults: the faults, the copy of the tree that has them, and what tests say."""
