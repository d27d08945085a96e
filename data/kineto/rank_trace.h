// One rank's trace of a distributed training: its steps, and the collectives in them. Unlike the
// import of a profile it needs no shapes, and keeps of an event what it takes to say when the
// device computed and communicated: some 40 bytes of a kernel, 24 of its launch.
#ifndef STEPCAST_DATA_KINETO_RANK_TRACE_H_
#define STEPCAST_DATA_KINETO_RANK_TRACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/collective_call.h"

namespace stepcast {

// A process group, as far as the trace tells.
struct RankGroup {
  std::string name;          // empty where none is told
  std::vector<int> members;  // ranks; empty where they are not told, or not all of them
  bool operator<(const RankGroup& other) const {
    return name != other.name ? name < other.name : members < other.members;
  }
};

// What a kernel, or a call on the host, says of a collective.
struct CollectiveFacts {
  CollectiveCall kind = CollectiveCall::kOther;
  std::optional<std::int64_t> bytes;  // of the whole message: see BusFactor
  std::int64_t number = -1;           // within its group; -1: not told
  int type = -1;                      // index of RankTrace::types
  int group = -1;                     // index of RankTrace::groups
  int group_size = 0;                 // 0: not told

  // Takes over what others know, where this does not.
  void Complete(const CollectiveFacts& other) {
    if (kind == CollectiveCall::kOther) kind = other.kind;
    if (!bytes) bytes = other.bytes;
    if (number < 0) number = other.number;
    if (type < 0) type = other.type;
    if (group < 0) group = other.group;
    if (group_size == 0) group_size = other.group_size;
  }
};

struct RankCollective : CollectiveFacts {
  std::int64_t begin = 0;  // ns
  std::int64_t end = 0;
  std::int64_t exposed = 0;  // ns of it in which nothing was computed
  int step = -1;             // -1: in none
  bool queued = false;       // its time begins where it was queued, not where it began

  std::int64_t duration() const { return end - begin; }
};

// The parts of a step [ns]. Computing, exposed communication, copying and idleness make up all of
// it; communication is exposed or hidden.
struct RankStep {
  std::int64_t number = 0;  // ProfilerStep#N
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t computing = 0;
  std::int64_t communication = 0;
  std::int64_t exposed = 0;
  std::int64_t copying = 0;  // alone

  std::int64_t time() const { return end - begin; }
};

struct RankTrace {
  std::string path;
  std::optional<int> rank, world_size;
  std::string backend;  // empty where it is not told
  bool gpu = false;
  bool marked = false;  // else the one step is the whole trace, and its number 0
  std::vector<RankStep> steps;
  std::vector<RankCollective> collectives;  // in the order of time
  std::vector<std::string> types;
  std::vector<RankGroup> groups;
  int idle_marks = 0;  // marked steps in which nothing was done, which are none
  // What was not understood or left out, and how often.
  std::map<std::string, int> remarks;
};

// Throws InputError for what is no trace, or of no one training process.
RankTrace ReadRankTrace(const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_RANK_TRACE_H_
