#!/usr/bin/env python3
"""A scheduler in simulated time, whose jobs are measured ones, and what its forecasts were worth.

    replay_traces.py --made-up               a cluster whose law of steps stands in this file
    replay_traces.py adaptdl sia-rtx         public traces, folders of $STEPCAST_DATASETS
    replay_traces.py adaptdl --jobs 20 --driver published

Jobs arrive, begin on one device, and those whose goodput grows most are given more; who is moved
starts anew. Each round a job says how long its steps took. That is learnt, and teaches the next
(stepcast.Fleet). What really happens is what was measured at that allocation; between two measured
batches it is a straight line.

The history that one planner has made is then told to others, event by event: stepcast for each job
from nothing, and the model of seven parameters that was published with the traces (Qiao et al.,
Pollux, OSDI 2021). The report compares them where a job got an allocation that it had not had. At
the end each planner plans by itself, beside one that knows the truth.
"""

import argparse
import copy
import csv
import math
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import stepcast

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from sources.rivals import Pollux, Step  # noqa: E402

ROUND_S = 120.0
RESTART_S = 30.0     # as in Pollux' simulator (petuum/adaptdl, branch osdi21-artifact)
WORTH_MOVING = 1.05  # times as much goodput
LEAST_GAIN = 0.002   # by one more device, of ln(goodput)
CANDIDATES = 50      # global batches that are tried, as there


# ---- What really happens.

@dataclass(frozen=True)
class Application:
    """Of one kind of jobs. The initial batch is that of the traces' simulator; the most that a
    batch may grow to is 32 times it, as there."""
    name: str
    workload: str
    initial_batch: int
    traced: dict = field(compare=False)  # {shape: (batches, micro_s, exposed_s)}, batches rising

    @property
    def most_batch(self):
        return 32 * self.initial_batch

    def batches(self, shape):
        """The least and the most samples of a micro-step on a device."""
        batches = self.traced[shape][0]
        return int(batches[0]), int(batches[-1])

    def micro_and_step_s(self, shape, batch, steps):
        """Of a micro-step that does not synchronise, and of a step of so many; arrays, too."""
        batches, micro_s, exposed_s = self.traced[shape]
        micro = np.interp(batch, batches, micro_s)
        return micro, steps * micro + np.interp(batch, batches, exposed_s)


@dataclass(frozen=True)
class World:
    name: str
    cluster: stepcast.Cluster
    applications: tuple


def read_application(folder, name, workload, initial_batch):
    """Of placements.csv, where a digit is a node's devices, and scalability.csv, where devices are
    taken to be spread evenly. Several orders of one layout are averaged."""
    rows = {}
    for kind in ("placements", "scalability"):
        with open(folder / f"{name}_{kind}.csv", newline="") as file:
            for row in csv.DictReader(file):
                if kind == "placements":
                    shape = tuple(sorted(map(int, row["placement"]), reverse=True))
                else:
                    shape = even(int(row["num_replicas"]), int(row["num_nodes"]))
                step_s, exposed_s = float(row["step_time"]), float(row["sync_time"])
                rows.setdefault(shape, {}).setdefault(int(row["local_bsz"]), []).append(
                    (step_s - exposed_s, exposed_s))
    traced = {}
    for shape, of_batch in rows.items():
        batches = np.array(sorted(of_batch))
        means = np.array([np.mean(of_batch[batch], axis=0) for batch in batches])
        traced[shape] = (batches, means[:, 0], means[:, 1])
    return Application(name, workload, initial_batch, traced)


def read_world(name):
    """A folder of the public traces."""
    clusters = {
        "adaptdl": lambda: stepcast.read_cluster("aws-g4dn-12xlarge"),
        "sia-rtx": lambda: stepcast.cluster("rtx_2080_ti", nodes=3, devices_per_node=8,
                                            name="sia-rtx"),
    }
    folder = Path(os.environ.get("STEPCAST_DATASETS", "../shared/datasets")) / name
    if name not in clusters or not folder.is_dir():
        raise SystemExit(f"replay_traces.py: {folder} is not there; allowed: adaptdl or sia-rtx, "
                         "folders of $STEPCAST_DATASETS")
    return World(name, clusters[name](), tuple(
        read_application(folder, *of) for of in (("bert", "bert_base", 12),
                                                 ("cifar10", "resnet18_cifar10", 128),
                                                 ("deepspeech2", "deepspeech2", 20),
                                                 ("imagenet", "resnet50", 200))))


