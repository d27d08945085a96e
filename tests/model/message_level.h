// Synchronisations run for real, message by message, on small vectors of whole numbers: what the
// closed forms of model/exchange claim to count.
//
// Messages of one round are sent from the values at its start and arrive at its end, so that
// workers act at once. An element stands for one byte.
#ifndef STEPCAST_TESTS_MODEL_MESSAGE_LEVEL_H_
#define STEPCAST_TESTS_MODEL_MESSAGE_LEVEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace stepcast {

enum class Arrival { kAdd, kReplace };

class MessageNetwork {
 public:
  // `idle` more nodes take part, but hold zeros and need not end with the sum: servers.
  MessageNetwork(int workers, std::size_t length, int idle = 0)
      : workers_(workers),
        length_(length),
        values_(static_cast<std::size_t>(workers + idle), Values(length, 0)),
        sent_(values_.size(), 0),
        received_(values_.size(), 0),
        round_sent_(values_.size(), 0),
        round_received_(values_.size(), 0) {
    for (std::size_t i = 0; i < Count(workers); ++i) {
      for (std::size_t k = 0; k < length; ++k) {
        values_[i][k] = static_cast<std::int64_t>((i + 1) * (i + 3) * 31 + k * 7 + i * k);
      }
    }
    sum_ = Values(length, 0);
    for (const Values& v : values_) Add(v, 0, &sum_);
  }

  void Send(int from, int to, std::size_t begin, std::size_t end, Arrival arrival) {
    const Values& all = values_[Count(from)];
    const auto at = [&](std::size_t k) { return all.begin() + static_cast<std::ptrdiff_t>(k); };
    round_.push_back({to, begin, Values(at(begin), at(end)), arrival});
    sent_[Count(from)] += end - begin;
    received_[Count(to)] += end - begin;
    round_sent_[Count(from)] += end - begin;
    round_received_[Count(to)] += end - begin;
    ++transfers_;
  }

  void EndRound() {
    if (round_.empty()) return;
    for (const Message& message : round_) {
      Values& target = values_[Count(message.to)];
      if (message.arrival == Arrival::kAdd) {
        Add(message.values, message.begin, &target);
      } else {
        std::copy(message.values.begin(), message.values.end(),
                  target.begin() + static_cast<std::ptrdiff_t>(message.begin));
      }
    }
    round_.clear();
    ++rounds_;
    serial_bytes_ += std::max(Most(round_sent_), Most(round_received_));
    std::fill(round_sent_.begin(), round_sent_.end(), 0);
    std::fill(round_received_.begin(), round_received_.end(), 0);
  }

  bool EveryWorkerHasTheSum() const {
    return std::all_of(values_.begin(), values_.begin() + workers_,
                       [&](const Values& v) { return v == sum_; });
  }

  std::size_t length() const { return length_; }
  int rounds() const { return rounds_; }
  int transfers() const { return transfers_; }
  std::size_t total() const { return std::accumulate(sent_.begin(), sent_.end(), std::size_t{0}); }
  std::size_t sent(int node) const { return sent_[Count(node)]; }
  std::size_t received(int node) const { return received_[Count(node)]; }
  // What full-duplex links carry one after another: the busiest worker of each round, summed up.
  std::size_t serial_bytes() const { return serial_bytes_; }
  std::size_t most_sent() const { return Most(sent_); }
  std::size_t most_received() const { return Most(received_); }

 private:
  using Values = std::vector<std::int64_t>;
  struct Message {
    int to;
    std::size_t begin;
    Values values;
    Arrival arrival;
  };

  static std::size_t Count(int i) { return static_cast<std::size_t>(i); }
  static void Add(const Values& values, std::size_t begin, Values* target) {
    for (std::size_t k = 0; k < values.size(); ++k) (*target)[begin + k] += values[k];
  }
  std::size_t Most(const std::vector<std::size_t>& bytes) const {
    return *std::max_element(bytes.begin(), bytes.begin() + workers_);
  }

  int workers_;
  std::size_t length_;
  std::vector<Values> values_;
  Values sum_;
  std::vector<Message> round_;
  int rounds_ = 0;
  int transfers_ = 0;
  std::size_t serial_bytes_ = 0;
  std::vector<std::size_t> sent_;
  std::vector<std::size_t> received_;
  std::vector<std::size_t> round_sent_;
  std::vector<std::size_t> round_received_;
};

