// The extension module stepcast._core; the package stepcast shows what is public of it.
#include "predictor/python/bindings.h"

PYBIND11_MODULE(_core, m) {
  using namespace stepcast::python;  // NOLINT(google-build-using-namespace)
  m.doc() = "The compiled part of stepcast.";
  m.attr("__version__") = STEPCAST_VERSION;
  BindErrors(&m);
  BindRecords(&m);
  BindPlan(&m);
  BindCompiledPlan(&m);
  BindPredictor(&m);
  BindOnlineCalibration(&m);
  BindGoodput(&m);
}
