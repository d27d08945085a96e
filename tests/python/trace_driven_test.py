"""The simulated cluster of trace_driven.py, planned through the Pollux interface."""

import math
import unittest

import stepcast.pollux
import support
import trace_driven


class TraceDriven(unittest.TestCase):
    def test_all_jobs_finish_sooner_than_alone(self):
        jobs = trace_driven.run(stepcast.pollux)
        self.assertEqual(len(jobs), 8)
        for job in jobs:
            self.assertFalse(math.isnan(job.finished_s), job.name)
        takes = [(job.finished_s - job.arrival_s) / 3600 for job in jobs]
        alone = [trace_driven.alone(job) for job in jobs]
        self.assertLess(sum(takes), 0.5 * sum(alone))


if __name__ == "__main__":
    support.main()
