"""Files that pages name are there, and the walk through the rooms finds its functions."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("data", "model", "calibrate", "microbench", "predictor", "tests", "tools", "cmake")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
WALK = "docs/explanation/architecture.md"


def named_paths(text):
    """Repository paths in backticks: `model/step/step.h`, `data/io/`; not tests/ROOM/."""
    return [p for p in re.findall(r"`([a-z0-9_./-]+)`", text)
            if p.split("/")[0] in ROOMS and "/" in p]


def walk():
    """(file, function, test) of each row of the walk."""
    return re.findall(r"^\| [^|]+ \| `([^`]+)` \| `(\w+)` \| `(tests/[^`]+)` \|$",
                      (ROOT / WALK).read_text(), re.MULTILINE)


class Paths(unittest.TestCase):
    def test_what_pages_name_is_there(self):
        found = 0
        for page in PAGES:
            for path in named_paths(page.read_text()):
                found += 1
                with self.subTest(page=page.name, path=path):
                    self.assertTrue((ROOT / path).exists())
        self.assertGreater(found, 50)

    def test_walk_finds_its_functions(self):
        rows = walk()
        self.assertGreater(len(rows), 10)
        for file, function, test in rows:
            with self.subTest(function=function):
                code = re.sub(r"//[^\n]*", "", (ROOT / file).read_text())
                self.assertRegex(code, rf"\b{function}\b")
                self.assertTrue((ROOT / test).exists(), test)

    def test_rooms_of_the_picture_are_there(self):
        picture = re.search(r"```text\n(.*?)```", (ROOT / WALK).read_text(), re.DOTALL).group(1)
        for room in re.findall(r"╔═ (\w+) ═", picture):
            with self.subTest(room=room):
                self.assertTrue((ROOT / room / "CMakeLists.txt").exists())
        folders = {p.name for room in ("data", "model", "calibrate", "predictor")
                   for p in (ROOT / room).iterdir() if p.is_dir()}
        shown = set(re.findall(r"(\w+)/", picture))
        self.assertEqual(shown - folders, set())
        # Files that are read, what few need to know, and what the three dots stand for.
        left_out = {"machines", "measurements", "parameters", "profiles", "dashboards", "numeric",
                    "compiled", "json", "report", "__pycache__"}
        self.assertEqual(folders - shown - left_out, set())


if __name__ == "__main__":
    unittest.main()
