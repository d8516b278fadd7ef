"""Tests of records and of the document that is made of them: `bench/run --check`."""

import argparse
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from benchlib import publish, records, table


def record(**other) -> dict:
    """A whole record."""
    return {"name": "a", "section": "Cost", "order": 10, "question": "How long?", "spread": "range",
            "command": "bench/a --rounds 3", "commit": "abc1234", "date": "2026-01-02",
            "machine": "2 cores", "jdk": ["17"], "n": "3 rounds", "columns": ["program", "s"],
            "rows": [["x", [1.5, 1.25, 2.0]], ["y", 2]], **other}


class Values(unittest.TestCase):
    def test_cell_becomes_number_spread_or_text(self):
        for cell, value in [("3", 3), ("12,345", 12345), ("-1.50", -1.5), (7, 7), (None, None),
                            ("1.02 (1.01 to 1.03)", [1.02, 1.01, 1.03]),
                            ("36 (27 to 1,037)", [36, 27, 1037]), ("-", "-"), ("0.1 %", "0.1 %"),
                            ("0.004 (1)", "0.004 (1)"), ("1 ms", "1 ms")]:
            self.assertEqual(records.value(cell), value, cell)

    def test_column_has_equal_digits(self):
        found = publish.of_record(record(), {"2 cores": "A"})
        self.assertIn("| x | 1.50 (1.25 to 2.00) |\n| y | 2 |", found)
        self.assertEqual(publish.cell([1, 2, 3], 0), "1 (2 to 3)")
        self.assertEqual(publish.cell(1234, 0), "1,234")
        self.assertEqual(publish.cell(None, 2), "")


class Records(unittest.TestCase):
    def test_table_is_written_with_its_conditions(self):
        with tempfile.TemporaryDirectory() as folder:
            recorder = records.Recorder()
            words = ["bench/speed", "--rounds", "4", "--record", folder, "--jdk", "17"]
            parser = argparse.ArgumentParser(description="How fast it is.\n\nMore.")
            parser.add_argument("--rounds", type=int)
            parser.add_argument("--jdk")
            with mock.patch.object(sys, "argv", words), \
                    mock.patch.object(records, "RECORDER", recorder):
                records.parse(parser)
                text = table.markdown(["JDK", "s"], [[17, "1.0 (0.9 to 1.1)"]])
                table.markdown(["n", "s"], [[3, 1], [5, 2]])
            self.assertTrue(text.startswith("| JDK"))
            first = json.loads((Path(folder) / "speed.json").read_text())
            second = json.loads((Path(folder) / "speed-2.json").read_text())
        self.assertEqual(first["command"], "bench/speed --rounds 4 --jdk 17")
        self.assertEqual((first["question"], first["n"]), ("How fast it is.", "4"))
        self.assertEqual(first["rows"], [[17, [1.0, 0.9, 1.1]]])
        self.assertEqual(second["n"], "3 to 5")
        self.assertEqual(set(publish.NEEDED) - first.keys(), set())

    def test_no_file_without_the_option(self):
        recorder = records.Recorder()
        with mock.patch.object(sys, "argv", ["bench/speed"]):
            recorder.parse(argparse.ArgumentParser())
        recorder.keep(["a"], [[1]])
        self.assertEqual(recorder.tables, 0)

    def test_replaced_record_keeps_question_and_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.json"
            records.write(path, record(question="Kept?", order=7, note="of the old figures"))
            records.write(path, record(rows=[["z", 3]]))
            found = records.read(Path(folder))[0]
        self.assertEqual((found["name"], found["question"], found["order"]), ("a", "Kept?", 7))
        self.assertEqual(found["rows"], [["z", 3]])
        self.assertNotIn("note", found)

    def test_records_are_read_in_their_order(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, order in [("b", 1), ("a", 2), ("c", 1)]:
                records.write(Path(folder) / f"{name}.json", record(order=order))
            names = [found["name"] for found in records.read(Path(folder))]
        self.assertEqual(names, ["b", "c", "a"])


class Document(unittest.TestCase):
    def test_document_has_sections_conditions_and_hidden_records(self):
        text = publish.document([record(), record(question="Why?", machine="8 cores", commit=None),
                                 record(name="h", question="Hidden?", published=False)])
        self.assertEqual(text.count("## Cost\n"), 1)
        self.assertIn("A: 2 cores; B: 8 cores", text)
        lines = text.replace("\n", " ")
        self.assertIn("`bench/a --rounds 3`, commit `abc1234`, 2026-01-02. Machine A, JDK 17, "
                      "n = 3 rounds, medians (range).", lines)
        self.assertIn("commit not recorded, 2026-01-02. Machine B", lines)
        self.assertIn("[Hidden?](records/h.json)", text)
        self.assertNotIn("**Hidden?**", text)

    def test_shown_columns_are_chosen(self):
        found = publish.of_record(record(show=["s"]), {"2 cores": "A"})
        self.assertIn("\n| s |\n", found)
        self.assertNotIn("program", found)

    def test_incomplete_record_is_refused(self):
        short = record()
        del short["commit"]
        for wrong, words in [(short, "lacks commit$"),
                             (record(rows=[["x"]]), "do not match its columns"),
                             (record(rows=[]), "do not match its columns")]:
            with self.assertRaisesRegex(ValueError, words):
                publish.document([wrong])

    def test_document_of_more_than_300_lines_is_refused(self):
        publish.document([record(rows=[["x", 1]] * 250)])
        with self.assertRaisesRegex(ValueError, "at most 300"):
            publish.document([record(rows=[["x", 1]] * 300)])

    def test_prose_is_wrapped_without_breaking_short_code(self):
        text = publish.fill("word " * 18 + "`two words`")
        self.assertTrue(text.endswith("\n`two words`"))
        self.assertLessEqual(max(map(len, text.split("\n"))), publish.COLUMNS)
