// A host's part of a training whose compute is waited for, and what was timed of it: records, and
// the messages in which hosts tell each other of them. A message that says what cannot be is a
// NetworkError.
#ifndef STEPCAST_MICROBENCH_STEPS_WORK_H_
#define STEPCAST_MICROBENCH_STEPS_WORK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "microbench/network/message.h"

namespace stepcast::steps {

inline constexpr int kMostBuckets = 100'000;
inline constexpr int kMostTimedSteps = 1'000'000;
inline constexpr double kMostFloats = 16e9;  // of all gradients
inline constexpr int kMostServers = 10'000;
inline constexpr int kMostParts = 1'000'000;
inline constexpr double kMostFloatsOfPart = 500e6;  // of which gRPC takes the bytes in one message
inline constexpr std::size_t kWordBytes = 32;       // of a training with servers
inline constexpr double kLongestWaitS = 3600;
inline constexpr double kLongestRunS = 30 * 86400;

// Gradients that leave together.
struct GradientBucket {
  double floats = 0;   // a whole number
  double ready_s = 0;  // from the start of the backward pass that synchronises
};

// What one server holds of a bucket: workers push its gradients and pull its parameters in one
// message each.
struct Part {
  int bucket = 0;
  int server = 0;
  double floats = 0;  // a whole number
};

// Parameters that live on servers.
struct Servers {
  int count = 1;
  // Whether each push is an update of its own; else one of all workers' gradients is.
  bool asynchronous = false;
  // How many steps a worker may be ahead of the slowest, where there is a bound; 0 where one update
  // is of all workers.
  std::optional<int> bound;
  // Whether a part is pulled as soon as it has been pushed; else all pulls wait for all pushes.
  bool pipelined = false;
  std::vector<Part> parts;  // by bucket, which all have one
};

// What adds up gradients where there are no servers.
enum class Library { kGloo, kMpi };
inline constexpr std::array<const char*, 2> kLibraryNames = {"gloo", "mpi"};
// The numbers that MPI adds up in one call, one of which is ours.
inline constexpr double kMostFloatsOfMpi = std::numeric_limits<int>::max() - 1;

// A training, as its workers know it but for those that are slow.
struct Training {
  double forward_s = 0;  // of one micro-step
  double backward_s = 0;
  double update_s = 0;
  int micro_steps = 1;  // from one synchronisation to the next
  int warm_up = 0;      // steps that are not counted
  int steps = 1;        // that are
  double limit_s = 0;   // after which no step begins
  std::vector<GradientBucket> buckets;
  std::optional<Servers> servers;    // none where workers add up their gradients themselves
  Library library = Library::kGloo;  // by which they do
  // The last so many workers take so many times as long to compute. Of the coordinator alone.
  int slow_workers = 0;
  double slowdown = 1;

  // A step that has begun at the limit may last as long again.
  double longest_s() const { return 2 * limit_s; }
};

// What one of so many workers computes.
Training TrainingOf(const Training& training, int worker, int workers);

// One host's part.
struct Work {
  Training training;
  int rank = 0;                   // of this host
  std::vector<int> ranks;         // of the workers' hosts
  std::vector<int> server_ranks;  // of the servers', which may have several, and a worker too
  std::string word;               // that servers are shown, of this training alone

  int worker() const;  // on this host; -1 where there is none
};

// One step of a worker [s]: the parts follow each other, and make up the whole.
struct TimedStep {
  double step_s = 0;
  double forward_s = 0;   // of all micro-steps
  double backward_s = 0;  // of all micro-steps
  double exposed_s = 0;   // synchronisation behind the backward pass
  double update_s = 0;
  double synchronising_s = 0;  // in calls of its exchange, hidden or not
  // Of servers: the time in which it pushes or pulls anything, but not for what a server waits for;
  // the updates of the server that takes longest; what others are waited for; the mean number of
  // updates by others since a part was pulled; and what was exchanged.
  double push_s = 0;
  double pull_s = 0;
  double server_update_s = 0;
  double held_s = 0;
  double staleness = 0;
  double messages = 0;
  double bytes = 0;  // of gradients and parameters, both ways
};

// Where a worker or a server waits for a worker to connect.
struct Listening {
  int from = 0;  // who waits: the worker, or where there are servers the server
  int to = 0;    // for this worker
  int port = 0;
  int sequence = 0;  // the library's own
};

// As the messages that `ReadWork` takes again, the first of which has the verb kRun.
inline constexpr const char* kRun = "run";
std::vector<network::Message> WorkMessages(const Work& work);
// `next` gives the messages behind the first one.
Work ReadWork(const network::Message& first, int hosts,
              const std::function<network::Message()>& next);

inline constexpr const char* kListens = "listens";
network::Message ListeningMessage(const Listening& listening);
// `most_from`: how many may wait.
Listening ReadListening(const network::Message& message, int most_from, int workers);

inline constexpr const char* kTimed = "timed";
network::Message TimedMessage(const TimedStep& step);
TimedStep ReadTimed(const network::Message& message);

// The last message of a run: whether it went well, and how long each bucket's calls took [s].
inline constexpr const char* kBucketTime = "bucket_time";
network::Message BucketTimeMessage(int bucket, double seconds);
void TakeBucketTime(const network::Message& message, std::vector<double>* seconds);
inline constexpr const char* kDone = "done";
inline constexpr const char* kFailed = "failed";
// What the coordinator says to hosts without a part in a run, and to those whose run is in vain.
inline constexpr const char* kRest = "rest";
inline constexpr const char* kStop = "stop";

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_WORK_H_
