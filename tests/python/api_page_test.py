"""The page of the package says what the package has."""

import subprocess
import sys
import unittest

import support


class Page(unittest.TestCase):
    def test_is_up_to_date(self):
        subprocess.run([sys.executable, support.SOURCE / "tools/api_pages", "--check", "python"],
                       check=True)


if __name__ == "__main__":
    unittest.main()