// A stretch of the vector.
struct Stretch {
  std::size_t begin;
  std::size_t end;
  // The k-th of `count` equal parts.
  Stretch Part(int k, int count) const {
    const std::size_t piece = (end - begin) / static_cast<std::size_t>(count);
    return {begin + static_cast<std::size_t>(k) * piece,
            begin + static_cast<std::size_t>(k + 1) * piece};
  }
};

// Several rings at a time: ring r joins the workers members[r] and reduces its stretch[r]. After
// the reduce-scatter the i-th member holds the sum of part i; the all-gather starts from there.
struct Ring {
  std::vector<int> members;
  Stretch stretch;
};

inline void RunRings(const std::vector<Ring>& rings, bool gather, MessageNetwork* network) {
  std::size_t longest = 0;
  for (const Ring& ring : rings) longest = std::max(longest, ring.members.size());
  for (int round = 0; round + 1 < static_cast<int>(longest); ++round) {
    for (const Ring& ring : rings) {
      const int w = static_cast<int>(ring.members.size());
      if (round + 1 >= w) continue;
      for (int i = 0; i < w; ++i) {
        // To the right: one's own part comes last when reducing, first when gathering.
        const int part = (i - round - (gather ? 0 : 1) + 2 * w) % w;
        const Stretch piece = ring.stretch.Part(part, w);
        network->Send(ring.members[static_cast<std::size_t>(i)],
                      ring.members[static_cast<std::size_t>((i + 1) % w)], piece.begin, piece.end,
                      gather ? Arrival::kReplace : Arrival::kAdd);
      }
    }
    network->EndRound();
  }
}

inline std::vector<int> Range(int first, int count) {
  std::vector<int> range(static_cast<std::size_t>(count));
  std::iota(range.begin(), range.end(), first);
  return range;
}

// Patarasuk & Yuan, JPDC 2009.
inline MessageNetwork RunRingAllreduce(int workers) {
  MessageNetwork network(workers, static_cast<std::size_t>(3 * workers));
  const std::vector<Ring> ring = {{Range(0, workers), {0, network.length()}}};
  RunRings(ring, false, &network);
  RunRings(ring, true, &network);
  return network;
}

// Thakur, Rabenseifner, Gropp, IJHPCA 2005. Workers beyond the power of two fold into others.
inline MessageNetwork RunHalvingDoubling(int workers) {
  int whole = 1;
  while (2 * whole <= workers) whole *= 2;
  MessageNetwork network(workers, static_cast<std::size_t>(4 * whole));
  const std::size_t length = network.length();
  for (int i = whole; i < workers; ++i) network.Send(i, i - whole, 0, length, Arrival::kAdd);
  network.EndRound();
  std::vector<Stretch> own(static_cast<std::size_t>(whole), Stretch{0, length});
  for (int distance = whole / 2; distance >= 1; distance /= 2) {
    for (int i = 0; i < whole; ++i) {
      Stretch& mine = own[static_cast<std::size_t>(i)];
      const bool upper = (i & distance) != 0;
      const Stretch given = mine.Part(upper ? 0 : 1, 2);
      network.Send(i, i ^ distance, given.begin, given.end, Arrival::kAdd);
      mine = mine.Part(upper ? 1 : 0, 2);
    }
    network.EndRound();
  }
  for (int distance = 1; distance < whole; distance *= 2) {
    for (int i = 0; i < whole; ++i) {
      const Stretch mine = own[static_cast<std::size_t>(i)];
      network.Send(i, i ^ distance, mine.begin, mine.end, Arrival::kReplace);
    }
    network.EndRound();
    std::vector<Stretch> joined = own;
    for (int i = 0; i < whole; ++i) {
      const Stretch a = own[static_cast<std::size_t>(i)];
      const Stretch b = own[static_cast<std::size_t>(i ^ distance)];
      joined[static_cast<std::size_t>(i)] = {std::min(a.begin, b.begin), std::max(a.end, b.end)};
    }
    own = joined;
  }
  for (int i = whole; i < workers; ++i) network.Send(i - whole, i, 0, length, Arrival::kReplace);
  network.EndRound();
  return network;
}

// A binary tree over 0..w-1 in which odd places are leaves: the parent of a place moves its lowest
// set bit one up, or drops it where that leaves the tree. -1 above the root, which is 0.
inline int TreeParent(int place, int workers) {
  if (place == 0) return -1;
  const int lowest = place & -place;
  const int dropped = place - lowest;
  const int moved = dropped | (2 * lowest);
  return moved < workers ? moved : dropped;
}

