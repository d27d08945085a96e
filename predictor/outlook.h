// What a predicted step means for a whole job: limits, epochs, targets, failures, money, energy.
//
//   p_limit   = Phi( ln(limit / T) / s )                   a step finishes within the limit
//   interval  = T / updates of a step                      from one update of the model to the next
//   m         = b a (w - k), synchronous;  b a, ps-async   samples of one update
//   epoch     = D / m updates;  target = S_min (1 + B_noise / m) updates
//   price     = N P t + n P_s t;   energy = model/spending on N + n nodes, for t
//
//   T, s      predicted step and standard deviation of its logarithm                 [s], [1]
//   b, a      local batch, accumulation interval                                     [samples], [1]
//   w, k      workers, backup workers among them; every worker of ps-async updates by itself
//   D         samples of the data set                                                [samples]
//   S_min, B_noise  steps with an endless batch, noise scale (model/statistics/noise_scale.h)
//   N, P      nodes with workers, price of one                                       [USD/h]
//   n, P_s    servers on nodes of their own, price of one                            [USD/h]
//   t         time of whatever is priced: a step, an epoch, all to the target        [s]
//
// Failures (model/failures/failures.h): every node, those of servers included, and every device
// fails by itself. A synchronous job is taken to go back to its last checkpoint after any failure;
// where the framework replaces a lost worker in place, `worker` tells what one costs. A worker that
// holds a share of the model which nobody else has cannot be replaced so. With ps-async
// only the servers hold what nobody else has: losing one takes all back, losing a worker stops that
// worker alone. Checkpoints come at Daly's interval.
//
// An answer is absent where a fact it needs is: nothing is assumed. Two bounds are given instead,
// and marked: without an idle power a device counts as busy throughout (energy is at most so much),
// and without a restart time a restart counts as free (failures cost at least so much). A server's
// node draws what a worker's node draws besides its devices; where that is not known, the energy is
// that of the devices alone, and says so.
//
// What some plans cost in samples nobody derives: stale updates, local steps, gradients of which
// something is lost. Each sample of theirs counts as if it were fresh and whole, so that goodput is
// at most so much and the way to a target at least so long. An epoch is counted in samples,
// whatever they are worth.
//
// Note that a step never finishes within a shorter limit with a higher probability; that time,
// price and energy of an epoch and of a target are in proportion to those of a step; that a server
// more never makes a step of the same length cheaper or lowers its energy; and that failures never
// shorten anything.
//
// Sources: the headers named.
#ifndef STEPCAST_PREDICTOR_OUTLOOK_H_
#define STEPCAST_PREDICTOR_OUTLOOK_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "predictor/prediction.h"

namespace stepcast {

struct OutlookOptions {
  std::optional<Duration<>> time_limit;      // of one step
  std::optional<SampleCount<>> data_set;     // an epoch's
  std::optional<SampleCount<>> noise_scale;  // B_noise
  std::optional<SampleCount<>> known_batch;  // m0: learning rate and epochs are known for it
  std::optional<double> least_steps;         // S_min
  std::optional<Duration<>> node_mtbf;       // mean time between failures of a node,
  std::optional<Duration<>> device_mtbf;     // and of a device with its process
  std::optional<Duration<>> checkpoint_time;
  std::optional<Duration<>> restart_time;  // to notice, to start again, to read the checkpoint
};

// Throws InputError for a value out of range, and for one that says nothing without another: both
// are named, as options of the command line.
void CheckOutlookOptions(const OutlookOptions& options);

// Outlook on a limit of the step's time.
struct LimitOutlook {
  Duration<> limit;
  // False when the whole 90 % interval lies above the limit.
  bool finishes = true;
  double probability = 1;
};

// Money and energy of one step.
struct StepSpending {
  std::optional<double> price_usd;
  // Servers have nodes of their own whose price is not stated: they are not in price_usd.
  bool servers_unpriced = false;
  std::optional<double> energy_j;
  bool energy_at_most = false;     // devices counted as busy throughout
  bool energy_of_devices = false;  // the rest of the nodes, servers' included, is not in it
  double device_busy_w = 0;        // what energy_j takes a computing device to draw
};

// An epoch, or the way to a target.
struct JobStretch {
  double updates = 0;  // of the model
  SampleCount<> samples;
  Duration<> time;  // without failures
  // By the 90 % interval of the step.
  Duration<> low;
  Duration<> high;
  std::optional<double> price_usd;
  std::optional<double> energy_j;
  // The same with failures, where those are stated: nodes are paid for while they recover.
  std::optional<Duration<>> time_with_failures;
  std::optional<double> price_with_failures_usd;
};

// Cost of the loss of one worker that is replaced in place.
struct WorkerLoss {
  Duration<> stall;          // without it
  double stalled_share = 1;  // of the workers: all, or itself alone
  double slowdown = 1;       // wall / useful time, with only such losses
};

struct FailureOutlook {
  Duration<> between;           // failures of anything
  Duration<> between_restarts;  // failures that take all back to the last checkpoint
  Duration<> young;             // useful time between checkpoints
  Duration<> daly;
  double slowdown = 1;      // wall / useful time, checkpoints at Daly's interval
  SampleRate<> throughput;  // over the wall clock
  Duration<> chief_loss;    // what going back to the last checkpoint costs, in the mean
  // With more than one, unless their model is shared out among all: then each is the chief.
  std::optional<WorkerLoss> worker;
  bool at_least = false;  // the restart time is not known and counts as 0
};

struct JobOutlook {
  SampleCount<> update_batch;  // m
  Duration<> update_interval;  // of all workers
  std::optional<LimitOutlook> limit;
  StepSpending spending;
  std::optional<double> efficiency;  // statistical, against known_batch
  std::optional<SampleRate<>> goodput;
  // By the 90 % interval of the step.
  std::optional<SampleRate<>> goodput_low;
  std::optional<SampleRate<>> goodput_high;
  std::optional<JobStretch> epoch;
  std::optional<JobStretch> target;
  // What the plan costs in samples that is in neither: goodput is at most, target at least so much.
  std::vector<std::string> not_counted;
  std::optional<FailureOutlook> failures;
};

// The outlook as far as the facts allow; options are not checked against each other. `device` is
// the data sheet of the device in use. Throws InputError for a data set of fewer samples than an
// update takes.
JobOutlook MakeOutlook(const Prediction& prediction, const Plan& plan, const Cluster& cluster,
                       const std::optional<Device>& device, const OutlookOptions& options);

// The outlook on the limit alone.
LimitOutlook MakeLimitOutlook(const Prediction& prediction, Duration<> limit);

// What makes samples of the plan worth less, by how much nobody knows: "stale updates", "local
// steps", "compressed gradients". Nothing of a worker that exchanges with nobody.
std::vector<std::string> CostsInSamples(const Plan& plan);

// Servers or helpers that the plan puts on nodes of their own.
int ServerNodes(const Plan& plan);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_OUTLOOK_H_
