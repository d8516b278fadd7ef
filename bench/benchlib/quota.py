"""A control group with a quota of processor time, where this user may make one."""

import contextlib
import os
import tempfile
from pathlib import Path

PERIOD_US = 100_000
# Where each version of control groups has processors, and the file that holds the quota.
ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))


@contextlib.contextmanager
def group(processors: float):
    """The group's folder, or None where none can be made; it is removed at the end."""
    folder = None
    for root in ROOTS:
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="dwell-bench-", dir=root))
            try:
                limit(folder, int(processors * PERIOD_US))
                break
            except OSError:
                folder.rmdir()
                folder = None
    try:
        yield folder
    finally:
        if folder is not None:
            folder.rmdir()


def limit(folder: Path, quota_us: int) -> None:
    """Sets the quota of a period."""
    if (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
    else:
        (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")


def joining(folder: Path | None):
    """The step by which a child joins the group before it becomes the program."""
    if folder is None:
        return None
    return lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))


def throttled_ns(folder: Path | None) -> int:
    """For how long its threads have been held back, counted on each processor."""
    if folder is None:
        return 0
    for line in (folder / "cpu.stat").read_text().splitlines():
        name, _, number = line.partition(" ")
        if name in ("throttled_time", "throttled_usec"):
            return int(number) * (1 if name == "throttled_time" else 1000)
    return 0