def made_up_world():
    """A ring over 8 nodes of 4 devices by a law that is neither model's: some of the exchange
    always shows, two nodes cannot fill a link, small batches leave a device idle."""
    def application(name, workload, initial_batch, local, fixed_s, sample_s):
        gradient_bytes = stepcast.workload(workload).gradient_bytes
        traced = {}
        for shape in [even(w, n) for n in range(1, 9) for w in range(n, 4 * n + 1)]:
            nodes, workers = len(shape), sum(shape)
            batches = np.unique(np.geomspace(*local, 8).astype(int))
            micro_s = fixed_s + sample_s * (batches**4.0 + local[0]**4.0)**0.25
            rate = 6e9 / shape[0] if nodes == 1 else 1.1e9 * (0.7 if nodes == 2 else 1)
            whole_s = 0.0 if workers == 1 else (2 * gradient_bytes * (workers - 1) / workers / rate
                                                + 2e-4 * workers)
            exposed_s = np.maximum(whole_s - 0.5 * micro_s, 0.12 * whole_s)
            traced[shape] = (batches, micro_s, exposed_s)
        return Application(name, workload, initial_batch, traced)

    cluster = stepcast.cluster("t4", nodes=8, devices_per_node=4, name="made-up",
                               bandwidth_bytes_per_s=1.25e9)
    return World("made-up", cluster, (
        application("language", "bert_base", 12, (4, 12), 0.02, 0.055),
        application("small", "resnet18_cifar10", 128, (32, 1024), 0.012, 0.0004),
        application("vision", "resnet50", 200, (20, 200), 0.02, 0.0045)))


