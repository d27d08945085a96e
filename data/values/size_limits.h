// The most that a file may ask for, whoever reads it: generous for what is real, and little enough
// that no small file makes a reader work for long. docs/reference/formats.md tells the same.
#ifndef STEPCAST_DATA_VALUES_SIZE_LIMITS_H_
#define STEPCAST_DATA_VALUES_SIZE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace stepcast {

// Bytes of a file.
inline constexpr std::size_t kMostYamlBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostCsvBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMostProfileBytes = std::size_t{1} << 30;

// Parts of a YAML document, and bytes of its values, that aliases repeat.
inline constexpr std::size_t kMostRepeated = std::size_t{4} << 20;

// Counts.
inline constexpr int kMostNodes = 1'000'000;  // of a cluster or a placement, so of named hosts too
inline constexpr int kMostDevicesPerNode = 1024;
inline constexpr std::size_t kMostPlacedNodes = 20'000'000;  // of all placements of a file
inline constexpr std::size_t kMostColumns = 10'000;          // of a table
inline constexpr std::size_t kMostRows = 10'000'000;         // of a table
// Of what a covariance is kept, fitted values of a calibration and hosts with a bandwidth of their
// own: a file of the most bytes holds that of about so many.
inline constexpr std::size_t kMostEstimates = 3'000;
inline constexpr std::size_t kMostAlternatives = 32;  // of a calibration

// Networks and their tensors.
inline constexpr std::size_t kMostWorkloads = 500;        // that the runs of one command name
inline constexpr std::size_t kMostLayersInAll = 100'000;  // of these together
inline constexpr std::int64_t kMostParameters = 1'000'000'000'000'000;
inline constexpr std::size_t kMostTensors = 1'000'000;  // of a network
inline constexpr double kMostFlop = 1e24;               // of a layer
// Of a tensor of one sample, as attention's scores of 128 heads and 131,072 tokens.
inline constexpr std::int64_t kMostOperationElements = 10'000'000'000'000;
inline constexpr double kMostActivationBytes = 1e18;  // of a layer
inline constexpr std::int64_t kMostTensorElements = 1'000'000'000'000'000;
inline constexpr int kMostRank = 64;

// Samples of profiles, and traces that they come from.
inline constexpr int kMostSampleBatch = 1'000'000'000;
inline constexpr std::size_t kMostEvents = 40'000'000;

// Flows of captures, and pairs of a flow, or a sender, and a step.
inline constexpr std::size_t kMostFlows = 1'000'000;
inline constexpr std::size_t kMostFlowSteps = 10'000'000;
inline constexpr std::size_t kMostCapturedHosts = 1'000;

// Logs: bytes of a line that are looked at, times of single steps, and ranks and bars of a log;
// rows of its tables.
inline constexpr std::size_t kLongestLogLine = 4'096;
inline constexpr std::int64_t kMostLoggedSteps = 20'000'000;
inline constexpr std::size_t kMostLogSeries = 100'000;
inline constexpr std::size_t kMostLogRows = 1'000'000;

inline constexpr std::size_t kLongestName = 1'000;  // bytes

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_SIZE_LIMITS_H_
