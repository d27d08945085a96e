"""Named tuples that calls answer with. Members are numbers, or arrays of one shape."""

from typing import Any, NamedTuple, Optional


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


class PlanField(NamedTuple):
    """What a part of a plan may be; numbers in SI units."""

    meaning: str
    unit: Optional[str]  # of a number; empty for a plain one, None for what is none
    least: Optional[float]  # to `most`: of a number, and of the devices on each node
    most: Optional[float]
    or_nought: bool  # whether 0 is allowed beside the range
    below_most: bool  # whether `most` itself is too much
    words: tuple  # that it is one of; none where there are no such
