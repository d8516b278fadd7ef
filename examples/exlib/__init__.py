"""Code that the examples share. It uses the benchmarks' modules."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
