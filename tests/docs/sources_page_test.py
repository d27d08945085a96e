"""docs/reference/sources.md shows what its command finds, of two quick sources."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = ROOT / "tools" / "judge_sources"
QUICK = ["cmdare", "ufrgs_low_bandwidth_cells"]
SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def answer():
    """What the command says of the quick sources; ends the test where it cannot be asked."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        skip("this Python has no NumPy")
    program = os.environ.get("STEPCAST_PROGRAM")
    if not program:
        skip("built without the program")
    found = json.loads(subprocess.run(
        [sys.executable, COMMAND, "--program", program, "--json", "--source", *QUICK], check=True,
        stdout=subprocess.PIPE, text=True).stdout)
    if found["absent"]:
        skip("; ".join(found["absent"].values()) + "; set STEPCAST_DATASETS to its folder")
    return found["sources"]


def judge_sources():
    loader = importlib.machinery.SourceFileLoader("judge_sources", str(COMMAND))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("judge_sources", loader))
    loader.exec_module(module)
    return module


class Page(unittest.TestCase):
    def test_shows_what_the_command_finds(self):
        judge = judge_sources()
        page = judge.PAGE.read_text()
        for source, splits in SOURCES.items():
            for split, scores in splits.items():
                with self.subTest(source=source, split=split):
                    self.assertIn(judge.row_of_page(source, scores["all"]), page,
                                  "tools/judge_sources --update writes the page anew")


if __name__ == "__main__":
    SOURCES = answer()
    unittest.main()
