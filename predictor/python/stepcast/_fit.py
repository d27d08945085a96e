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
              max_iterations: int = 200, profiled_plans: int = 100) -> CalibrationOutcome:
    """Learns a cluster's parameters from measured runs.

    Parameters
        cluster : as described; a calibration that it has is not read
        runs : Run objects, or the path of a CSV file
        workloads : by their names in the runs, where the catalogue has them not
        step_log_sd : scatter of ln(step) that a first fit assumes
        max_iterations : of the search
        profiled_plans : up to so many different plans, 95 % intervals follow the cost itself, which
            takes some tens of times as long as the fit

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
    found, known, listed = {}, {}, []
    for run in runs:
        device = _core.find_device(devices, run.device)
        if device is not None:
            found[device.name] = device
            if device.name != run.device:
                run = Run(run.workload, device.name, run.plan, run.step_time_s, run.exposed_sync_s,
                          run.source)
        if run.workload not in known:
            own = (workloads or {}).get(run.workload)
            known[run.workload] = own or _library.workload(run.workload)
        listed.append(run)
    return _calibrate.fit(cluster, listed, known, found, step_log_sd, max_iterations,
                          profiled_plans)
