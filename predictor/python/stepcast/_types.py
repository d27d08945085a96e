"""Named tuples that calls answer with. Members are numbers, or arrays of one shape."""

from typing import Any, NamedTuple


class StepTimes(NamedTuple):
    """Step times with the 90 % prediction interval of one measured step [s]."""

    step_time_s: Any
    low_s: Any
    high_s: Any


class BatchChoices(NamedTuple):
    """The best batch of each allocation; local_batch 0 where none fits."""

    local_batch: Any
    accumulation_steps: Any
    step_time_s: Any
    throughput_samples_per_s: Any
    statistical_efficiency: Any
    goodput: Any
