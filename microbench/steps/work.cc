#include "microbench/steps/work.h"

#include <algorithm>
#include <set>

#include "data/values/numbers.h"
#include "microbench/network/socket.h"

namespace stepcast::steps {
namespace {

using network::Message;
using network::NetworkError;

double Whole(double value) {
  if (value != static_cast<double>(static_cast<std::int64_t>(value))) {
    throw NetworkError("sent a broken number of floats");
  }
  return value;
}

}  // namespace

Training TrainingOf(const Training& training, int worker, int workers) {
  Training own = training;
  own.slow_workers = 0;
  own.slowdown = 1;
  if (worker < workers - training.slow_workers) return own;
  for (double* seconds : {&own.forward_s, &own.backward_s, &own.update_s}) {
    *seconds *= training.slowdown;
  }
  for (GradientBucket& bucket : own.buckets) bucket.ready_s *= training.slowdown;
  return own;
}

std::vector<Message> WorkMessages(const Work& work) {
  const Training& training = work.training;
  std::vector<Message> messages;
  Message& first = messages.emplace_back(kRun);
  first.Set("worker", work.worker).Set("workers", static_cast<int>(work.ranks.size()));
  first.Set("forward", training.forward_s).Set("backward", training.backward_s);
  first.Set("update", training.update_s).Set("micro_steps", training.micro_steps);
  first.Set("warm_up", training.warm_up).Set("steps", training.steps);
  first.Set("limit", training.limit_s);
  first.Set("buckets", static_cast<int>(training.buckets.size()));
  for (const int rank : work.ranks) messages.emplace_back("at").Set("rank", rank);
  for (const GradientBucket& bucket : training.buckets) {
    messages.emplace_back("bucket").Set("floats", bucket.floats).Set("ready", bucket.ready_s);
  }
  return messages;
}

Work ReadWork(const Message& first, int hosts, const std::function<Message()>& next) {
  if (first.verb() != kRun) throw NetworkError("sent what is no run");
  Work work;
  Training& training = work.training;
  const int workers = first.Integer("workers", 1, hosts);
  work.worker = first.Integer("worker", 0, workers - 1);
  training.forward_s = first.Number("forward", 0, kLongestWaitS);
  training.backward_s = first.Number("backward", 0, kLongestWaitS);
  training.update_s = first.Number("update", 0, kLongestWaitS);
  training.micro_steps = first.Integer("micro_steps", 1, kMostTimedSteps);
  training.warm_up = first.Integer("warm_up", 0, kMostTimedSteps);
  training.steps = first.Integer("steps", 1, kMostTimedSteps);
  training.limit_s = first.Number("limit", 0, kLongestRunS);
  const int buckets = first.Integer("buckets", 0, kMostBuckets);
  std::set<int> ranks;
  for (int i = 0; i < workers; ++i) {
    const Message message = next();
    if (message.verb() != "at") throw NetworkError("sent what is no worker's host");
    work.ranks.push_back(message.Integer("rank", 0, hosts - 1));
    if (!ranks.insert(work.ranks.back()).second) throw NetworkError("put two workers on a host");
  }
  double floats = 0;
  for (int i = 0; i < buckets; ++i) {
    const Message message = next();
    if (message.verb() != "bucket") throw NetworkError("sent what is no bucket");
    training.buckets.push_back({Whole(message.Number("floats", 1, kMostFloats)),
                                message.Number("ready", 0, training.backward_s)});
    floats += training.buckets.back().floats;
    if (floats > kMostFloats) throw NetworkError("sent more gradients than fit");
  }
  return work;
}

Message ListeningMessage(const Listening& listening) {
  Message message(kListens);
  message.Set("from", listening.from).Set("to", listening.to).Set("port", listening.port);
  return message.Set("sequence", listening.sequence);
}

Listening ReadListening(const Message& message, int workers) {
  if (message.verb() != kListens) throw NetworkError("sent what is no port");
  return {message.Integer("from", 0, workers - 1), message.Integer("to", 0, workers - 1),
          message.Integer("port", 1, 65535), message.Integer("sequence", -1, 1 << 30)};
}

Message TimedMessage(const TimedStep& step) {
  Message message(kTimed);
  message.Set("step", step.step_s).Set("forward", step.forward_s).Set("backward", step.backward_s);
  message.Set("exposed", step.exposed_s).Set("update", step.update_s);
  return message.Set("synchronising", step.synchronising_s);
}

TimedStep ReadTimed(const Message& message) {
  if (message.verb() != kTimed) throw NetworkError("sent what is no step");
  const auto seconds = [&](const char* key) { return message.Number(key, 0, kLongestRunS); };
  // No clock tells a step of no time from none.
  TimedStep step{message.Number("step", kLeastTime, kLongestRunS),
                 seconds("forward"),
                 seconds("backward"),
                 seconds("exposed"),
                 seconds("update"),
                 seconds("synchronising")};
  return step;
}

Message BucketTimeMessage(int bucket, double seconds) {
  return Message(kBucketTime).Set("bucket", bucket).Set("seconds", seconds);
}

void TakeBucketTime(const Message& message, std::vector<double>* seconds) {
  if (message.verb() != kBucketTime || seconds->empty()) {
    throw NetworkError("sent what is no bucket's time");
  }
  const int bucket = message.Integer("bucket", 0, static_cast<int>(seconds->size()) - 1);
  (*seconds)[static_cast<std::size_t>(bucket)] = message.Number("seconds", 0, kLongestRunS);
}

}  // namespace stepcast::steps
