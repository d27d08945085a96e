#include "microbench/steps/work.h"

#include <algorithm>
#include <limits>
#include <set>

#include "data/values/numbers.h"
#include "microbench/network/socket.h"

namespace stepcast::steps {
namespace {

using network::Message;
using network::NetworkError;

// Updates by others between two of one worker.
constexpr double kMostTimedUpdates = 1e9;
constexpr int kMostBound = std::numeric_limits<int>::max();

double Whole(double value) {
  if (value != static_cast<double>(static_cast<std::int64_t>(value))) {
    throw NetworkError("sent a broken number of floats");
  }
  return value;
}

}  // namespace

int Work::worker() const {
  const auto own = std::find(ranks.begin(), ranks.end(), rank);
  return own == ranks.end() ? -1 : static_cast<int>(own - ranks.begin());
}

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
  first.Set("rank", work.rank).Set("workers", static_cast<int>(work.ranks.size()));
  first.Set("forward", training.forward_s).Set("backward", training.backward_s);
  first.Set("update", training.update_s).Set("micro_steps", training.micro_steps);
  first.Set("warm_up", training.warm_up).Set("steps", training.steps);
  first.Set("limit", training.limit_s);
  first.Set("buckets", static_cast<int>(training.buckets.size()));
  if (training.library != Library::kGloo) {
    first.Set("library", static_cast<int>(training.library));
  }
  if (training.servers) {
    const Servers& servers = *training.servers;
    first.Set("servers", servers.count).Set("parts", static_cast<int>(servers.parts.size()));
    first.Set("asynchronous", servers.asynchronous ? 1 : 0);
    first.Set("pipelined", servers.pipelined ? 1 : 0);
    if (servers.bound) first.Set("bound", *servers.bound);
    first.Set("word", work.word);
  }
  for (const int rank : work.ranks) messages.emplace_back("at").Set("rank", rank);
  for (const int rank : work.server_ranks) messages.emplace_back("served_at").Set("rank", rank);
  for (const GradientBucket& bucket : training.buckets) {
    messages.emplace_back("bucket").Set("floats", bucket.floats).Set("ready", bucket.ready_s);
  }
  if (training.servers) {
    for (const Part& part : training.servers->parts) {
      Message& message = messages.emplace_back("part").Set("bucket", part.bucket);
      message.Set("server", part.server).Set("floats", part.floats);
    }
  }
  return messages;
}

