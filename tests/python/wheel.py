"""package.pip: builds the wheel as pip does, installs it in an empty folder, and uses it there."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = os.environ["STEPCAST_SOURCE"]
WORK = Path(os.environ["WORK"])
USE = """
import stepcast, stepcast.pollux
assert stepcast.__file__.startswith({target!r}), stepcast.__file__
assert str(stepcast.data_folder()).startswith({target!r}), stepcast.data_folder()
predictor = stepcast.Predictor(stepcast.read_cluster("gce-t4"), stepcast.workload("resnet50"))
plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64)
assert abs(predictor.predict(plan).step_time_s / predictor.compile(plan).predict() - 1) < 1e-9
from importlib.metadata import metadata
assert metadata("stepcast")["Version"] == stepcast.__version__
print("the wheel works:", stepcast.__version__)
"""


def main():
    if importlib.util.find_spec("pip") is None:
        print("skipped: there is no pip")
        sys.exit(77)
    target = WORK / "site"
    shutil.rmtree(target, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps",
         "--no-cache-dir", "--target", target, "--config-settings", f"build-dir={WORK / 'build'}",
         # What is tested does not depend on how fast it is.
         "--config-settings", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0", SOURCE],
        check=True, env=environment)
    subprocess.run([sys.executable, "-c", USE.format(target=str(target))], check=True, cwd="/",
                   env={**environment, "PYTHONPATH": str(target)})


if __name__ == "__main__":
    main()