def even(workers, nodes):
    """The devices of each node, the fullest first."""
    return tuple(workers // nodes + (i < workers % nodes) for i in range(nodes))


@dataclass
class Job:
    name: str
    application: Application
    arrival_s: float
    samples: float  # of the initial batch's worth, to be trained on

    trained: float = 0.0
    finished_s: float = math.nan
    place: dict = field(default_factory=dict)  # devices by node
    batch: tuple = (0, 0)                      # of a micro-step, micro-steps of a step
    busy_until_s: float = 0.0                  # with starting anew
    most_devices: int = 0                      # that it has had
    had: set = field(default_factory=set)      # shapes

    @property
    def shape(self):
        return tuple(sorted(self.place.values(), reverse=True))

    @property
    def noise(self):
        """The gradient noise scale, which grows as a model is trained: from twice the initial batch
        to 20 times it, which is made up."""
        return self.application.initial_batch * 2 * 10**min(1.0, self.trained / self.samples)

    def worth(self, samples):
        """Of a sample in so large a batch."""
        return (self.application.initial_batch + self.noise) / (samples + self.noise)

    def goodput(self, shape, batch, steps):
        """As it truly is."""
        samples = sum(shape) * batch * steps
        _, step_s = self.application.micro_and_step_s(shape, batch, steps)
        return samples / step_s * self.worth(samples)

    def allowed(self, shape):
        """(batches, micro-steps) that may be chosen: of each candidate for the global batch, the
        fewest micro-steps that hold it; in arrays."""
        workers = sum(shape)
        least, most = self.application.batches(shape)
        wanted = np.geomspace(max(self.application.initial_batch, workers * least),
                              self.application.most_batch, CANDIDATES)
        each = np.unique(np.ceil(wanted / workers - 1e-9).astype(int))
        steps = -(-each // most)
        batch = -(-each // steps)
        fits = (batch >= least) & (workers * batch * steps <= self.application.most_batch)
        return batch[fits], steps[fits]


def make_jobs(world, count, seed):
    """The same each time: some hours of work each on a device of its own."""
    dice = random.Random(seed)
    jobs, arrival_s = [], 0.0
    for number in range(count):
        application = world.applications[dice.randrange(len(world.applications))]
        job = Job(f"{application.name}-{number}", application, arrival_s, 1.0)
        alone = max(job.goodput((1,), batch, steps) for batch, steps in zip(*job.allowed((1,))))
        job.samples = alone * 3600 * math.exp(dice.uniform(math.log(0.5), math.log(8)))
        jobs.append(job)
        arrival_s += dice.expovariate(1 / 480)
    return jobs


# ---- Planners: what is known of jobs. Each is told the same events.

class Truth:
    name = "the truth"

    def begin(self, job):
        pass

    def observe(self, job, shape, batch, steps, micro_s, step_s):
        pass

    def end(self, job):
        pass

    def choose(self, job, shapes):
        """[(batch, micro-steps, goodput)], for each shape the best; goodput 0 where none fits."""
        return [best_of(job, shape, self.seconds) for shape in shapes]

    def seconds(self, job, shape, batch, steps):
        """Of steps; an array."""
        return job.application.micro_and_step_s(shape, batch, steps)[1]

    def interval(self, job, shape, batch, steps):
        """(low, high) of 90 %, or None."""
        return None


def best_of(job, shape, seconds):
    batch, steps = job.allowed(shape)
    if len(batch) == 0:
        return 0, 0, 0.0
    samples = sum(shape) * batch * steps
    goodput = samples / seconds(job, shape, batch, steps) * job.worth(samples)
    best = int(np.argmax(goodput))
    return int(batch[best]), int(steps[best]), float(goodput[best])


class FromFleet(Truth):
    """Jobs of one stepcast.Fleet."""
    name = "fleet"

    def __init__(self, cluster):
        self.fleet = stepcast.Fleet(cluster)
        self.learnt = {}
        self.compiled = {}  # (rows, compiled plan) by job

    def begin(self, job):
        workload = stepcast.workload(job.application.workload)
        self.learnt[job.name] = self.fleet.add(job.name, workload)

    def observe(self, job, shape, batch, steps, micro_s, step_s):
        plan = stepcast.Plan(placement=shape, local_batch=batch, accumulation_steps=steps)
        self.learnt[job.name].observe(plan, step_s)

    def end(self, job):
        self.fleet.end(job.name)
        self.forget(job)

    def forget(self, job):
        del self.learnt[job.name]
        self.compiled.pop(job.name, None)

    def asked(self, job):
        """A compiled plan of what is known by now."""
        learnt = self.learnt[job.name]
        key = learnt.rows, len(job.had)
        if job.name not in self.compiled or tells_more(self.compiled[job.name][0], key):
            plan = stepcast.Plan(workers=1, local_batch=job.application.initial_batch)
            self.compiled[job.name] = key, learnt.predictor().compile(plan)
        return self.compiled[job.name][1]

    def choose(self, job, shapes):
        least, most = zip(*(job.application.batches(shape) for shape in shapes))
        choices = self.asked(job).choose_batches(
            workers=[sum(shape) for shape in shapes], nodes=[len(shape) for shape in shapes],
            devices_per_node=[shape[0] for shape in shapes],
            least_global_batch=job.application.initial_batch,
            most_global_batch=job.application.most_batch,
            least_local_batch=max(least), most_local_batch=min(most), candidates=CANDIDATES,
            noise_scale=job.noise, initial_batch=job.application.initial_batch)
        return list(zip(choices.local_batch.tolist(), choices.accumulation_steps.tolist(),
                        choices.goodput.tolist()))

    def seconds(self, job, shape, batch, steps):
        return self._ask(job, shape, batch, steps)

    def interval(self, job, shape, batch, steps):
        answer = self._ask(job, shape, batch, steps, intervals=True)
        return float(answer.low_s), float(answer.high_s)

    def _ask(self, job, shape, batch, steps, **how):
        return self.asked(job).predict(placement=shape, local_batch=batch, accumulation_steps=steps,
                                       **how)


def tells_more(old, new):
    """Whether (rows, shapes) are worth a fit: a few more rows of the same shapes tell little."""
    return new[0] > 1.1 * old[0] or (new[0] > old[0] and new[1] > old[1])


class FromNothing(FromFleet):
    """Jobs that nobody teaches."""
    name = "from nothing"

    def begin(self, job):
        workload = stepcast.workload(job.application.workload)
        self.learnt[job.name] = stepcast.OnlineCalibration(self.fleet.cluster, workload)

    def end(self, job):
        self.forget(job)


class Published(Truth):
    """The seven parameters of Qiao et al., fitted anew whenever a job was somewhere new."""
    name = "published"

    def __init__(self, cluster):
        self.rows = {}
        self.models = {}  # (configurations, model) by job

    def begin(self, job):
        self.rows[job.name] = {}

    def observe(self, job, shape, batch, steps, micro_s, step_s):
        last_s = step_s - (steps - 1) * micro_s
        self.rows[job.name].setdefault((shape, batch), (micro_s, last_s))

    def end(self, job):
        del self.rows[job.name]
        self.models.pop(job.name, None)

    def _model(self, job):
        rows = self.rows[job.name]
        key = len(rows), len({shape for shape, _ in rows})
        if job.name not in self.models or tells_more(self.models[job.name][0], key):
            model = Pollux()
            model.fit([step_of(shape, batch, 1, step_s, step_s - micro_s)
                       for (shape, batch), (micro_s, step_s) in rows.items()], [])
            self.models[job.name] = key, model
        return self.models[job.name][1]

    def seconds(self, job, shape, batch, steps):
        if not self.rows[job.name]:
            return np.full(np.shape(batch), math.nan)
        batch, steps = np.broadcast_arrays(batch, steps)
        answers = self._model(job).seconds_of([step_of(shape, b, s) for b, s in
                                               zip(batch.ravel(), steps.ravel())])
        return answers.reshape(batch.shape)


def step_of(shape, batch, steps, seconds=0.0, exposed=0.0):
    return Step(nodes=len(shape), workers=sum(shape), servers=0, batch=float(batch),
                accumulation=int(steps), bytes=0, rate=None, rtt=0, seconds=seconds,
                exposed=exposed, bare=False)


# ---- The scheduler.

class Nodes:
    """Free devices by node."""

    def __init__(self, cluster):
        self.free = [cluster.devices_per_node] * cluster.nodes

    def take(self, place):
        for node, devices in place.items():
            self.free[node] -= devices

    def give_back(self, place):
        for node, devices in place.items():
            self.free[node] += devices

    def place(self, shape):
        """{node: devices}, each on the fullest node that has room; None where there is none."""
        place = {}
        for devices in shape:
            fits = [node for node, free in enumerate(self.free)
                    if free >= devices and node not in place]
            if not fits:
                return None
            place[min(fits, key=lambda node: self.free[node])] = devices
        return place


def shapes_by_count(world):
    """{devices: shapes} that all applications have traces of, those on the fewest nodes first."""
    known = set.intersection(*(set(of.traced) for of in world.applications))
    shapes = {}
    for shape in sorted(known, key=lambda shape: (sum(shape), len(shape), shape[0])):
        if len(shape) <= world.cluster.nodes:
            shapes.setdefault(sum(shape), []).append(shape)
    return shapes


def deal(jobs, tables, devices):
    """Devices by job: one each in order of arrival, then to whom more are worth most each."""
    shares = {}
    for job in jobs[:devices]:
        shares[job.name] = 1
    left = devices - len(shares)
    while left > 0:
        gains = []
        for name, share in shares.items():
            table = tables[name]
            for more in table:
                if share < more <= share + left and table[share] > 0:
                    gain = math.log(max(table[more], 1e-30) / table[share]) / (more - share)
                    gains.append((gain, name, more))
        gain, name, more = max(gains, default=(0, "", 0))
        if gain <= LEAST_GAIN:
            break
        left -= more - shares[name]
        shares[name] = more
    return shares


def simulate(world, planner, count, seed):
    """(jobs, history): what the planner makes of the jobs, until all are done. An event of the
    history is (what, job, ...); "new" are allocations that the job has not had."""
    jobs = make_jobs(world, count, seed)
    shapes = shapes_by_count(world)
    nodes = Nodes(world.cluster)
    history, present, waiting = [], [], list(jobs)
    now_s = 0.0

    def tell(what, job, *event):
        history.append((what, job.name, *event))
        if what != "new":
            getattr(planner, what)(job, *event)

    while waiting or present:
        while waiting and waiting[0].arrival_s <= now_s:
            present.append(waiting.pop(0))
            tell("begin", present[-1])
        plan(present, planner, shapes, nodes, now_s, tell)
        for job in present:
            if not job.place:
                continue
            rate = job.goodput(job.shape, *job.batch)
            begin_s = max(now_s, job.busy_until_s)
            job.trained += rate * max(0.0, now_s + ROUND_S - begin_s)
            if begin_s < now_s + ROUND_S:
                micro_s, step_s = job.application.micro_and_step_s(job.shape, *job.batch)
                tell("observe", job, job.shape, *job.batch, float(micro_s), float(step_s))
            if job.trained >= job.samples:
                job.finished_s = now_s + ROUND_S - (job.trained - job.samples) / rate
                nodes.give_back(job.place)
                tell("end", job)
        present = [job for job in present if math.isnan(job.finished_s)]
        now_s += ROUND_S
    return jobs, history


def plan(present, planner, shapes, nodes, now_s, tell):
    """Moves jobs, and sets their batches."""
    tables = {}
    for job in present:
        counts = [n for n in shapes if n <= max(1, 2 * job.most_devices)]
        if job.most_devices == 0:
            tables[job.name] = {1: 1.0}
            continue
        choices = planner.choose(job, [shapes[n][0] for n in counts])
        tables[job.name] = {n: goodput for n, (_, _, goodput) in zip(counts, choices)}
        here = sum(job.shape)
        if here in tables[job.name]:
            tables[job.name][here] *= WORTH_MOVING
    shares = deal(present, tables, sum(nodes.free) + sum(sum(job.shape) for job in present))
    moved = [job for job in present if shares.get(job.name, 0) != sum(job.shape)]
    for job in moved:
        nodes.give_back(job.place)
    for job in sorted(moved, key=lambda job: -shares.get(job.name, 0)):
        before, job.place = job.place, {}
        for count in sorted((n for n in shapes if n <= shares.get(job.name, 0)), reverse=True):
            place = next(filter(None, map(nodes.place, shapes[count])), None)
            if place:
                job.place = place
                nodes.take(place)
                break
        if job.place != before:
            job.busy_until_s = now_s + RESTART_S
    for job in present:
        if not job.place:
            continue
        shape = job.shape
        if job.most_devices:
            job.batch = planner.choose(job, [shape])[0][:2]
        if not job.most_devices or not job.batch[0]:
            batch, steps = job.allowed(shape)
            job.batch = int(batch[0]), int(steps[0])
        if shape not in job.had:
            tell("new", job, shape, *job.batch, job.trained)
            job.had.add(shape)
        job.most_devices = max(job.most_devices, sum(shape))


# ---- What forecasts were worth.

@dataclass(frozen=True)
class Judged:
    """A forecast at an allocation that its job had not had."""
    job: Job
    known: bool    # whether a job of its application has run before
    first: bool    # the job's first allocation: it has not measured anything yet
    nodes: int
    error: float   # |predicted / measured - 1|, of a step
    lost: float    # share of goodput, by the batch that this planner would have taken
    held: object   # whether its interval holds the step, or None


def judge(planner, jobs, history, only=None):
    """The planner's forecasts where the history has new allocations. With an application's name in
    `only`, it is told of others first, and of each job of this one as if it were the first."""
    fresh = {job.name: copy.copy(job) for job in jobs}
    for job in fresh.values():
        job.had, job.most_devices, job.trained = set(), 0, 0.0
    seen, judged, known = set(), [], {}

    def replay(events):
        for what, name, *event in events:
            job = fresh[name]
            if what == "begin":
                known[name] = job.application.name in seen
            if what == "new":
                shape, batch, steps, job.trained = event
                judged.append(judge_one(planner, job, shape, batch, steps, known[name]))
                job.had.add(shape)
            else:
                getattr(planner, what)(job, *event)
                if what == "observe":
                    seen.add(job.application.name)

    if only is None:
        replay(history)
        return judged
    replay(event for event in history if fresh[event[1]].application.name != only)
    judged.clear()
    for job in jobs:
        if job.application.name == only:
            seen.discard(only)
            replay(event for event in history if event[1] == job.name and event[0] != "end")
            planner.fleet.remove(job.name)
            planner.forget(job)
    return judged


def judge_one(planner, job, shape, batch, steps, known):
    truth_s = float(Truth().seconds(job, shape, batch, steps))
    first = not job.had
    chosen = planner.choose(job, [shape])[0]
    best = best_of(job, shape, Truth().seconds)[2]
    lost = 1 - job.goodput(shape, *chosen[:2]) / best if chosen[0] else 1.0
    interval = planner.interval(job, shape, batch, steps)
    return Judged(job, known, first, len(shape),
                  abs(float(planner.seconds(job, shape, batch, steps)) / truth_s - 1), lost,
                  None if interval is None else interval[0] <= truth_s <= interval[1])


def mean(values):
    values = list(values)
    return statistics.fmean(values) if values else math.nan


def hours(jobs):
    return mean((job.finished_s - job.arrival_s) / 3600 for job in jobs)


PLANNERS = {"fleet": FromFleet, "nothing": FromNothing, "published": Published,
            "truth": lambda cluster: Truth()}


# What is compared: [(title, what of a forecast, which forecasts)].
FIGURES = [
    ("error, application has run before", lambda row: row.error,
     lambda row: row.known and not row.first),
    ("error, application is new", lambda row: row.error,
     lambda row: not row.known and not row.first),
    ("error before a job's first step", lambda row: row.error,
     lambda row: row.known and row.first),
    ("goodput lost by the choice of batch", lambda row: row.lost, lambda row: not row.first),
    ("90 % intervals hold", lambda row: row.held, lambda row: not row.first),
    ("90 % intervals hold on one node", lambda row: row.held,
     lambda row: not row.first and row.nodes == 1),
]


def figures(judged):
    """{title: mean of the forecasts}, nan where there is none."""
    return {title: mean(of(row) for row in judged if keep(row) and of(row) is not None)
            for title, of, keep in FIGURES}


def left_out(world, jobs, history):
    """{application: (mean error where the others have taught, where nobody has)}."""
    alone = judge(FromNothing(world.cluster), jobs, history)
    errors = {}
    for application in world.applications:
        taught = judge(FromFleet(world.cluster), jobs, history, application.name)
        errors[application.name] = tuple(
            mean(row.error for row in rows
                 if row.job.application is application and not row.first)
            for rows in (taught, alone))
    return errors


def report(world, arguments):
    driver = PLANNERS[arguments.driver](world.cluster)
    jobs, history = simulate(world, driver, arguments.jobs, arguments.seed)
    judged = {kind.name: judge(kind(world.cluster), jobs, history)
              for kind in (FromFleet, FromNothing, Published)}
    later = sum(not row.first for row in judged["fleet"])
    print(f"{world.name}: {len(jobs)} jobs of {len(world.applications)} applications on "
          f"{world.cluster.nodes} nodes of {world.cluster.devices_per_node}, planned by "
          f"{driver.name}; {later} allocations that their job had not had")
    print(f"{'':38}" + "".join(f"{name:>14}" for name in judged))
    table = {name: figures(rows) for name, rows in judged.items()}
    for title, _, _ in FIGURES:
        print(f"{title:38}" + "".join(percent(of[title]) for of in table.values()))
    print("\nan application that is new, where the others have taught")
    for application, errors in left_out(world, jobs, history).items():
        print(f"{'  error, ' + application:38}" + "".join(map(percent, errors)))
    print("\nhours that a job takes, where each plans by itself, and more than by the truth")
    best = hours(simulate(world, Truth(), arguments.jobs, arguments.seed)[0])
    for name in ("fleet", "nothing", "published"):
        took = hours(jobs if name == arguments.driver else
                     simulate(world, PLANNERS[name](world.cluster), arguments.jobs,
                              arguments.seed)[0])
        print(f"{'  ' + PLANNERS[name].name:38}{took:12.2f} h{percent(took / best - 1)}")


def percent(value):
    return f"{'-':>14}" if math.isnan(value) else f"{100 * value:12.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", metavar="FOLDER", nargs="*", help="adaptdl, sia-rtx")
    parser.add_argument("--made-up", action="store_true", help="a cluster without measurements")
    parser.add_argument("--jobs", type=int, default=40, help="how many (40)")
    parser.add_argument("--seed", type=int, default=1, help="of the jobs' sizes and arrivals (1)")
    parser.add_argument("--driver", choices=PLANNERS, default="fleet",
                        help="whose history is compared (fleet)")
    arguments = parser.parse_args()
    worlds = [read_world(name) for name in arguments.worlds]
    if arguments.made_up or not worlds:
        worlds.append(made_up_world())
    for world in worlds:
        start = time.perf_counter()
        report(world, arguments)
        print(f"({time.perf_counter() - start:.0f} s)\n")


if __name__ == "__main__":
    main()