Work ReadWork(const Message& first, int hosts, const std::function<Message()>& next) {
  if (first.verb() != kRun) throw NetworkError("sent what is no run");
  Work work;
  Training& training = work.training;
  const int workers = first.Integer("workers", 1, hosts);
  work.rank = first.Integer("rank", 0, hosts - 1);
  training.forward_s = first.Number("forward", 0, kLongestWaitS);
  training.backward_s = first.Number("backward", 0, kLongestWaitS);
  training.update_s = first.Number("update", 0, kLongestWaitS);
  training.micro_steps = first.Integer("micro_steps", 1, kMostTimedSteps);
  training.warm_up = first.Integer("warm_up", 0, kMostTimedSteps);
  training.steps = first.Integer("steps", 1, kMostTimedSteps);
  training.limit_s = first.Number("limit", 0, kLongestRunS);
  const int buckets = first.Integer("buckets", 0, kMostBuckets);
  if (first.fields().count("library") > 0) {
    training.library = static_cast<Library>(
        first.Integer("library", 0, static_cast<int>(kLibraryNames.size()) - 1));
  }
  int parts = 0;
  if (first.fields().count("servers") > 0) {
    Servers& servers = training.servers.emplace();
    servers.count = first.Integer("servers", 1, kMostServers);
    servers.asynchronous = first.Integer("asynchronous", 0, 1) == 1;
    servers.pipelined = first.Integer("pipelined", 0, 1) == 1;
    if (first.fields().count("bound") > 0) servers.bound = first.Integer("bound", 0, kMostBound);
    if (!servers.asynchronous && servers.bound != 0) {
      throw NetworkError("sent an update of all workers that does not wait for all");
    }
    parts = first.Integer("parts", std::max(1, buckets), kMostParts);
    work.word = first.Text("word");
    if (work.word.size() != kWordBytes) throw NetworkError("sent a broken word");
  }
  const auto read = [&](const char* verb) {
    Message message = next();
    if (message.verb() != verb) throw NetworkError(std::string("sent what is no '") + verb + "'");
    return message;
  };
  std::set<int> ranks;
  for (int i = 0; i < workers; ++i) {
    work.ranks.push_back(read("at").Integer("rank", 0, hosts - 1));
    if (!ranks.insert(work.ranks.back()).second) throw NetworkError("put two workers on a host");
  }
  for (int i = 0; training.servers && i < training.servers->count; ++i) {
    work.server_ranks.push_back(read("served_at").Integer("rank", 0, hosts - 1));
    ranks.insert(work.server_ranks.back());
  }
  if (ranks.count(work.rank) == 0) throw NetworkError("sent a host work that has no part in it");
  double floats = 0;
  const auto take = [&](const Message& message, double most) {
    const double own = Whole(message.Number("floats", 1, most));
    floats += own;
    if (floats > kMostFloats) throw NetworkError("sent more gradients than fit");
    return own;
  };
  for (int i = 0; i < buckets; ++i) {
    const Message message = read("bucket");
    training.buckets.push_back(
        {take(message, kMostFloats), message.Number("ready", 0, training.backward_s)});
  }
  floats = 0;
  for (int i = 0; i < parts; ++i) {
    const Message message = read("part");
    std::vector<Part>& served = training.servers->parts;
    const int before = served.empty() ? -1 : served.back().bucket;
    // Each bucket has a part, and they come in order.
    served.push_back(
        {message.Integer("bucket", std::max(0, before), std::min(before + 1, buckets - 1)),
         message.Integer("server", 0, training.servers->count - 1),
         take(message, kMostFloatsOfPart)});
  }
  if (parts > 0 && training.servers->parts.back().bucket != buckets - 1) {
    throw NetworkError("sent buckets that nobody holds");
  }
  return work;
}

Message ListeningMessage(const Listening& listening) {
  Message message(kListens);
  message.Set("from", listening.from).Set("to", listening.to).Set("port", listening.port);
  return message.Set("sequence", listening.sequence);
}

Listening ReadListening(const Message& message, int most_from, int workers) {
  if (message.verb() != kListens) throw NetworkError("sent what is no port");
  return {message.Integer("from", 0, most_from - 1), message.Integer("to", 0, workers - 1),
          message.Integer("port", 1, 65535), message.Integer("sequence", -1, 1 << 30)};
}

namespace {

// What a message tells of a step, but for the step itself, and how large each may be.
struct TimedField {
  const char* key = "";
  double TimedStep::*of = nullptr;
  double most = kLongestRunS;
};
constexpr TimedField kTimedFields[] = {{"forward", &TimedStep::forward_s},
                                       {"backward", &TimedStep::backward_s},
                                       {"exposed", &TimedStep::exposed_s},
                                       {"update", &TimedStep::update_s},
                                       {"synchronising", &TimedStep::synchronising_s},
                                       {"push", &TimedStep::push_s},
                                       {"pull", &TimedStep::pull_s},
                                       {"server_update", &TimedStep::server_update_s},
                                       {"held", &TimedStep::held_s},
                                       {"staleness", &TimedStep::staleness, kMostTimedUpdates},
                                       {"messages", &TimedStep::messages, 2.0 * kMostParts},
                                       {"bytes", &TimedStep::bytes, 8 * kMostFloats}};

}  // namespace

Message TimedMessage(const TimedStep& step) {
  Message message(kTimed);
  message.Set("step", step.step_s);
  for (const TimedField& field : kTimedFields) message.Set(field.key, step.*field.of);
  return message;
}

TimedStep ReadTimed(const Message& message) {
  if (message.verb() != kTimed) throw NetworkError("sent what is no step");
  TimedStep step;
  // No clock tells a step of no time from none.
  step.step_s = message.Number("step", kLeastTime, kLongestRunS);
  for (const TimedField& field : kTimedFields) {
    step.*field.of = message.Number(field.key, 0, field.most);
  }
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
