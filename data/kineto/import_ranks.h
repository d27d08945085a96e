// Reads the traces that the ranks of one distributed training wrote with PyTorch's profiler
// (Kineto), a file each: what of their communication compute hides and what it does not, which
// messages they exchange, and who waits for whom.
//
// Computing is when kernels run that are no collective's; in a trace without a GPU, when operators
// run ("aten::mm"), without the nodes of the autograd graph around them. Communication is when
// kernels of collectives run (NCCL and its like), and from where a call of Gloo, MPI or UCC is
// queued on the host until it is done. Exposed is communication during which nothing is computed,
// hidden the rest. What copies alone take is neither, and a step's remainder is idle.
//
// A step is a ProfilerStep#N. Where a host runs ahead of its GPU the marks are shorter than the
// steps: there a step begins on the device once all is done that was launched before it, and ends
// where the next begins.
//
// The same call on several ranks is told by its number within its process group where the trace has
// one ("Seq"), else by its order within step and group. Clocks of hosts differ, so durations alone
// are compared: a synchronous collective ends for all ranks at about the same time, so whoever is
// in it for the shortest came last, that time is the transfer, and what others are in it for longer
// they wait, at its beginning. Waits of a rank that overlap count once. Note that the wait in a
// call is never negative, that one rank's is 0, and that no rank waits longer than it communicates.
#ifndef STEPCAST_DATA_KINETO_IMPORT_RANKS_H_
#define STEPCAST_DATA_KINETO_IMPORT_RANKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/collective_call.h"
#include "data/record/run.h"

namespace stepcast {

// Parts of a step [s].
struct RankTimes {
  double step = 0;  // computing + exposed + copying + idle
  double computing = 0;
  double communication = 0;  // exposed + hidden
  double exposed = 0;
  double hidden = 0;
  double copying = 0;  // alone
  double idle = 0;
  // In collectives that all have to come to: how long this rank waits there for others, and how
  // long others wait for it, the mean of those that were there.
  double waits = 0;
  double waited_for = 0;

  RankTimes& operator+=(const RankTimes& other);
  RankTimes& operator/=(double count);
};

struct RankOfTraining {
  int rank = 0;
  std::string path;
  RankTimes mean;                // over the steps that all ranks have
  std::vector<RankTimes> steps;  // those
  std::int64_t collectives = 0;  // in them
  std::int64_t compared = 0;     // of them, those of which other ranks tell too
  std::int64_t came_last = 0;    // of those
  int idle_marks = 0;            // marked steps in which it did nothing, which are none
  // What was not understood or left out, and how often.
  std::map<std::string, int> remarks;
};

// Calls of one kind, type, size and group.
struct CollectiveClass {
  CollectiveCall call = CollectiveCall::kOther;
  std::string type;                  // of the elements; empty where it is not told
  std::optional<double> bytes;       // of the whole message
  int ranks = 0;                     // of the group; 0 where it is not told
  std::int64_t calls = 0;            // of all ranks in all steps
  double calls_per_step = 0;         // of one of the ranks that take part
  double time_s = 0;                 // mean of the calls
  double exposed_s = 0;              // mean of the calls
  std::int64_t compared = 0;         // calls of which other ranks tell too, each once
  std::optional<double> transfer_s;  // their mean without waiting
  // By the transfer, or else by the time, which waiting makes longer.
  std::optional<double> bus_bytes_per_s;
};

struct StepOfTraining {
  std::int64_t number = 0;  // ProfilerStep#N
  RankTimes mean;           // over the ranks
  // For whom the others wait the longest; nothing where nobody waits, or that cannot be told.
  std::optional<int> last;
};

struct TrainingRanks {
  std::string backend;  // empty where no trace tells it
  bool gpu = false;
  int world_size = 1;
  bool world_is_told = false;   // else as many as there are traces
  bool ranks_are_told = false;  // else the order of the files is theirs
  bool marked = false;          // else the one step is the whole trace
  std::vector<int> missing;     // ranks without a trace
  std::vector<RankOfTraining> ranks;
  std::vector<StepOfTraining> steps;
  std::vector<std::int64_t> others;      // steps that not all ranks have, which are left out
  std::vector<CollectiveClass> classes;  // in the order of their first calls
  RankTimes mean;
  bool queued = false;  // times of collectives begin where they are queued
  // Groups are not told and taken for all ranks.
  bool groups_are_taken = false;
  // Calls that were compared although not all ranks of their group have a trace.
  std::int64_t compared_in_part = 0;
  // Calls that were not compared, by why.
  std::map<std::string, std::int64_t> not_compared;
};

// Throws InputError for what is no trace, and for traces of different trainings: of other worlds or
// backends, of one rank twice, without a step in common.
TrainingRanks ImportKinetoRanks(const std::vector<std::string>& paths);

// What a row of runs says that was measured: the step, its exposed communication, how steps scatter
// where there are ten or more, and the source. A step of the run has `marks` marked steps: more
// than one where micro-steps are marked. Throws InputError where no steps are marked, and for times
// that no run has.
void MeasureRun(const TrainingRanks& training, int marks, Run* run);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_IMPORT_RANKS_H_
