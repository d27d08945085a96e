// stepcast microbench: what a GPU can do, measured, as the device block of a cluster file.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "predictor/cli/command.h"

namespace stepcast::cli {

int RunMicrobench(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("gpu", po::value<std::string>()->value_name("N"), "which GPU (0)")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("microbench", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast microbench [--gpu N]",
              "Measures what a GPU reaches at best: matrix products in each precision (cuBLAS),\n"
              "a convolution (cuDNN) and copies in its memory, until the medians are known to\n"
              "half a per cent. Prints the device block of a cluster file, so that a GPU without\n"
              "a shipped data sheet gets a roofline.",
              options, "  stepcast microbench >> my-cluster.yaml\n");
    return kDone;
  }
  // A program of its own, so that predictions never load CUDA.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "stepcast-gpu").string();
  if (error || access(program.c_str(), X_OK) != 0) {
    std::fputs(
        "stepcast: this program was built without CUDA; install nvcc 12 or newer with cuBLAS and "
        "cuDNN and build again\n",
        stderr);
    return kAnswerIsNo;
  }
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};  // NOLINT: execv's signature
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // NOLINT: execv's signature
  }
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  std::perror(("stepcast: " + program).c_str());
  return kBadInput;
}

}  // namespace stepcast::cli
