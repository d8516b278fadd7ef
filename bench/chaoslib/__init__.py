"""The parts of bench/chaos: building, planning, running and judging. Only bench/chaos uses them."""
