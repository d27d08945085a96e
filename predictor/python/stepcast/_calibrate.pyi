# Types of the compiled module. tests/python/stubs_test.py holds them against it.
from typing import Mapping, Optional, Sequence

import numpy as np
import numpy.typing as npt

from ._core import Cluster, Device, Run, Workload

class CalibrationOutcome:
    @property
    def status(self) -> str: ...
    @property
    def usable(self) -> bool: ...
    @property
    def message(self) -> str: ...
    @property
    def cluster(self) -> Optional[Cluster]: ...
    @property
    def mape(self) -> float: ...
    @property
    def iterations(self) -> int: ...
    @property
    def predicted_s(self) -> npt.NDArray[np.float64]: ...
    @property
    def log_ratio(self) -> npt.NDArray[np.float64]: ...

def fit(
    cluster: Cluster,
    runs: Sequence[Run],
    workloads: Mapping[str, Workload],
    devices: Mapping[str, Device],
    step_log_sd: float = 0.06,
    max_iterations: int = 200,
    profiled_plans: int = 100,
    threads: int = 1,
) -> CalibrationOutcome: ...
