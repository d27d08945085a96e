"""What the tests share."""

import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("STEPCAST_SOURCE", Path(__file__).resolve().parents[2]))
SKIPPED = 77


def main():
    """Runs the tests of the file; exits with SKIPPED where every one was skipped."""
    program = unittest.main(exit=False)
    result = program.result
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        for _, reason in result.skipped:
            print("skipped:", reason)
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())


def predictor(workload="resnet50", cluster="gce-t4"):
    import stepcast

    return stepcast.Predictor(stepcast.read_cluster(cluster), stepcast.workload(workload))
