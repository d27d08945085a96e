// Why a measured step is longer than it should be: which single cause explains it, how sure that
// is, what to do, and what to measure next.
//
// Of measurement i, under hypothesis h with its one free number x,
//
//   y_i = f_i(theta; h, x) + e_i,   e_i ~ N(0, s_i^2),   theta ~ N(m, C)
//
//   y_i    ln of what was measured: a step, a rate of iperf3, a round trip
//   f_i    ln of what the model says of it, with the hypothesis put into its plan or parameters
//   theta  ln of the parameters, of which the belief (model/step/belief.h) has mean and covariance
//   s_i    scatter of one step and discrepancy of the plan, as in the interval of a forecast;
//          kProbeLogSd of a rate, kTripLogSd of a round trip
//   x      how bad it is: log-uniform over the range of the table below; of a slow host, ln x is
//          half of a normal law with the width that devices of one kind differ by
//
//   p(y | h)     = integral p(y | h, x) p(x) dx       theta integrated out at its likeliest value
//   p(h | y)     = p(y | h) p(h) / sum over all
//   p(lost | h)  of k of n packets: binomial, of the share x where h is loss; else of a share that
//                is more than l with probability (stated share, or 1e-6) / l. What was counted is
//                then lost in the steps and rates of each cause besides; where nothing is wrong,
//                the step is as it should be without it
//   p(nothing)   = 1/2; the causes that can apply to the plan share the rest equally
//
//   cause      what differs from what is stated, or believed where nothing is         x
//   link       the links deliver a share of their rate                                0.004 .. 0.7
//   flow       what the flows to one peer carry is a share of what is believed        0.05 .. 0.5
//   latency    the round trip between nodes                                           0.3 .. 300 ms
//   loss       packets are lost                                                       1e-5 .. 0.1
//   host       one host, or one device of a single host, computes slower by a factor  1.15 .. 8
//   overlap    nothing of the exchange hides behind the backward pass                 -
//   batch      what no batch changes of a micro-step takes many times as long         4 .. 200
//   input      samples arrive too slowly: each host's, or those of all together       0.5 .. 100
//   servers    servers on the workers' nodes, all on one, or variables dealt in turn  -
//   device_link  devices of a host exchange at a share of what is stated or believed  0.01 .. 0.7
//
// A range is as wide as what people have reported, so that a cause that has to be just so bad loses
// by it. What links, flows and devices of one host carry where nobody states or has learnt it is
// taken as in the belief, but within what healthy ones differ by: what is slow is slow against
// something. Where nobody knows the links' rate, flows are not told from them. A slow host is one
// of those that only the whole plan uses; times of one worker, or of one node of several, are of a
// good one.
//
// Where nothing else tells how long the job computes, what is believed of it is centred on the step
// of the smallest part of it that was measured: what a cause explains of that alone speaks for
// none.
//
// Each hypothesis is a single cause: two at once show as one that leaves a rest, which is said.
//
// The next measurement is the one that tells most of which cause it is: of each that can be made,
// the mutual information between cause and result, with the forecasts of every hypothesis at every
// x, weighted by what is known so far.
//
// Note that probabilities sum to one; that no cause is likelier for having more forms; that a
// measurement that every hypothesis forecasts alike changes none of them; that a step as the model
// expects it speaks for nothing; that a cause that is named adds a tenth to a step, and at least
// half of what it is longer by than expected; that one longer than its interval has nothing wrong
// with it only where that is likelier than all causes together, or none is such a cause; that in
// one no longer than expected a cause is named only where it is likelier than all else: what was
// measured of its parts has its share of what is wrong. No cause is named that is less likely than
// one in fifty.
//
// What was measured can contradict itself, by a slip in what was typed in: then no cause meets all
// of it, and the likeliest is only the one that gives way most easily. A figure is at odds where
// what is left without it is met by some cause; a rate that a stated link cannot carry is, whatever
// else was measured.
//
// calibrate/suspects.h says of a row among many what it behaves like, and calibrate/drift.h which
// parameter of a calibrated cluster has changed; both need a fit. This needs one number.
#ifndef STEPCAST_PREDICTOR_DIAGNOSE_DIAGNOSE_H_
#define STEPCAST_PREDICTOR_DIAGNOSE_DIAGNOSE_H_

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/step/step_time.h"
#include "predictor/binding.h"
#include "predictor/prediction.h"
#include "predictor/predictor.h"

