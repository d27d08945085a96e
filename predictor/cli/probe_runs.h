// The runs that `stepcast probe` measures for a runs file that asks for them: what came of each,
// the file that is written, and what is printed.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_RUNS_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_RUNS_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "microbench/script/wanted_runs.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// Fewer steps are no measurement.
inline constexpr std::size_t kLeastSteps = 3;
inline constexpr int kMostSteps = 1'000'000;

enum class Outcome { kMeasured, kTakenOver, kUnfinished, kFailed, kInterrupted };
inline constexpr const char* kOutcomeNames[] = {"measured", "taken over", "unfinished", "failed",
                                                "interrupted"};

struct Result {
  const script::WantedRun* wanted = nullptr;
  Outcome outcome = Outcome::kMeasured;
  script::Timed timed;   // a bound is of a training that had begun to step
  std::string sentence;  // of what went wrong
};

// The runs file that is written, a row at a time: each is on the disk before the next is measured.
class RunsFile {
 public:
  RunsFile(std::string path, const script::WantedRuns& wanted);
  ~RunsFile();
  RunsFile(const RunsFile&) = delete;
  RunsFile& operator=(const RunsFile&) = delete;

  // Whether the file already had this run.
  bool Has(const script::WantedRun& run) const {
    return taken_over_.count(WantedKey(*wanted_, run.fields)) > 0;
  }
  void Append(const Result& result);

 private:
  InputError Unwritten(int why) const;
  void TakeOver();

  std::string path_;
  const script::WantedRuns* wanted_;
  std::vector<std::string> header_;
  std::set<std::string> taken_over_;
  int file_ = -1;
  bool is_new_ = false;  // nobody had made it
  bool has_header_ = false;
};

// "resnet50: 4 workers (4 x 1), ring, local batch 32".
std::string DescribeRun(const script::WantedRun& run);

void PrintResults(const std::vector<Result>& results, const std::vector<std::string>& flags,
                  const std::string& path);
Json ResultsJson(const std::vector<Result>& results, const std::vector<std::string>& flags,
                 const std::string& path);
// kDone where every run was measured, now or before.
int CodeOf(const std::vector<Result>& results);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_RUNS_H_
