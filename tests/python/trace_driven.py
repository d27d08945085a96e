#!/usr/bin/env python3
"""A small cluster in simulated time, planned by goodput functions.

    trace_driven.py                     planned with stepcast.pollux
    trace_driven.py --goodput FILE.py   planned with another module of the same interface

Jobs arrive over some hours on 8 nodes of 4 devices. Each minute the devices are dealt out anew: one
to each job, and then, one after another, to the job whose goodput grows by the largest share. A job
that has changed stands still for half a minute. What the planner knows of a job is what it has
measured of it; how long a step really takes is the simulation's alone, and neither model's formula.
"""

import argparse
import importlib.util
import math
import random
import time
from dataclasses import dataclass, field

import numpy as np

NODES = 8
DEVICES_PER_NODE = 4
MINUTE_S = 60.0
RESTART_S = 30.0
LINK_BYTES_PER_S = 1.1e9
HOST_BYTES_PER_S = 6e9


@dataclass
class Job:
    name: str
    arrival_s: float
    samples: float  # of the initial batch's worth, to be trained on
    initial_batch: int
    most_batch: int
    most_local_batch: int
    noise: float  # gradient noise scale over initial batch
    fixed_s: float
    sample_s: float
    gradient_bytes: float

    trained: float = 0.0
    finished_s: float = math.nan
    replicas: int = 0
    batch: tuple = (0, 0)  # of a micro-step, micro-steps before the last
    busy_until_s: float = 0.0  # with starting anew
    rows: dict = field(default_factory=dict)
    function: object = None
    fitted: int = 0

    def micro_step_s(self, batch):
        return self.fixed_s + self.sample_s * max(batch, 4)

    def sync_s(self, nodes, replicas, batch):
        """What the backward pass does not hide of an exchange."""
        if replicas == 1:
            return 0.0
        volume = 2 * self.gradient_bytes * (replicas - 1) / replicas
        rate = HOST_BYTES_PER_S if nodes == 1 else LINK_BYTES_PER_S * (0.6 if nodes == 2 else 1)
        whole = volume / rate + 2e-4 * replicas + 2e-3
        return max(whole - 0.5 * self.micro_step_s(batch), 0.12 * whole)

    def worth(self, batch):
        return (1 + self.noise) / (batch / self.initial_batch + self.noise)


def trace():
    """The same jobs each time."""
    kinds = {
        "vision": (128, 4096, 256, 8.0, 0.02, 0.0030, 1.0e8),
        "language": (12, 384, 12, 12.0, 0.05, 0.0500, 4.4e8),
        "speech": (20, 640, 40, 6.0, 0.10, 0.0120, 1.6e8),
        "small": (128, 2048, 1024, 3.0, 0.01, 0.0004, 4.5e7),
    }
    dice = random.Random(7)
    jobs = []
    arrival_s = 0.0
    for number, kind in enumerate(["vision", "small", "language", "speech"] * 2):
        initial, most, local, noise, fixed_s, sample_s, size = kinds[kind]
        alone = initial / (fixed_s + sample_s * initial)
        hours = dice.uniform(1.5, 5.0)
        jobs.append(Job(f"{kind}-{number}", arrival_s, alone * 3600 * hours, initial, most, local,
                        noise, fixed_s, sample_s, size))
        arrival_s += dice.uniform(5, 25) * 60
    return jobs


