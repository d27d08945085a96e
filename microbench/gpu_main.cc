// The program `stepcast-gpu`, which `stepcast microbench` starts: a program of its own, so that
// nobody who predicts loads CUDA.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "microbench/compute/device_ceilings.h"

namespace stepcast {
namespace {

constexpr int kDone = 0;
constexpr int kAnswerIsNo = 1;
constexpr int kBadInput = 2;

// The block that a cluster file takes under `device:`.
std::string DeviceBlock(const DeviceCeilings& c) {
  std::string text = fmt::format("device:\n  name: \"{}\"\n", c.name);
  std::string convolution;
  for (const MeasuredRate& rate : c.rates) {
    if (rate.name == "copy") {
      text += fmt::format("  memory_bandwidth: {:.4g} GB/s\n", rate.per_second / 1e9);
    } else if (rate.name == "convolution_fp32") {
      convolution =
          fmt::format("; 3 x 3 convolution, cuDNN, fp32: {:.4g} TFLOP/s", rate.per_second / 1e12);
    } else {
      text += fmt::format("  {}: {:.4g} TFLOP/s\n", rate.name, rate.per_second / 1e12);
    }
  }
  text += fmt::format("  memory: {:.4g} GB\n", c.memory_bytes / 1e9);
  return text + fmt::format(
                    "  source: \"measured by stepcast microbench: cuBLAS products and "
                    "device copies; {} multiprocessors, driver {}, CUDA {}, cuDNN {}{}\"\n",
                    c.multiprocessors, c.driver_version, c.cuda_version, c.cudnn_version,
                    convolution);
}

std::string CeilingsJson(const DeviceCeilings& c) {
  nlohmann::ordered_json json = {{"name", c.name},
                                 {"multiprocessors", c.multiprocessors},
                                 {"memory_bytes", static_cast<std::int64_t>(c.memory_bytes)},
                                 {"driver_version", c.driver_version},
                                 {"cuda_version", c.cuda_version},
                                 {"cudnn_version", c.cudnn_version}};
  json["rates"] = nlohmann::ordered_json::array();
  for (const MeasuredRate& rate : c.rates) {
    json["rates"].push_back({{"name", rate.name},
                             {rate.name == "copy" ? "bytes_per_s" : "flop_per_s", rate.per_second},
                             {"relative_error", rate.relative_error},
                             {"stable", rate.stable}});
  }
  return json.dump(2) + "\n";
}

int Run(int argc, char** argv) {
  namespace po = boost::program_options;
  po::options_description options("options");
  options.add_options()("gpu", po::value<int>()->default_value(0)->value_name("N"),
                        "which GPU, from 0 on")("json", "print one JSON object");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, options), values);
  const CeilingsOutcome outcome = MeasureDeviceCeilings(values["gpu"].as<int>());
  if (!outcome.measured) {
    std::fprintf(stderr, "stepcast: %s; run this on a machine with an NVIDIA GPU and its driver\n",
                 outcome.message.c_str());
    return kAnswerIsNo;
  }
  const std::string text =
      values.count("json") > 0 ? CeilingsJson(outcome.ceilings) : DeviceBlock(outcome.ceilings);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const MeasuredRate& rate : outcome.ceilings.rates) {
    if (rate.stable) continue;
    std::fprintf(stderr, "stepcast: %s did not settle (%.1f %%): is the GPU busy or throttled?\n",
                 rate.name.c_str(), 100 * rate.relative_error);
  }
  return kDone;
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  try {
    return stepcast::Run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "stepcast: %s\n", e.what());
    return stepcast::kBadInput;
  }
}
