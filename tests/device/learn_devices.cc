// Fits the curve of operations to public tables and judges it on each GPU that the fit left out:
// what tools/learn_devices runs. Its arguments: the folder of the tables, and words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "calibrate/device_fit.h"
#include "data/io/csv.h"
#include "data/io/machines.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/workloads/catalog.h"
#include "model/compute/sheet_compute.h"
#include "model/numeric/p_norm.h"

namespace stepcast {
namespace {

struct Row : MeasuredOperation {
  std::string kind;  // as the report names it
  std::string family;
};

// The tables' names of devices, ours, and what is left out together.
struct Known {
  const char* table;
  const char* name;
  const char* family;
};
constexpr Known kDeepBench[] = {{"v100", "v100", "v100"},
                                {"p100", "p100_pcie", "p100"},
                                {"gtx_1080_ti", "gtx_1080_ti", "gtx_1080_ti"},
                                {"titan_x_pascal", "titan_x_pascal", "titan_x_pascal"},
                                {"titan_xp", "titan_xp", "titan_xp"},
                                {"m40", "m40", "m40"},
                                {"titan_x_maxwell", "titan_x_maxwell", "titan_x_maxwell"}};
constexpr Known kPyTorch[] = {{"v100_pcie", "v100_pcie", "v100"},
                              {"p100_pcie", "p100_pcie", "p100"},
                              {"t4", "t4", "t4"},
                              {"a100_40gb_pcie", "a100_pcie", "a100"}};

template <std::size_t N>
const Known& Find(const Known (&list)[N], const std::string& name) {
  const auto it = std::find_if(std::begin(list), std::end(list),
                               [&](const Known& known) { return name == known.table; });
  if (it == std::end(list)) throw InputError({"", 0, "device"}, name, "is unknown here", "");
  return *it;
}

class Fields {
 public:
  Fields(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}
  const std::string& Text(const char* column) const {
    return row_.fields[table_.RequiredColumn(column)];
  }
  double Number(const char* column, double without = 1) const {
    const std::size_t at = table_.RequiredColumn(column);
    const std::string& text = row_.fields[at];
    return text.empty() ? without : ParseNumber(text, table_.Place(row_, at), 0, 1e15);
  }
  std::int64_t Whole(const char* column) const { return static_cast<std::int64_t>(Number(column)); }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

template <std::size_t N>
Row Begin(const Known (&list)[N], const std::string& device, Precision precision) {
  static const std::vector<Device> devices =
      ReadDevices(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gpus.yaml");
  const Known& known = Find(list, device);
  Row row;
  row.device = known.name;
  row.family = known.family;
  row.sheet = SheetOf(FindDevice(devices, known.name).value(), precision).value();
  return row;
}

// Calls one after another in a loop.
std::vector<Row> ReadDeepBench(const std::string& folder) {
  const CsvTable table = CsvTable::Read(folder + "/gpu_ops_deepbench.csv");
  std::vector<Row> rows;
  for (const CsvRow& csv : table.rows()) {
    const Fields fields(table, csv);
    const std::string& precision = fields.Text("precision");
    if (precision == "fp16_fp32math") continue;  // nothing trains so
    const bool half = precision == "fp16";
    Row row = Begin(kDeepBench, fields.Text("device"), half ? Precision::kFp16 : Precision::kFp32);
    row.seconds = fields.Number("time_ms") * 1e-3;
    const std::string& pass = fields.Text("pass");
    if (pass == "backward") continue;  // both gradients in one figure
    row.pass = pass == "forward"         ? CurvePass::kForward
               : pass == "backward_data" ? CurvePass::kDataGradient
                                         : CurvePass::kWeightGradient;
    const std::string& kind = fields.Text("kind");
    if (kind == "gemm") {
      row.kind = "product";
      row.operation = DenseOp{fields.Whole("m"), fields.Whole("k"), fields.Whole("n")};
    } else if (kind == "conv") {
      row.kind = "convolution";
      row.batch = fields.Number("batch");
      ConvolutionOp op;
      op.channels = fields.Whole("channels");
      op.filters = fields.Whole("filters");
      op.kernel = {fields.Whole("kernel_h"), fields.Whole("kernel_w")};
      op.stride = {fields.Whole("stride_h"), fields.Whole("stride_w")};
      op.input = {fields.Whole("height"), fields.Whole("width")};
      const std::int64_t v = static_cast<std::int64_t>(fields.Number("pad_h", 0));
      const std::int64_t h = static_cast<std::int64_t>(fields.Number("pad_w", 0));
      op.padding = {v, h, v, h};
      // An image has no gradient.
      if (op.channels <= 3 && row.pass == CurvePass::kDataGradient) continue;
      row.operation = op;
    } else {
      row.kind = "recurrent";
      row.batch = fields.Number("batch");
      row.recurrence = MeasuredRecurrence{kind == "lstm"  ? 4.0
                                          : kind == "gru" ? 3.0
                                                          : 1.0,
                                          fields.Number("steps"), fields.Number("hidden")};
    }
    if (half) row.kind += ", 16 bit";
    rows.push_back(std::move(row));
  }
  return rows;
}

// Single calls, the best of 25.
std::vector<Row> ReadPyTorch(const std::string& folder) {
  const CsvTable table = CsvTable::Read(folder + "/gpu_ops_pytorch.csv");
  std::vector<Row> rows;
  std::map<std::string, double> shortest;
  for (const CsvRow& csv : table.rows()) {
    const Fields fields(table, csv);
    Row row = Begin(kPyTorch, fields.Text("device"), Precision::kFp32);
    row.seconds = fields.Number("latency_ms") * 1e-3;
    const std::string& op = fields.Text("op");
    const auto b = fields.Whole("b");
    const auto m = fields.Whole("m");
    const auto n = fields.Whole("n");
    const auto k = fields.Whole("k");
    row.kind = "element by element";
    row.call = kElementCall;
    if (op == "linear") {
      row.kind = "product";
      row.call = kLinearCall;
      row.operation = DenseOp{m, n, k};
    } else if (op == "bmm") {
      row.kind = "product";
      row.call = kProductCall;
      row.operation = BatchedProductOp{b, m, k, n};
    } else if (op == "conv") {
      row.kind = "convolution";
      row.call = kConvolutionCall;
      row.batch = static_cast<double>(b);
      const auto size = fields.Whole("size");
      const auto kernel = fields.Whole("kernel");
      const auto pad = fields.Whole("padding");
      ConvolutionOp conv;
      conv.channels = fields.Whole("channels");
      conv.filters = fields.Whole("filters");
      conv.kernel = {kernel, kernel};
      conv.input = {size, size};
      conv.stride = {fields.Whole("stride"), fields.Whole("stride")};
      conv.padding = {pad, pad, pad, pad};
      row.operation = conv;
    } else if (op == "softmax") {
      row.kind = op;
      row.call = kSoftmaxCall;
      row.operation = ActivationOp{Function::kSoftmax, b, n};
    } else if (op == "ln") {
      row.kind = "normalisation";
      row.call = kNormCall;
      row.operation = NormalizationOp{NormalizationKind::kLayer, n, {b, 1}};
    } else if (op == "add" || op == "mul" || op == "div" || op == "pow") {
      row.operation = ElementwiseOp{ElementwiseKind::kAdd, n, b, false};
    } else {  // one operand, or one of them a number
      row.operation = ActivationOp{Function::kRelu, b, n};
    }
    if (op == "add") {  // which the host's time of a call is told from
      auto& least = shortest.try_emplace(row.device, row.seconds).first->second;
      least = std::min(least, row.seconds);
    }
    rows.push_back(std::move(row));
  }
  for (Row& row : rows) row.host_call = shortest.at(row.device);
  return rows;
}

// The largest products that boards were seen to reach; each is a family of its own chip.
std::vector<Row> ReadProducts() {
  const CsvTable table =
      CsvTable::Read(std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/matrix-products.csv");
  constexpr Known kChips[] = {{"v100", "v100", "v100"},
                              {"v100s_pcie", "v100s_pcie", "v100"},
                              {"t4", "t4", "t4"},
                              {"a100_80gb", "a100_80gb", "a100"},
                              {"a100_pcie", "a100_pcie", "a100"},
                              {"a40", "a40", "ga102"},
                              {"rtx_a6000", "rtx_a6000", "ga102"},
                              {"rtx_4090", "rtx_4090", "ad102"},
                              {"l4", "l4", "ad104"},
                              {"l40s", "l40s", "ad102"},
                              {"l20", "l20", "ad102"},
                              {"h20", "h20", "h100"},
                              {"h100", "h100", "h100"},
                              {"h100_pcie", "h100_pcie", "h100"},
                              {"h800_pcie", "h800_pcie", "h100"},
                              {"h200", "h200", "h100"},
                              {"b200", "b200", "b200"},
                              {"b300", "b300", "b200"},
                              {"gb200", "gb200", "b200"},
                              {"rtx_pro_6000", "rtx_pro_6000", "gb202"}};
  std::vector<Row> rows;
  for (const CsvRow& csv : table.rows()) {
    const Fields fields(table, csv);
    const Precision precision = ParseEnum<Precision>(fields.Text("precision"), {});
    Row row = Begin(kChips, fields.Text("device"), precision);
    if (precision == Precision::kFp8) {  // without the casts of a layer
      row.sheet.flop_per_s = row.sheet.narrow_flop_per_s;
      row.sheet.narrow_flop_per_s = 0;
      row.sheet.element_bytes = 1;
    }
    const std::int64_t m = fields.Whole("m");
    const std::int64_t n = fields.Whole("n");
    const std::int64_t k = fields.Whole("k");
    row.kind = "largest products";
    row.operation = DenseOp{m, k, n};
    row.seconds = 2.0 * m * n * k / (fields.Number("tflop_per_s") * 1e12);
    rows.push_back(std::move(row));
  }
  return rows;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * values.size()))];
}

// A line of errors of |predicted / measured - 1|, in per cent.
struct Errors {
  std::vector<double> relative;
  std::vector<double> logs;
  void Add(double predicted, double measured) {
    relative.push_back(std::abs(predicted / measured - 1));
    logs.push_back(std::log(predicted / measured));
  }
  std::string Text() const {
    std::vector<double> sizes;
    for (const double log : logs) sizes.push_back(std::abs(log));
    return fmt::format("{:5} {:8.1f} {:8.1f} {:+8.1f} {:8.2f}", relative.size(),
                       100 * Quantile(relative, 0.5), 100 * Quantile(relative, 0.9),
                       100 * std::expm1(Quantile(logs, 0.5)), Quantile(sizes, 0.9) / 1.645);
  }
};

void Print(const DeviceFit& fit) {
  for (std::size_t i = 0; i < kCurveParameterCount; ++i) {
    const CurveParameterSpec& spec = kCurveParameterSpecs[i];
    fmt::print("  {:20} {:8.4g} {:3} (in the program {:.4g})\n", spec.name,
               fit.curve.si[i] / spec.si_per_unit, spec.unit, spec.value);
  }
  fmt::print("  of the tables:");
  for (const double value : fit.table) fmt::print(" {:.3g}", value);
  fmt::print("\n");
}

std::vector<MeasuredOperation> Only(const std::vector<Row>& rows, const std::string& without) {
  std::vector<MeasuredOperation> kept;
  for (const Row& row : rows) {
    if (row.family != without) kept.push_back(row);
  }
  return kept;
}

// Steps of one T4 that AdaptDL's authors measured, by the program's curve: no fit knows of them.
// ResNet-50 was trained in mixed precision.
void JudgeSteps(const std::string& folder) {
  struct Job {
    const char* file;
    const char* workload;
    Precision precision;
  };
  constexpr Job kJobs[] = {{"bert", "bert_base", Precision::kFp32},
                           {"cifar10", "resnet18_cifar10", Precision::kFp32},
                           {"deepspeech2", "deepspeech2", Precision::kFp32},
                           {"imagenet", "resnet50", Precision::kFp16},
                           {"imagenet", "resnet50", Precision::kFp32}};
  const Device t4 =
      FindDevice(ReadDevices(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gpus.yaml"), "t4")
          .value();
  fmt::print("\n{:40} {}", "steps on one T4, per cent", "rows   median    nine     bias    sd\n");
  for (const Job& job : kJobs) {
    const CsvTable table = CsvTable::Read(folder + "/adaptdl/" + job.file + "_placements.csv");
    Workload workload = *FindWorkload(job.workload);
    workload.precision = job.precision;
    const SheetCompute sheet(workload, t4);
    Errors errors;
    std::string shares;
    for (const CsvRow& csv : table.rows()) {
      const Fields fields(table, csv);
      if (fields.Text("placement") != "1") continue;
      const SheetTime time = sheet.At(fields.Number("local_bsz"));
      const Duration<> step =
          PNorm(time.host, time.forward + time.backward, FittedCurve<double>::kKneeSharpness) +
          time.update;
      errors.Add(step.si(), fields.Number("step_time"));
      shares = fmt::format("backward share {:.2f}", time.backward / (time.forward + time.backward));
    }
    fmt::print("{:40}{}  {}\n", job.workload, errors.Text(), shares);
  }
}

int Run(const std::string& folder, bool fit_only) {
  JudgeSteps(folder);
  std::vector<Row> rows = ReadDeepBench(folder);
  const std::vector<Row> pytorch = ReadPyTorch(folder);
  rows.insert(rows.end(), pytorch.begin(), pytorch.end());
  const std::vector<Row> products = ReadProducts();
  rows.insert(rows.end(), products.begin(), products.end());
  const DeviceFit all = FitDevices(Only(rows, ""));
  fmt::print("Learnt from all {} rows{}:\n", rows.size(), all.converged ? "" : " (no end found)");
  Print(all);
  std::map<std::string, Errors> in_sample;
  for (const Row& row : rows) in_sample[row.kind].Add(all.Predict(row), row.seconds);
  const char* const kHeader = "rows   median    nine     bias    sd\n";
  fmt::print("\n{:40} {}", "in sample, per cent", kHeader);
  for (const auto& [kind, errors] : in_sample) fmt::print("{:40}{}\n", kind, errors.Text());
  if (fit_only) return 0;
  std::set<std::string> families;
  for (const Row& row : rows) families.insert(row.family);
  std::map<std::string, Errors> kinds;
  std::map<std::string, Errors> parts;
  for (const std::string& family : families) {
    const DeviceFit fit = FitDevices(Only(rows, family));
    for (const Row& row : rows) {
      if (row.family != family) continue;
      const double predicted = fit.Predict(row);
      kinds[row.kind].Add(predicted, row.seconds);
      parts[row.kind + " on " + row.device + (row.host_call > 0 ? ", calls" : "")].Add(predicted,
                                                                                       row.seconds);
    }
  }
  fmt::print("\n{:40} {}", "each GPU left out in turn, per cent", kHeader);
  for (const auto& [kind, errors] : kinds) fmt::print("{:40}{}\n", kind, errors.Text());
  fmt::print("\n");
  for (const auto& [part, errors] : parts) fmt::print("{:40}{}\n", part, errors.Text());
  return 0;
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: stepcast_learn_devices FOLDER [--fit]\n", stderr);
    return 2;
  }
  return stepcast::Run(argv[1], argc > 2 && std::string(argv[2]) == "--fit");
}
