"""The tools that time stepcast beside others know its interface, and ask all that they list."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

# What the tools need of Calculon and Paleo; a step says what it was asked.
CALCULON = {
    "calculon/__init__.py": """
__version__ = "1.2"
class System:
    def __init__(self, facts): self.rate = facts["rate"]
""",
    "calculon/llm/__init__.py": "import pandas",
    "calculon/llm/llm.py": """
class Llm:
    class Application:
        def __init__(self, facts): self.blocks = facts["num_blocks"]
    class Execution:
        @staticmethod
        def from_json(facts): return facts
    def __init__(self, network, log): self.network = network
    def compile(self, system, execution): self.execution = execution
    def run(self, system):
        self.seconds = system.rate * self.network.blocks * self.execution["num_procs"]
    def get_total_time(self): return self.seconds
""",
    "systems/a100_80g.json": '{"rate": 2}',
}
PALEO = {
    "paleo/__init__.py": '__version__ = "3.4"',
    "paleo/profilers/__init__.py": "",
    "paleo/device.py": 'DEVICES = {"K80": 100}\nNETWORKS = {"ethernet20": 1000}',
    "paleo/graph.py": """
class OperationGraph:
    def __init__(self, path): self.nested_list = self.topology_order = open(path).read()
""",
    "paleo/simulation.py": """
from paleo.profilers import cudnn_profiler
def simulate_scaling(nested, order, workers, scaling, batch, device, network, *others):
    return (["workers", "time_comp", "OneToAll", "TreeAllReduce"],
            [[n, len(order) + batch + device, 0, network * n] for n in workers])
""",
    "nets/vgg16.json": "1234567",
}


def run(tool, *options):
    return json.loads(subprocess.run(
        [sys.executable, support.SOURCE / "tools" / tool, "--json", "--seconds", "0", *options],
        check=True, stdout=subprocess.PIPE, text=True).stdout)


class CompareTools(unittest.TestCase):
    def assert_times(self, found, names, questions):
        self.assertRegex(found["machine"], r" with \d+ cores, on \d{4}-\d\d-\d\d$")
        self.assertEqual(len(found["seconds"]), questions)
        for what, seconds in found["seconds"].items():
            with self.subTest(what):
                self.assertEqual(list(seconds), names)
                for time in seconds.values():
                    self.assertGreater(time, 0)

    def test_without_a_reference(self):
        self.assert_times(run("compare_goodput.py"), ["stepcast"], 5)
        for found in run("compare_estimators.py").values():
            self.assert_times(found, ["stepcast"], 4)

    def test_estimators(self):
        with tempfile.TemporaryDirectory() as folder:
            options = []
            for name, files in (("calculon", CALCULON), ("paleo", PALEO)):
                options += [f"--{name}", f"{folder}/{name}"]
                for path, text in files.items():
                    file = Path(folder, name, path)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
            found = run("compare_estimators.py", *options)
            self.assertEqual(list(run("compare_estimators.py", *options[2:])), ["Paleo"])
        for name, version, said in (("Calculon", "1.2", 2 * 24 * 64),
                                    ("Paleo", "3.4", 1e-3 * (7 + 64 + 100 + 8 * 1000))):
            with self.subTest(name):
                self.assert_times(found[name], ["stepcast", name], 4)
                self.assertEqual(found[name]["version"], version)
                self.assertAlmostEqual(found[name]["said"], said)
                step, low, high = found[name]["stepcast"]
                self.assertTrue(0 < low < step < high)
        self.assertEqual(len(found["Paleo"]["notes"]), 1)


if __name__ == "__main__":
    support.main()
