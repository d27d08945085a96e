// The fit of the curve of operations to tables of times.
#include "calibrate/device_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {
namespace {

DeviceSheet Sheet() {
  DeviceSheet sheet;
  sheet.flop_per_s = 10e12;
  sheet.bytes_per_s = 500e9;
  sheet.multiprocessors = 50;
  return sheet;
}

MeasuredOperation RowOf(const Operation& operation, double batch = 32) {
  MeasuredOperation row;
  row.sheet = Sheet();
  row.operation = operation;
  row.batch = batch;
  return row;
}

ConvolutionOp Convolution() {
  ConvolutionOp op;
  op.channels = op.filters = 64;
  op.input = {56, 56};
  op.kernel = op.stride = op.dilation = {1, 1};
  return op;
}

// Nothing was measured: the values are those of the priors.
DeviceFit PriorFit() { return FitDevices({}); }

double Curve(const DeviceFit& fit, const MeasuredOperation& row, double burst = 0) {
  return OperationCurve<double>(row.sheet, fit.curve, burst)
      .Time(row.operation, row.pass, row.batch);
}

TEST(DeviceFit, WithoutRowsIsItsPriors) {
  const DeviceFit fit = PriorFit();
  EXPECT_TRUE(fit.converged);
  for (std::size_t i = 0; i < kCurveParameterSpecs.size(); ++i) {
    const CurveParameterSpec& spec = kCurveParameterSpecs[i];
    EXPECT_NEAR(fit.curve.si[i] / (spec.prior * spec.si_per_unit), 1, 1e-6) << spec.name;
  }
}

// What a table has beside the curve: in a loop a share of each call, in single calls the host's.
TEST(DeviceFit, RowsByHand) {
  const DeviceFit fit = PriorFit();
  MeasuredOperation row = RowOf(Convolution());
  EXPECT_NEAR(fit.Predict(row) / (Curve(fit, row) + fit.table[kLoopConvolution]), 1, 1e-12);

  row = RowOf({});
  row.recurrence = MeasuredRecurrence{4, 100, 512};
  const double recurrent = OperationCurve<double>(row.sheet, fit.curve, 0.0)
                               .Recurrent(4, 100, 0, 512, 1, CurvePass::kForward, row.batch);
  EXPECT_NEAR(fit.Predict(row) / (recurrent + fit.table[kLoopRecurrent]), 1, 1e-12);

  row = RowOf(DenseOp{1, 1024, 1024});
  row.host_call = 20e-6;
  row.call = kLinearCall;
  const double product = Curve(fit, row, fit.table[kBurst]);
  EXPECT_NEAR(fit.Predict(row) / (product + fit.table[kLinearCall] * 20e-6), 1, 1e-12);

  row = RowOf(CopyOp{1'000'000}, 1);
  row.host_call = 20e-6;
  row.call = kElementCall;
  const double device = Curve(fit, row, fit.table[kBurst]);
  const double host = fit.table[kElementCall] * 20e-6;
  const double j = fit.table[kCallSharpness];
  const double both = std::pow(std::pow(device, j) + std::pow(host, j), 1 / j);
  EXPECT_NEAR(fit.Predict(row) / both, 1, 1e-12);
}

// Copies that reach half of the memory's bandwidth say so, whatever was believed before.
TEST(DeviceFit, GoesWhereTheRowsAre) {
  std::vector<MeasuredOperation> rows;
  for (const std::int64_t elements : {100'000'000, 200'000'000, 300'000'000, 400'000'000}) {
    MeasuredOperation row = RowOf(CopyOp{elements}, 1);
    row.seconds = static_cast<double>(elements) * 8 / (0.5 * row.sheet.bytes_per_s);
    for (int i = 0; i < 5; ++i) rows.push_back(row);
  }
  const DeviceFit fit = FitDevices(rows);
  EXPECT_TRUE(fit.converged);
  EXPECT_NEAR(fit.curve[kElementBandwidth], 0.5, 0.05);
  EXPECT_NEAR(fit.curve[kNormBandwidth], kCurveParameterSpecs[kNormBandwidth].prior, 1e-3)
      << "of which no row tells";
}

}  // namespace
}  // namespace stepcast