// The place of a worker in the first and in the second tree: the second is the first mirrored, or
// shifted by one when the count is odd, so that its leaves are the first one's inner nodes.
inline int TreePlace(int worker, int workers, int tree) {
  if (tree == 0) return worker;
  return workers % 2 == 0 ? workers - 1 - worker : (worker + workers - 1) % workers;
}

// Sanders, Speck, Traff, Parallel Computing 2009; a half of the vector up and down each tree.
inline MessageNetwork RunDoubleTree(int workers) {
  MessageNetwork network(workers, 10);
  for (const bool down : {false, true}) {
    // Upwards from the deepest, downwards from the root: one level a round.
    std::vector<std::vector<int>> depth(2, std::vector<int>(static_cast<std::size_t>(workers)));
    std::vector<std::vector<int>> parent(2,
                                         std::vector<int>(static_cast<std::size_t>(workers), -1));
    int deepest = 0;
    for (int tree = 0; tree < 2; ++tree) {
      std::vector<int> at(static_cast<std::size_t>(workers));  // the worker at a place
      for (int i = 0; i < workers; ++i) {
        at[static_cast<std::size_t>(TreePlace(i, workers, tree))] = i;
      }
      for (int i = 0; i < workers; ++i) {
        int levels = 0;
        for (int p = TreePlace(i, workers, tree); p > 0; p = TreeParent(p, workers)) ++levels;
        const auto t = static_cast<std::size_t>(tree);
        const auto worker = static_cast<std::size_t>(i);
        depth[t][worker] = levels;
        deepest = std::max(deepest, levels);
        const int above = TreeParent(TreePlace(i, workers, tree), workers);
        if (above >= 0) parent[t][worker] = at[static_cast<std::size_t>(above)];
      }
    }
    for (int step = 1; step <= deepest; ++step) {
      const int level = down ? step : deepest + 1 - step;
      for (std::size_t tree = 0; tree < 2; ++tree) {
        const Stretch half = Stretch{0, network.length()}.Part(static_cast<int>(tree), 2);
        for (int i = 0; i < workers; ++i) {
          const auto worker = static_cast<std::size_t>(i);
          if (depth[tree][worker] != level) continue;
          const int above = parent[tree][worker];
          network.Send(down ? above : i, down ? i : above, half.begin, half.end,
                       down ? Arrival::kReplace : Arrival::kAdd);
        }
      }
      network.EndRound();
    }
  }
  return network;
}

// Reduce-scatter within each node, a ring over the nodes for each shard, all-gather within. Devices
// of a node that has fewer than the fullest hold several shards each; its count must divide the
// fullest one's.
inline MessageNetwork RunHierarchical(const std::vector<int>& placement) {
  const int workers = std::accumulate(placement.begin(), placement.end(), 0);
  const int fullest = *std::max_element(placement.begin(), placement.end());
  const int nodes = static_cast<int>(placement.size());
  MessageNetwork network(workers, static_cast<std::size_t>(2 * fullest * nodes));
  const Stretch all{0, network.length()};
  std::vector<Ring> within;
  std::vector<Ring> between;
  for (int shard = 0; shard < fullest; ++shard) {
    between.push_back({{}, all.Part(shard, fullest)});
  }
  int first = 0;
  for (const int devices : placement) {
    within.push_back({Range(first, devices), all});
    for (int shard = 0; shard < fullest; ++shard) {
      between[static_cast<std::size_t>(shard)].members.push_back(first + shard * devices / fullest);
    }
    first += devices;
  }
  RunRings(within, false, &network);
  RunRings(between, false, &network);
  RunRings(between, true, &network);
  RunRings(within, true, &network);
  return network;
}

// A micro-step of equal nodes that share the model out within: gradients are reduced within each
// node, and each share of them between the nodes; then what has become of it is gathered within
// the nodes, before the forward pass and again before the backward pass.
inline MessageNetwork RunHybrid(int nodes, int devices) {
  MessageNetwork network(nodes * devices, static_cast<std::size_t>(2 * devices * nodes));
  const Stretch all{0, network.length()};
  std::vector<Ring> within;
  std::vector<Ring> between;
  for (int node = 0; node < nodes; ++node) {
    within.push_back({Range(node * devices, devices), all});
  }
  for (int share = 0; share < devices; ++share) {
    between.push_back({{}, all.Part(share, devices)});
    for (int node = 0; node < nodes; ++node) {
      between.back().members.push_back(node * devices + share);
    }
  }
  RunRings(within, false, &network);
  RunRings(between, false, &network);
  RunRings(between, true, &network);
  RunRings(within, true, &network);
  RunRings(within, true, &network);
  return network;
}

