"""Fitting a cluster to measured runs, where stepcast was built with Ceres."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from . import _core, _library
from ._core import Cluster, Run, Workload

if TYPE_CHECKING:
    from ._calibrate import CalibrationOutcome


def calibrate(cluster: Cluster, runs: str | os.PathLike[str] | Iterable[Run], *,
              workloads: Mapping[str, Workload] | None = None, step_log_sd: float = 0.06,
              max_iterations: int = 200, profiled_plans: int = 100,
              threads: int = 1) -> CalibrationOutcome:
    """Learns a cluster's parameters from measured runs.

    Parameters
        cluster : as described; a calibration that it has is not read
        runs : Run objects, or the path of a CSV file
        workloads : by their names in the runs, where the catalogue has them not
        step_log_sd : scatter of ln(step) that a first fit assumes
        max_iterations : of the search
        profiled_plans : up to so many different plans, 95 % intervals follow the cost itself, which
            takes some tens of times as long as the fit
        threads : that these intervals, and fits to hundreds of plans and more, share; the outcome
            does not depend on it

    Returns a CalibrationOutcome; the calibrated cluster is its `cluster`. Raises InputError for
    runs that no model covers, and ImportError where stepcast was built without Ceres.
    """
    try:
        from . import _calibrate
    except ImportError as error:
        text = "this stepcast was built without calibration, which needs Ceres"
        raise ImportError(text) from error
    if isinstance(runs, (str, os.PathLike)):
        runs = _core.read_runs(os.fspath(runs))
    devices = list(_library.read_devices())
    if cluster.device_facts is not None:
        devices.insert(0, cluster.device_facts)
    runs = list(runs)
    # What runs call a network or a device, and what is meant by it.
    meant = {name: (workloads or {}).get(name) or _library.workload(name)
             for name in {run.workload: None for run in runs}}
    called: dict[str, Workload] = {}
    for name, network in meant.items():
        if called.setdefault(network.name, network) != network:
            raise _library.input_error("workloads", name, f"is another {network.name} than one of "
                                       "the same name", "networks with names of their own")
    found = {name: device for name in {run.device for run in runs}
             if (device := _core.find_device(devices, name)) is not None}
    return _calibrate.fit(cluster, runs, meant, found, step_log_sd, max_iterations,
                          profiled_plans, threads)
