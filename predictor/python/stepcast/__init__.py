"""stepcast forecasts the training step of data-parallel training, with its certainty.

    import stepcast

    cluster = stepcast.read_cluster("gce-t4")
    predictor = stepcast.Predictor(cluster, stepcast.workload("resnet50"))
    plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64)
    predictor.predict(plan)                           # one plan, in full
    compiled = predictor.compile(plan)                # to be asked many times
    compiled.predict(workers=[4, 8, 16], devices_per_node=4, nodes=[1, 2, 4])   # seconds, an array

Numbers are in SI units, which stand in the names: step_time_s, bandwidth_bytes_per_s. Bad input
raises InputError. stepcast.pollux has the interface of the goodput functions of Pollux-like
schedulers.
"""

from ._core import (
    Cluster,
    CompiledPlan,
    Device,
    Fleet,
    InputError,
    Observation,
    OnlineCalibration,
    Parameter,
    Plan,
    Prediction,
    Predictor,
    Run,
    Workload,
    __version__,
    parse_cluster,
    parse_workload,
    plan_fields,
    read_runs,
    read_workload,
    workload_names,
)
from ._fit import calibrate
from ._library import (
    cluster,
    cluster_names,
    data_folder,
    find_device,
    read_cluster,
    read_devices,
    workload,
)
from ._types import BatchChoices, PlanField, StepTimes

__all__ = [
    "BatchChoices",
    "Cluster",
    "CompiledPlan",
    "Device",
    "Fleet",
    "InputError",
    "Observation",
    "OnlineCalibration",
    "Parameter",
    "Plan",
    "PlanField",
    "Prediction",
    "Predictor",
    "Run",
    "StepTimes",
    "Workload",
    "__version__",
    "calibrate",
    "cluster",
    "cluster_names",
    "data_folder",
    "find_device",
    "parse_cluster",
    "parse_workload",
    "plan_fields",
    "read_cluster",
    "read_devices",
    "read_runs",
    "read_workload",
    "workload",
    "workload_names",
]



def _itself(self, memo=None):
    return self


# What is shown, and pickled, is the package; what never changes is its own copy.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
for _name in ("Cluster", "CompiledPlan", "Device", "Observation", "Parameter", "Plan", "Prediction",
              "Predictor", "Run", "Workload"):
    globals()[_name].__copy__ = globals()[_name].__deepcopy__ = _itself
del _name
