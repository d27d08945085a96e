"""The Python of docs/howto is run, and what it prints is compared.

```python blocks of a page are run in order, in one namespace, in a folder of their own where data/
is the source tree's. A ```text block behind one is what it prints; numbers may differ by a
hundredth. A block marked needs=calibrate is left out where that was not built.

STEPCAST_UPDATE_DOCS=1 writes the outputs anew.
"""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

import support

PAGES = ("use-from-python.md", "replace-a-goodput-function.md")
NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?")
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def calibrates():
    try:
        import stepcast._calibrate  # noqa: F401
    except ImportError:
        return False
    return True


def same(said, printed):
    """Whether two texts differ in white space, and in numbers by a hundredth, at most."""
    if NUMBER.sub("0", said).split() != NUMBER.sub("0", printed).split():
        return False
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)]
               for text in (said, printed)]
    return all(abs(a - b) <= 0.01 * max(abs(a), abs(b)) for a, b in zip(*numbers))


class Docs(unittest.TestCase):
    def run_page(self, name):
        path = support.SOURCE / "docs" / "howto" / name
        text = path.read_text()
        fences = list(FENCE.finditer(text))
        namespace = {}
        fresh = text
        run = 0
        for fence, following in zip(fences, fences[1:] + [None]):
            info = fence.group(1).split()
            if info[:1] != ["python"] or ("needs=calibrate" in info and not calibrates()):
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(fence.group(2), f"{name}: {fence.group(2)[:40]!r}", "exec"), namespace)
            run += 1
            if following is None or following.group(1) != "text":
                self.assertEqual(printed.getvalue(), "", fence.group(2))
                continue
            if os.environ.get("STEPCAST_UPDATE_DOCS"):
                if not same(following.group(2), printed.getvalue()):
                    fresh = fresh.replace(fence.group(0) + text[fence.end():following.end()],
                                          fence.group(0) + text[fence.end():following.start()] +
                                          f"```text\n{printed.getvalue()}```")
            elif not same(following.group(2), printed.getvalue()):
                self.assertEqual(following.group(2), printed.getvalue(), fence.group(2))
        if fresh != text:
            path.write_text(fresh)
        self.assertGreater(run, 0)

    def test_pages(self):
        home = os.getcwd()
        for name in PAGES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "data").symlink_to(support.SOURCE / "data")
                os.chdir(folder)
                try:
                    self.run_page(name)
                finally:
                    os.chdir(home)

    def test_only_noise_is_forgiven(self):
        self.assertTrue(same("step 2.81 s\n", "step  2.80 s"))
        self.assertFalse(same("step 2.81 s", "step 2.95 s"))
        self.assertFalse(same("step 2.81 s", "step 2.81 ms"))
        self.assertFalse(same("step 2.81 s", "step 2.81 s 1"))


if __name__ == "__main__":
    support.main()
