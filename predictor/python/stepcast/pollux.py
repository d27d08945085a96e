"""Goodput functions of Pollux-like schedulers, answered by stepcast's model.

The names, arguments and results are those that such schedulers call; change the import and keep the
code:

    import stepcast.pollux as goodput

    perf_params = goodput.fit_perf_params(num_nodes, num_replicas, atomic_bsz, accum_step_time,
                                          optim_step_time)
    fn = goodput.GoodputFunction(perf_params, goodput.GradParams(sqr, var), init_batch_size)
    fn(num_nodes, num_replicas, atomic_bsz, accum_steps)
    fn.optimize(num_nodes, num_replicas, max_batch_size, atomic_bsz_range, accumulation)

num_nodes and num_replicas are the nodes and devices in use, as evenly spread as can be; atomic_bsz
is the batch of one micro-step on one device; accum_steps are the micro-steps of an update before
its last; batch_size are the samples of one update. All are whole numbers, or arrays that broadcast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import _core, _library
from ._core import Cluster, Plan

__all__ = ["GoodputFunction", "GradParams", "PerfParams", "fit_perf_params"]

# Of a message whose size nobody says [bytes], and how far it may be off, as a standard deviation of
# its logarithm: networks have from one to a thousand MB of gradients.
_NOMINAL_BYTES = 1e8
_NOMINAL_LOG_SD = 1.7


class PerfParams(NamedTuple):
    """Parameters of a job, in SI units: those of stepcast's model (docs/reference/models.md).

    They are made by fit_perf_params, and may be kept as numbers: PerfParams(*values),
    PerfParams(**params._asdict()).
    """

    link_bandwidth_bytes_per_s: float
    flow_bandwidth_bytes_per_s: float
    host_bandwidth_bytes_per_s: float
    link_latency_s: float
    device_latency_s: float
    node_sync_overhead_s: float
    device_sync_overhead_s: float
    host_sharing: float
    hop_spread: float
    host_contention: float
    overlap_share: float
    flow_window_bytes: float
    loss_timeout_s: float
    overlap_contention: float
    fixed_time_s: float
    floor_time_s: float
    sample_time_s: float
    straggler_spread: float
    update_time_s: float
    # What was stated, or taken for it.
    gradient_bytes: float
    nics_per_node: int = 1
    rtt_s: float | None = None
    loss_rate: float | None = None
    strategy: str = "allreduce"


class GradParams(NamedTuple):
    """Of the gradient of one sample batch of the initial size: squared norm, and variance."""

    sqr: float
    var: float


class GoodputFunction:
    """Throughput of a job, and how much of it counts as progress.

    Parameters
        perf_params : PerfParams, or its values
        grad_params : GradParams, or its values
        init_batch_size : samples of an update that all count
    """

    def __init__(self, perf_params, grad_params, init_batch_size):
        self._perf_params = PerfParams(*perf_params)
        self._grad_params = GradParams(*grad_params)
        self._init_batch_size = _whole(init_batch_size, "init_batch_size", 1)
        sqr, var = self._grad_params
        for name, value in self._grad_params._asdict().items():
            if not (math.isfinite(value) and value >= 0):
                raise _library.input_error(name, value, "is out of range", "at least 0")
        # Samples beyond which a larger batch is worth little; no bound where only noise is seen.
        self._noise_scale = self._init_batch_size * var / sqr if sqr > 0 else math.inf * var
        if math.isnan(self._noise_scale):
            self._noise_scale = 0.0  # neither signal nor noise: more samples are worth nothing
        self._made = None

    def __reduce__(self):
        return GoodputFunction, (self._perf_params, self._grad_params, self._init_batch_size)

    def __repr__(self):
        return (f"<GoodputFunction of {self._grad_params}, initial batch "
                f"{self._init_batch_size}>")

    def __call__(self, num_nodes, num_replicas, atomic_bsz, accum_steps):
        """As evaluate."""
        return self._model().evaluate(num_nodes, num_replicas, atomic_bsz, accum_steps, True)

    def evaluate(self, num_nodes, num_replicas, atomic_bsz, accum_steps):
        """Goodput: throughput times efficiency [samples/s].

        Raises InputError for a batch below the initial one.
        """
        return self._model().evaluate(num_nodes, num_replicas, atomic_bsz, accum_steps, True)

    def throughput(self, num_nodes, num_replicas, atomic_bsz, accum_steps):
        """Samples in a second."""
        return self._model().evaluate(num_nodes, num_replicas, atomic_bsz, accum_steps, False)

    def efficiency(self, batch_size):
        """What a sample of a batch is worth, beside one of the initial batch: 1 for that."""
        batch_size = np.asarray(batch_size, dtype=float)
        if math.isinf(self._noise_scale):
            return np.ones_like(batch_size)[()]
        return (self._init_batch_size + self._noise_scale) / (batch_size + self._noise_scale)

    def optimize(self, num_nodes, num_replicas, max_batch_size=None, atomic_bsz_range=None,
                 accumulation=False):
        """The batch of the highest goodput for each allocation.

        Parameters
            num_nodes, num_replicas : allocations
            max_batch_size : most samples of an update; by default the initial batch
            atomic_bsz_range : (least, most) samples of a micro-step; None where there is no limit
            accumulation : whether an update may have several micro-steps

        Returns (goodput, atomic_bsz, accum_steps): numbers for numbers, arrays for arrays. Where no
        batch fits, goodput and atomic_bsz are 0. Where the least micro-steps of all replicas are
        beyond max_batch_size, they are the answer. A single replica keeps the initial batch, or has
        at least two micro-steps: its gradient noise could not be seen otherwise.
        """
        initial = self._init_batch_size
        most = initial if max_batch_size is None else _whole(max_batch_size, "max_batch_size",
                                                             initial)
        least_local, most_local = atomic_bsz_range or (None, None)
        least_local = _whole(least_local or 1, "atomic_bsz_range", 1)
        most_local = _whole(most_local or most, "atomic_bsz_range", least_local)
        return self._model().optimize(num_nodes, num_replicas, most, least_local, most_local,
                                      bool(accumulation))

    def _model(self):
        if self._made is None:
            noise_scale = None if math.isinf(self._noise_scale) else self._noise_scale
            self._made = _core.Goodput(self._perf_params._asdict(), noise_scale,
                                       self._init_batch_size)
        return self._made


def fit_perf_params(num_nodes, num_replicas, atomic_bsz, accum_step_time, optim_step_time, *,
                    gradient_bytes: float | None = None, cluster: Cluster | None = None,
                    strategy: str = "allreduce") -> PerfParams:
    """Parameters of a job from its measured steps.

    Parameters (arrays of one length, an element for each measured configuration)
        num_nodes, num_replicas, atomic_bsz : what was measured
        accum_step_time : seconds of a micro-step that does not synchronise
        optim_step_time : seconds of one that does
        gradient_bytes : what a replica contributes to a synchronisation; where it is not given,
            only the ratio of bytes to bandwidth is learnt
        cluster : what is known of the network, best calibrated; a stepcast.Cluster
        strategy : how gradients are exchanged, of those without servers

    Raises InputError for what is no measurement.
    """
    columns = [np.atleast_1d(column) for column in (num_nodes, num_replicas, atomic_bsz,
                                                    accum_step_time, optim_step_time)]
    nodes, replicas, batches, accum_s, optim_s = np.broadcast_arrays(*columns)
    known = _library.cluster("device", name="job") if cluster is None else cluster
    start = known
    if gradient_bytes is None:
        job = _library.workload("job", gradient_bytes=_NOMINAL_BYTES)
        start = _core.with_unknown_message(known, job, _NOMINAL_LOG_SD)
    else:
        job = _library.workload("job", gradient_bytes=gradient_bytes)
    plans, step_times_s = [], []
    for n, w, b, accum, optim in zip(nodes, replicas, batches, accum_s, optim_s):
        plan = Plan(workers=_whole(w, "num_replicas", 1), nodes=_whole(n, "num_nodes", 1),
                    local_batch=_whole(b, "atomic_bsz", 1), strategy=strategy)
        plans += [plan.replace(strategy="none"), plan]
        step_times_s += [float(accum), float(optim)]
    learnt = _core.learn_together(start, job, plans, step_times_s)
    values = _core.si_parameters(learnt, job)
    fields = {name: values[name] for name in PerfParams._fields if name in values}
    return PerfParams(**fields, gradient_bytes=job.gradient_bytes,
                      nics_per_node=known.nics_per_node, rtt_s=known.rtt_s,
                      loss_rate=known.loss_rate, strategy=strategy)


def _whole(value, name: str, least: int) -> int:
    number = int(value)
    if number != value or number < least:
        raise _library.input_error(name, value, "is out of range",
                                   f"a whole number of at least {least}")
    return number
