// The fit of the curve of operations to tables of times.
#include "calibrate/device_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
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

// At the least cost the pull of the rows on each value is that of its prior: a row pulls by 16 r /
// (1 + (r / 0.25)^2)^(1/2), r = ln(predicted / measured).
TEST(DeviceFit, StandsWhereRowsAndPriorsPullAlike) {
  std::vector<MeasuredOperation> rows;
  const DeviceFit prior = PriorFit();
  const auto add = [&](MeasuredOperation row, double times) {
    row.seconds = prior.Predict(row) * times;
    rows.push_back(row);
  };
  for (const double times : {1.3, 1.4, 6.0}) {
    add(RowOf(CopyOp{100'000'000}, 1), times);
    add(RowOf(Convolution()), times / 2);
  }
  for (const TableParameter call : {kProductCall, kLinearCall, kConvolutionCall, kElementCall}) {
    MeasuredOperation row = call == kConvolutionCall ? RowOf(Convolution(), 1)
                            : call == kElementCall   ? RowOf(CopyOp{1'000'000}, 1)
                                                     : RowOf(DenseOp{1, 512, 512}, 1);
    row.host_call = 20e-6;
    row.call = call;
    add(row, 1.5);
  }
  const DeviceFit fit = FitDevices(rows);
  ASSERT_TRUE(fit.converged);
  const auto pull_of = [&](const auto& move) {
    double pull = 0;
    for (const MeasuredOperation& row : rows) {
      const auto off = [&](double by) {
        DeviceFit moved = fit;
        move(&moved, std::exp(by));
        return std::log(moved.Predict(row) / row.seconds);
      };
      const double slope = (off(1e-5) - off(-1e-5)) / 2e-5;
      pull += 16 * off(0) / std::sqrt(1 + 16 * off(0) * off(0)) * slope;
    }
    return pull;
  };
  int pulled = 0;
  const auto expect = [&](double pull, double value, double before, double log_sd) {
    const double back = std::log(value / before) / (log_sd * log_sd);
    EXPECT_NEAR(pull, -back, 0.1 + 0.05 * std::abs(back)) << before;
    pulled += std::abs(back) > 0.5 ? 1 : 0;
  };
  for (std::size_t i = 0; i < kCurveParameterSpecs.size(); ++i) {
    const CurveParameterSpec& spec = kCurveParameterSpecs[i];
    const double value = fit.curve.si[i] / spec.si_per_unit;
    if (value < 1.01 * spec.low || value > 0.99 * spec.high) continue;
    SCOPED_TRACE(std::string(spec.name));
    expect(pull_of([&](DeviceFit* its, double factor) { its->curve.si[i] *= factor; }), value,
           spec.prior, spec.log_sd);
  }
  constexpr double kBefore[] = {1.2, 1.8, 2.5, 1.1, 1.3, 1.8, 10e-6, 30e-6, 1.7, 200e-6};
  constexpr double kLogSds[] = {0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1, 1, 0.5, 1};
  for (std::size_t i = 0; i < fit.table.size(); ++i) {
    expect(pull_of([&](DeviceFit* its, double factor) { its->table[i] *= factor; }), fit.table[i],
           kBefore[i], kLogSds[i]);
  }
  EXPECT_GT(pulled, 2);
}

}  // namespace
}  // namespace stepcast
