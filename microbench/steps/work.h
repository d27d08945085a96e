// A worker's part of a training whose compute is waited for, and what was timed of it: records, and
// the messages in which hosts tell each other of them. A message that says what cannot be is a
// NetworkError.
#ifndef STEPCAST_MICROBENCH_STEPS_WORK_H_
#define STEPCAST_MICROBENCH_STEPS_WORK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "microbench/network/message.h"

namespace stepcast::steps {

inline constexpr int kMostBuckets = 100'000;
inline constexpr int kMostTimedSteps = 1'000'000;
inline constexpr double kMostFloats = 16e9;  // of all gradients
inline constexpr double kLongestWaitS = 3600;
inline constexpr double kLongestRunS = 30 * 86400;

// Gradients that leave together.
struct GradientBucket {
  double floats = 0;   // a whole number
  double ready_s = 0;  // from the start of the backward pass that synchronises
};

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
  // The last so many workers take so many times as long to compute. Of the coordinator alone.
  int slow_workers = 0;
  double slowdown = 1;
};

// What one of so many workers computes.
Training TrainingOf(const Training& training, int worker, int workers);

// One worker's part.
struct Work {
  Training training;
  int worker = 0;
  std::vector<int> ranks;  // of the workers' hosts, this one's included
};

// One step of a worker [s]: the parts follow each other, and make up the whole.
struct TimedStep {
  double step_s = 0;
  double forward_s = 0;   // of all micro-steps
  double backward_s = 0;  // of all micro-steps
  double exposed_s = 0;   // synchronisation behind the backward pass
  double update_s = 0;
  double synchronising_s = 0;  // in calls of the all-reduce, hidden or not
};

// Where a worker waits for another to connect.
struct Listening {
  int from = 0;  // the worker that waits
  int to = 0;    // for this one
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
Listening ReadListening(const network::Message& message, int workers);

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
