"""The example scheduler that replays measured jobs keeps what it is told to show."""

import os
import sys
import unittest
from pathlib import Path

import support

sys.path.insert(0, str(support.SOURCE / "predictor" / "python" / "examples"))
import replay_traces as replay  # noqa: E402

os.environ.setdefault("STEPCAST_DATASETS", str(support.SOURCE / ".." / "shared" / "datasets"))


def judged(world, jobs, kinds):
    """(history's jobs, {planner: figures})."""
    done, history = replay.simulate(world, replay.FromFleet(world.cluster), jobs, seed=1)
    of = {kind.name: replay.figures(replay.judge(kind(world.cluster), done, history))
          for kind in kinds}
    return done, history, of


def found(name):
    return (Path(os.environ["STEPCAST_DATASETS"]) / name).is_dir()


class Replay(unittest.TestCase):
    def test_what_is_in_use_is_never_more_than_there_is(self):
        nodes = replay.Nodes(replay.made_up_world().cluster)
        self.assertIsNone(nodes.place((4,) * 9))
        place = nodes.place((4, 3))
        self.assertEqual(sorted(place.values()), [3, 4])
        nodes.take(place)
        self.assertEqual(nodes.free[list(place)[1]], 1)
        self.assertIn(list(place)[1], nodes.place((1,)))  # the fullest that has room
        self.assertIsNone(nodes.place((4,) * 7))
        nodes.give_back(place)
        self.assertEqual(nodes.free, [4] * 8)

    def test_devices_go_to_whose_goodput_grows_most(self):
        job, other = (replay.Job(name, None, 0, 1) for name in ("job", "other"))
        tables = {"job": {1: 1.0, 2: 1.9, 4: 3.4}, "other": {1: 1.0, 2: 1.2}}
        self.assertEqual(replay.deal([job, other], tables, 5), {"job": 4, "other": 1})
        self.assertEqual(replay.deal([job, other], tables, 1), {"job": 1})

    def test_each_job_of_a_made_up_cluster_ends_and_teaches_the_next(self):
        world = replay.made_up_world()
        done, history, of = judged(world, 16, (replay.FromFleet, replay.FromNothing,
                                               replay.Published))
        for job in done:
            self.assertGreater(job.finished_s, job.arrival_s, job.name)
        self.assertEqual(sum(event[0] == "end" for event in history), 16)
        fleet, nothing, published = (of[name] for name in ("fleet", "from nothing", "published"))
        known = "error, application has run before"
        first = "error before a job's first step"
        self.assertLess(fleet[known], min(nothing[known], published[known]))
        self.assertLess(fleet[known], 0.05)
        self.assertLess(fleet[first], 0.1 * nothing[first])
        self.assertGreater(fleet["90 % intervals hold"], 0.85)


class PublicTraces(unittest.TestCase):
    def keep(self, name, most):
        if not found(name):
            self.skipTest(f"{name} is not in $STEPCAST_DATASETS")
        world = replay.read_world(name)
        done, history, of = judged(world, 30, (replay.FromFleet, replay.FromNothing))
        fleet, nothing = of["fleet"], of["from nothing"]
        for title in (title for title, _, _ in replay.FIGURES):
            print(f"[ measured ] {name} {title}: {100 * fleet[title]:.1f} %, "
                  f"{100 * nothing[title]:.1f} % from nothing")
        for title, bound in most.items():
            self.assertLess(fleet[title], bound, title)
            self.assertLess(fleet[title], nothing[title], title)

    def test_adaptdl(self):
        self.keep("adaptdl", {"error, application has run before": 0.05})

    def test_another_cluster(self):
        self.keep("sia-rtx", {"error, application has run before": 0.08})


if __name__ == "__main__":
    support.main()