namespace stepcast {

enum class Cause {
  kNothing,
  kLink,
  kFlow,
  kLatency,
  kLoss,
  kHost,
  kOverlap,
  kBatch,
  kInput,
  kServers,
  kDeviceLink
};
inline constexpr int kCauseCount = 11;
inline constexpr const char* kCauseNames[kCauseCount] = {
    "nothing", "link",  "flow",  "latency", "loss",       "host",
    "overlap", "batch", "input", "servers", "device_link"};

// Standard deviation of ln(one measured rate): programs that measure a path meet their own result
// within so much.
inline constexpr double kProbeLogSd = 0.05;
// The same of a round trip, which differs with the time of day and with who measures.
inline constexpr double kTripLogSd = 0.3;

// A measurement that is further from what a cause makes of it, in standard deviations, is not
// explained by it.
inline constexpr double kMostSurprise = 3;

// What was measured, or could be: a step of a plan, the rate of so many connections between two
// nodes, the round trip between them, the share of packets that got lost.
enum class Measured { kStep, kRate, kRoundTrip, kLoss };

struct Measurement {
  Measured what = Measured::kStep;
  Plan plan;                      // of a step
  int connections = 1;            // of a rate
  bool synthetic_input = false;   // of a step: its samples were made up in memory
  bool slowest_of_hosts = false;  // of a step: each host alone, and this is the longest
  bool exchange_alone = false;    // of a step: the workers exchange its gradients, and only that
  double value = 0;               // s, B/s, s, or a share of packets
  double packets = 0;             // that were sent, of which a share got lost

  static Measurement Step(const Plan& plan, Duration<> step);
  static Measurement Rate(DataRate<> rate, int connections);
  static Measurement RoundTrip(Duration<> trip);
  static Measurement Loss(double share, double packets);
};

struct Complaint {
  Plan plan;
  Duration<> step;
  std::vector<Measurement> known;  // whatever else was measured of the job or its network
};

struct DiagnosisOptions {
  // Standard deviation of ln(measured / forecast) of a step where cause and parameters are right;
  // by default what the forecast's interval has.
  std::optional<double> step_log_sd;
  bool advise = true;  // remedies and the next measurement too
};

// How bad a cause is: in words, and as a number in `unit` with its 90 % interval.
struct CauseSize {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string unit;
  std::string text;  // "the links deliver 625 Mbit/s of 10 Gbit/s"
};

struct ExplainedBy {
  Cause cause = Cause::kNothing;
  double probability = 0;
  CauseSize size;          // empty text for nothing
  Duration<> step;         // as the model has it with this cause
  Duration<> added;        // what of it would not be there without the cause, all else alike
  StepTime<double> parts;  // of that step
  double surprise = 0;     // ln(measured / step) in standard deviations
};

struct Remedy {
  std::string text;  // "links of 25 Gbit/s"
  Plan plan;
  Duration<> step;
  SampleRate<> throughput;
  double gain = 1;       // throughput / that of the step as explained
  bool repairs = false;  // it takes the cause away, and changes nothing else
};

// The measurement that tells most.
struct NextMeasurement {
  Measurement measurement;
  std::string text;     // "the rate of one connection between two nodes"
  std::string command;  // "iperf3 -c HOST"
  double bits = 0;      // of information on which cause it is, expected
  // What it would show under the leading causes, in words.
  std::vector<std::pair<Cause, std::string>> forecasts;
};

struct Diagnosis {
  // The step as it should be, with what else is known of its compute, and the 90 % interval of a
  // healthy cluster, narrower than that of a forecast, which believes in slow ones too.
  Duration<> expected;
  Duration<> low;
  Duration<> high;
  StepTime<double> expected_parts;
  Binding expected_binding;
  Duration<> measured;
  // Whether it is shorter than the interval: every cause makes a step longer, so none is left but
  // that nothing is wrong, and what other measurements show.
  bool is_short() const { return measured < low; }
  bool is_long() const { return measured > high; }
  // Whether it is short, and nothing else that was measured shows a cause.
  bool is_only_short() const { return is_short() && causes.front().cause == Cause::kNothing; }
  // Whether the first cause comes within three standard deviations of a step to what was measured.
  bool is_explained() const { return std::abs(causes.front().surprise) <= kMostSurprise; }
  // In words, what does not go with the rest of what was measured, whatever is wrong: of two that
  // contradict each other both, of more those of which one is enough. Empty where a cause meets
  // all, or where nothing but a second one is missing. Where it is not, there are no remedies.
  std::vector<std::string> at_odds;
  std::string contradiction;  // the same as a clause
  // Whether the step of the first cause says something of this job: not where none meets what was
  // measured, nor where all are far longer than that.
  bool is_met() const { return at_odds.empty() && (is_explained() || !is_short()); }
  // The one that is named first, the others by their probability; those that cannot apply are left
  // out.
  std::vector<ExplainedBy> causes;
  Binding binding;               // of the step under the first of them
  std::vector<Remedy> remedies;  // what brings most first; under the first cause
  std::optional<NextMeasurement> next;
};

// Throws InputError for a plan that no model covers, and for a value that is none.
Diagnosis Diagnose(const Predictor& predictor, const Complaint& complaint,
                   const DiagnosisOptions& options = {});

// What is wrong in one sentence, without its full stop, and how sure that is.
std::string VerdictOf(const Diagnosis& diagnosis);

// One of its causes in one sentence; where nothing is wrong, that, or that no cause is of a step
// that is too short.
std::string CauseText(const ExplainedBy& explained, const Diagnosis& diagnosis);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_DIAGNOSE_DIAGNOSE_H_
