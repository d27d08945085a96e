"""The page of speed: what is measured replaces its part, and all else stays as it was."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = ROOT / "tools" / "speed_page.py"
PAGE = ROOT / "docs" / "reference" / "speed.md"


def estimator(name, own_s, other_s, machine="machine of the test"):
    return {name: {"machine": machine, "version": "9.9", "asked": "a network on a cluster",
                   "stepcast": [0.2, 0.1, 0.4], "said": 0.3, "notes": ["something stands in"],
                   "seconds": {"a question": {"stepcast": own_s, name: other_s}}}}


class SpeedPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.page = self.folder / "page.md"

    def write(self, **parts):
        """The page after a run that was given these parts."""
        options = []
        for kind, found in parts.items():
            file = self.folder / f"{kind}.json"
            file.write_text(json.dumps(found))
            options += [f"--{kind}", file]
        subprocess.run([sys.executable, COMMAND, self.page, *options], check=True,
                       stdout=subprocess.DEVNULL)
        return self.page.read_text()

    def sections(self, text):
        return text.split("\n## Beside ")

    def test_the_page_is_as_the_command_writes_it(self):
        self.page.write_text(PAGE.read_text())
        self.assertEqual(self.write(), PAGE.read_text())

    def test_each_part_beside_another_program_says_when_it_was_measured(self):
        _, *sections = self.sections(PAGE.read_text())
        self.assertEqual([section.split("\n")[0] for section in sections],
                         ["a goodput function", "Calculon", "Paleo"])
        for section in sections:
            self.assertRegex(section, r"\nMeasured on an .+, on \d{4}-\d\d-\d\d\.\n")

    def test_what_is_not_given_stays(self):
        self.page.write_text("# Speed\n\nOwn.\n\n## Beside a goodput function\n\nOld goodput.\n\n"
                             "## Beside Paleo\n\nOld Paleo.\n")
        own, goodput, calculon, paleo = self.sections(
            self.write(estimators=estimator("Calculon", 2e-6, 3e-3)))
        self.assertEqual(own, "# Speed\n\nOwn.\n")
        self.assertEqual(goodput, "a goodput function\n\nOld goodput.\n")
        self.assertEqual(paleo, "Paleo\n\nOld Paleo.\n")
        self.assertIn("| a question | 2 us | 3 ms | 1,500 |", calculon)
        self.assertIn("Calculon says 300 ms, stepcast 200 ms (90 % interval 100 ms to 400 ms)",
                      " ".join(calculon.split()))
        self.assertIn("\nsomething stands in.\n", calculon)
        self.assertIn("\nMeasured on an machine of the test.\n", calculon)

    def test_what_is_given_replaces_its_part(self):
        self.write(estimators={**estimator("Paleo", 1, 2, "first"),
                               **estimator("Calculon", 1, 2, "first")})
        text = self.write(
            estimators=estimator("Paleo", 1, 5, "second"),
            goodput={"machine": "second", "notes": [],
                     "seconds": {"a fit": {"stepcast": 1e-3, "reference": 7e-3}}})
        _, goodput, calculon, paleo = self.sections(text)
        self.assertIn("| a fit | 1 ms | 7 ms | 7 |", goodput)
        self.assertIn("| a question | 1 s | 5 s | 5 |", paleo)
        self.assertIn("an second.", paleo)
        self.assertNotIn("first", paleo)
        self.assertIn("an first.", calculon)


if __name__ == "__main__":
    unittest.main()
