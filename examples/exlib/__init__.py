"""What the examples share; benchmarks' modules are used where they do the same."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
