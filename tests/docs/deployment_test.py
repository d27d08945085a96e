"""The manifest in docs/howto/in-a-cluster.md describes a service that answers as it says."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/howto/in-a-cluster.md").read_text()
MANIFEST = re.search(r"<!-- file: stepcast.yaml -->\n```yaml\n(.*?)```", PAGE, re.DOTALL).group(1)


def value(key, form):
    """The values of a key in the manifest, which match `form`."""
    found = re.findall(rf"\b{re.escape(key)}: *({form})", MANIFEST)
    assert found, key
    return found


class Deployment(unittest.TestCase):
    def test_its_service_starts_answers_and_ends(self):
        args = [a.strip(' "') for a in value("args", r"\[[^]]*\]")[0][1:-1].split(",")]
        ports = value("containerPort", r"\d+") + value("prometheus.io/port", r'"\d+"')
        mount = value("mountPath", r"[\w/]+")[0]
        listen = args[args.index("--listen") + 1]
        self.assertEqual({port.strip('"') for port in ports}, {listen.rpartition(":")[2]})
        cluster = args[args.index("--cluster") + 1]
        self.assertTrue(cluster.startswith(mount + "/"))
        # The key of the ConfigMap is the name of the file.
        self.assertIn(f"--from-file {Path(cluster).name}=", PAGE)
        paths = value("httpGet: {path", r"/\w+") + value("prometheus.io/path", r"/\w+")
        self.assertEqual(paths, ["/healthz", "/readyz", "/metrics"])
        grace = int(value("terminationGracePeriodSeconds", r"\d+")[0])
        self.assertLess(int(args[args.index("--drain") + 1].split()[0]), grace)
        memory_kb = int(value("limits: {memory", r"\d+(?=Mi)")[0]) * 1024

        with tempfile.TemporaryDirectory() as folder:
            shipped = ROOT / "data/machines/ufrgs-tupi.yaml"
            (Path(folder) / Path(cluster).name).write_text(shipped.read_text())
            args[args.index("--listen") + 1] = "127.0.0.1:0"
            args[args.index("--cluster") + 1] = str(Path(folder) / Path(cluster).name)
            with subprocess.Popen([os.environ["STEPCAST_PROGRAM"], *args, "--json"],
                                  stdout=subprocess.PIPE, text=True) as service:
                try:
                    address = re.search(r'"listen":"([^"]+)"', service.stdout.readline()).group(1)
                    for path in paths:
                        url = f"http://{address}{path}"
                        with urllib.request.urlopen(url, timeout=10) as answer:
                            self.assertEqual(answer.status, 200, path)
                    status = Path(f"/proc/{service.pid}/status").read_text()
                    resident_kb = int(re.search(r"VmRSS:\s*(\d+) kB", status).group(1))
                    self.assertLess(resident_kb, memory_kb)
                finally:
                    service.send_signal(signal.SIGTERM)
                self.assertEqual(service.wait(timeout=grace), 0)


if __name__ == "__main__":
    if "STEPCAST_PROGRAM" not in os.environ:
        print("skipped: built without the program")
        sys.exit(77)
    unittest.main()
