"""The parts of bench/chaos: building, planning, running and judging. Nothing else uses them."""
