// Shared by the kinds of stepcast import.
#ifndef STEPCAST_PREDICTOR_CLI_IMPORT_H_
#define STEPCAST_PREDICTOR_CLI_IMPORT_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "predictor/cli/command.h"

namespace stepcast::cli {

// Formats that `stepcast import` reads.
inline constexpr const char* kImportKinds[] = {"steps", "nccl-tests", "osu",          "iperf3",
                                               "ping",  "ethtool",    "ss",           "adaptdl",
                                               "onnx",  "kineto",     "kineto-ranks", "pcap"};

// Refuses an option that means nothing for the kind, and all but `allowed`, --output and --json.
void Refuse(const Arguments& args, const std::string& kind, const std::string& option);
// The same of how a workload is trained.
void RefuseTrainingOptions(const Arguments& args, const std::string& kind);
void AllowOnly(const Arguments& args, const std::string& kind,
               const std::set<std::string>& allowed);
void RequireOne(const std::vector<std::string>& files, const std::string& kind);

// The name of a file without its folder.
std::string FileName(const std::string& path);

// Writes the text, and says what it is: as JSON, or in a sentence. Throws InputError for more bytes
// than a reader of such files takes.
int Deliver(const Arguments& args, const std::string& text, std::size_t most_bytes,
            const std::string& sentence, const Json& facts);

// The options of an import, by name.
po::options_description ImportOptions();

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_IMPORT_H_