def nodes_for(replicas):
    return -(-replicas // DEVICES_PER_NODE)


def measure(job, dice):
    """Adds what the job's present configuration was measured to take, with its scatter."""
    batch, _ = job.batch
    nodes = nodes_for(job.replicas)
    micro_s = job.micro_step_s(batch) * dice.lognormvariate(0, 0.03)
    step_s = micro_s + job.sync_s(nodes, job.replicas, batch) * dice.lognormvariate(0, 0.05)
    job.rows.setdefault((nodes, job.replicas, batch), (micro_s, step_s))


def learn(job, goodput):
    if len(job.rows) == job.fitted:
        return
    nodes, replicas, batch = (np.array(column) for column in zip(*job.rows))
    micro_s, step_s = (np.array(column) for column in zip(*job.rows.values()))
    params = goodput.fit_perf_params(nodes, replicas, batch, micro_s, step_s)
    # Of a noise scale that is `noise` initial batches.
    job.function = goodput.GoodputFunction(params, goodput.GradParams(1.0, job.noise),
                                           job.initial_batch)
    job.fitted = len(job.rows)


def best_batches(job):
    """(goodput, local batch, micro-steps before the last) for each number of replicas from 0 on."""
    most = min(NODES * DEVICES_PER_NODE, 2 * max(key[1] for key in job.rows))
    replicas = np.arange(1, most + 1)
    answers = job.function.optimize(-(-replicas // DEVICES_PER_NODE), replicas,
                                    max_batch_size=job.most_batch,
                                    atomic_bsz_range=(1, job.most_local_batch), accumulation=True)
    return [(0.0, 0, 0)] + list(zip(*(column.tolist() for column in answers)))


def deal(jobs):
    """Devices by job: one each in order of arrival, then to whom one more is worth most."""
    left = NODES * DEVICES_PER_NODE
    shares, tables = {}, {}
    for job in jobs:
        if left == 0:
            break
        shares[job.name] = 1
        left -= 1
        if job.function is not None:
            tables[job.name] = best_batches(job)
    while left > 0:
        gains = {name: table[shares[name] + 1][0] / table[shares[name]][0]
                 for name, table in tables.items()
                 if shares[name] + 1 < len(table) and table[shares[name]][0] > 0}
        name = max(gains, key=gains.get, default=None)
        if name is None or gains[name] <= 1.02:
            break
        shares[name] += 1
        left -= 1
    return shares, tables


def run(goodput):
    """The jobs, finished; at most a simulated week."""
    dice = random.Random(11)
    jobs = trace()
    for minute in range(7 * 24 * 60):
        now_s = minute * MINUTE_S
        present = [job for job in jobs if job.arrival_s <= now_s and math.isnan(job.finished_s)]
        if not present and now_s > jobs[-1].arrival_s:
            break
        shares, tables = deal(present)
        for job in present:
            replicas = shares.get(job.name, 0)
            batch = (min(job.most_local_batch, job.initial_batch),
                     -(-job.initial_batch // job.most_local_batch) - 1)
            if replicas and job.name in tables:
                batch = tables[job.name][replicas][1:]
            if (replicas, batch) != (job.replicas, job.batch):
                job.busy_until_s = now_s + RESTART_S
                job.replicas, job.batch = replicas, batch
            if job.replicas == 0:
                continue
            local, before = job.batch
            nodes = nodes_for(job.replicas)
            step_s = (job.micro_step_s(local) * (before + 1) +
                      job.sync_s(nodes, job.replicas, local))
            samples = local * (before + 1) * job.replicas
            rate = samples / step_s * job.worth(samples)
            begin_s = max(now_s, job.busy_until_s)
            job.trained += rate * (now_s + MINUTE_S - begin_s)
            if job.trained >= job.samples:
                job.finished_s = now_s + MINUTE_S - (job.trained - job.samples) / rate
            measure(job, dice)
            learn(job, goodput)
    return jobs


def alone(job):
    """Hours on one device with the initial batch."""
    steps = -(-job.initial_batch // job.most_local_batch)
    local = -(-job.initial_batch // steps)
    return job.samples / (local * steps) * steps * job.micro_step_s(local) / 3600


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goodput", metavar="FILE.py", help="plan with this module")
    arguments = parser.parse_args()
    if arguments.goodput:
        spec = importlib.util.spec_from_file_location("goodput", arguments.goodput)
        goodput = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(goodput)
    else:
        import stepcast.pollux as goodput
    start = time.perf_counter()
    jobs = run(goodput)
    print("job          arrives  takes  alone")
    for job in jobs:
        print(f"{job.name:12} {job.arrival_s / 3600:5.1f} h "
              f"{(job.finished_s - job.arrival_s) / 3600:5.1f} h {alone(job):5.1f} h")
    mean = sum(job.finished_s - job.arrival_s for job in jobs) / len(jobs) / 3600
    end = max(job.finished_s for job in jobs) / 3600
    print(f"A job takes {mean:.2f} h on average; all are done after {end:.2f} h "
          f"(planned within {time.perf_counter() - start:.1f} s).")


if __name__ == "__main__":
    main()