// Push a shard to each server, where shards add up, and pull it back.
inline MessageNetwork RunParameterServers(int workers, int servers) {
  MessageNetwork network(workers, static_cast<std::size_t>(2 * servers), servers);
  for (const bool pull : {false, true}) {
    for (int i = 0; i < workers; ++i) {
      for (int s = 0; s < servers; ++s) {
        const Stretch shard = Stretch{0, network.length()}.Part(s, servers);
        network.Send(pull ? workers + s : i, pull ? i : workers + s, shard.begin, shard.end,
                     pull ? Arrival::kReplace : Arrival::kAdd);
      }
    }
    network.EndRound();
  }
  return network;
}

// Jiang et al., OSDI 2020: everybody pushes what others sum, then pulls the sums. `helpers` nodes
// without gradients take part; each machine sums `machine` bytes and each helper `helper` bytes.
inline MessageNetwork RunBytePs(int machines, int helpers) {
  const auto n = static_cast<std::size_t>(machines);
  const auto k = static_cast<std::size_t>(helpers);
  const std::size_t machine = n - k;
  const std::size_t helper = 2 * (n - 1);
  MessageNetwork network(machines, n * machine + k * helper, helpers);
  for (const bool pull : {false, true}) {
    std::size_t begin = 0;
    for (int owner = 0; owner < machines + helpers; ++owner) {
      const std::size_t end = begin + (owner < machines ? machine : helper);
      for (int i = 0; i < machines; ++i) {
        if (i == owner || begin == end) continue;
        network.Send(pull ? owner : i, pull ? i : owner, begin, end,
                     pull ? Arrival::kReplace : Arrival::kAdd);
      }
      begin = end;
    }
    network.EndRound();
  }
  return network;
}

// Push to and pull from one server on each of the first `servers` nodes, where the node's workers
// need no network: worker 0 of the node stands for its server.
inline MessageNetwork RunColocatedServers(const std::vector<int>& placement, int servers) {
  const int workers = std::accumulate(placement.begin(), placement.end(), 0);
  MessageNetwork network(workers, static_cast<std::size_t>(2 * servers));
  for (const bool pull : {false, true}) {
    int first = 0;
    for (int s = 0; s < servers; ++s) {
      const int local = placement[static_cast<std::size_t>(s)];
      const Stretch shard = Stretch{0, network.length()}.Part(s, servers);
      for (int i = 0; i < workers; ++i) {
        if (i >= first && i < first + local) continue;
        network.Send(pull ? first : i, pull ? i : first, shard.begin, shard.end,
                     pull ? Arrival::kReplace : Arrival::kAdd);
      }
      first += local;
    }
    network.EndRound();
  }
  return network;
}

// When the last worker of a binomial broadcast has the message, if a worker starts the transfers to
// all its children at once and they share its link: passes of the message and hops, one after the
// other, on the slowest path. Worker v passes on to v + 2^i for each 2^i > v.
struct BroadcastEnd {
  int passes = 0;
  int hops = 0;
};

inline BroadcastEnd RunConcurrentBroadcast(int workers, int worker = 0) {
  std::vector<int> children;
  for (int step = 1; worker + step < workers; step *= 2) {
    if (step > worker) children.push_back(worker + step);
  }
  BroadcastEnd last;
  for (const int child : children) {
    const BroadcastEnd below = RunConcurrentBroadcast(workers, child);
    last.passes = std::max(last.passes, below.passes + static_cast<int>(children.size()));
    last.hops = std::max(last.hops, below.hops + 1);
  }
  return last;
}

// A hop of a ring in time: what a message takes to arrive beyond its bytes, and what its bytes
// hold the hop for.
struct TimedHop {
  double latency;
  double occupied;
};

// When a ring all-reduce ends whose hop i leads from worker i to i + 1. There are no barriers: a
// worker sends its next piece as soon as it has received the one before and its hop is free.
inline double RunTimedRing(const std::vector<TimedHop>& hops) {
  const std::size_t w = hops.size();
  std::vector<double> arrived(w, 0);  // the piece of the last round, at each worker
  std::vector<double> free(w, 0);
  for (std::size_t round = 0; round < 2 * (w - 1); ++round) {
    std::vector<double> next(w);
    for (std::size_t i = 0; i < w; ++i) {
      const double start = std::max(arrived[i], free[i]);
      free[i] = start + hops[i].occupied;
      next[(i + 1) % w] = free[i] + hops[i].latency;
    }
    arrived = next;
  }
  return *std::max_element(arrived.begin(), arrived.end());
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_MESSAGE_LEVEL_H_
