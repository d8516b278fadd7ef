"""Tests of the figures of `bench/wall`: `bench/run --check`."""

import contextlib
import io
import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from benchlib import added, places


def run(**other) -> dict:
    """A run whose recording is twice as long as what the program measured."""
    return {"load": 0, "jdk": 17, "name": "dwell",
            "wall": {"placeA@x": 60, "placeB@x": 39, "placeC@y": 1},
            "waited": {"placeA@x": 10, "placeB@x": 0, "placeC@y": 0},
            "found": {"placeA@x": 120, "placeB@x": 78, "placeC@y": 2},
            "runnable": {"placeA@x": 20}, **other}


class Places(unittest.TestCase):
    def test_times_are_compared_as_parts(self):
        found = places.compared(run())
        self.assertEqual((found["sum"], found["distance"], found["off"]), (2, 0, 0))
        self.assertEqual(set(found["ratios"].values()), {1})
        found = places.compared(run(found={"placeA@x": 100, "placeB@x": 100},
                                    runnable={"placeB@x": 20}))
        self.assertAlmostEqual(found["distance"], 11)
        self.assertAlmostEqual(found["ratios"]["placeB@x"], 0.5 / 0.39)
        self.assertEqual((found["ratios"]["placeC@y"], found["waits distance"]), (0, 100))
        self.assertAlmostEqual(found["offs"]["placeA@x"], -10)
        self.assertAlmostEqual(found["off"], 0)

    def test_worst_place_is_that_of_all_runs_and_no_rare_one(self):
        rows = []
        for found in ({"placeA@x": 66, "placeB@x": 34}, {"placeA@x": 54, "placeB@x": 45}):
            row = run(found=found, runnable={"placeA@x": 0})
            rows.append({**row, **places.compared(row)})
        with mock.patch.object(places.table, "markdown") as markdown, \
                contextlib.redirect_stdout(io.StringIO()):
            places.print_rows(rows)
        line = markdown.call_args[0][1][0]
        self.assertEqual((line[3], line[7], line[12]), (2, "1.02 placeB@x", "-10.0 placeA@x"))

    def test_place_is_that_of_the_outermost_frame_and_the_group(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.collapsed"
            path.write_text("task-7;WallPlaces.lambda$placeX$1;WallPlaces.placeA;"
                            "WallPlaces.placeB;java.lang.Thread.sleep 5\n"
                            "task-8;WallPlaces.placeA 2\nmain;WallPlaces$Meter.end 9\n")
            with mock.patch.object(places.recordings, "collapse", return_value=path):
                self.assertEqual(places.by_place(path), {"placeA@task": 7})


class Added(unittest.TestCase):
    def test_clock_of_process_is_its_cpu_time(self):
        clock = added.cpu_clock(os.getpid())
        before = time.process_time()
        found = time.clock_gettime(clock)
        self.assertTrue(before <= found <= time.process_time())

    def test_error_counts_shared_windows(self):
        self.assertAlmostEqual(added.standard_error([0, 2, 0, 2]), 1.2533 * 1.1547 * 1.1547 / 2,
                               places=3)


if __name__ == "__main__":
    unittest.main()
