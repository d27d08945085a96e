// Rows of a calibration that are probably wrong, and what each of them behaves like.
//
// A row is suspect when the fit does not meet it, or when runs of its very plan contradict it:
//
//   |r| > min( max(4 s(x), ln 1.25), ln 3 ),   r = ln(measured / predicted)
//
//   s(x)  scatter of one step of the workload at the share x of exposed synchronisation; among
//         5 to 32 rows that of the others, where it is less, but at least ln(1.35) / 4        [1]
//
// Runs of one plan (same workload, device, hosts and everything else that is stated) contradict
// each other when their times, sorted, have a gap of a factor of 2. The gaps part them into lots.
// All rows of such a plan are reported, however near the fit stands to them, because it may stand
// between the lots; but where one lot has three quarters of the rows, only the others. Scatter is
// then estimated anew without contradictory rows, which no model can meet.
//
// An explanation is accepted that meets the row within 3 scatters, of the step and of what the fit
// does not know of the plan (at most 0.3 in ln), and three times as closely as the fit does. All of
// the first four that do so are named, and beside them what else may have slowed the row:
//
//   1. another unit of time: a factor of 1000 or 60
//   2. a rate instead of a time: steps or samples a second
//   3. other micro-steps to a step: one, or as many as other runs have
//   4. the batch of all workers, or of all micro-steps, taken for that of one; or the reverse
//
// Otherwise the first of
//
//   5. a stated link in bytes rather than bits, or the reverse
//   6. another link: the rate, by bisection, at which the model gives the measured time; where
//      the synchronisation is half of the step, or the factor is 2, or runs contradict each other.
//      It is called by the next nominal rate within 30 %
//   7. slower or faster than the model by a factor, and what that may come from
//
// A run that was stopped is suspect where the model has its step end long before, by the same
// bound.
//
// Note that nothing is dropped: the fit counts a row that is far off by its distance rather than
// its square, and what to do about it is for a person to say. A row that alone decides a parameter
// is met whatever it says, and is never suspect. Several causes can explain one row: the sentence
// says what it behaves like, not what happened.
#ifndef STEPCAST_CALIBRATE_SUSPECTS_H_
#define STEPCAST_CALIBRATE_SUSPECTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"

namespace stepcast {

struct Suspect {
  std::size_t run = 0;  // index into the problem's runs
  double factor = 1;    // measured / predicted
  // One sentence without its full stop: "behaves like a link of 100 Mbit/s; ...".
  std::string cause;
};

// Causes are looked for in the worst so many rows; of the others the factor is said.
inline constexpr std::size_t kMaxDiagnosed = 100;

// Suspect rows, the worst first: by |ln factor|, or half the ln of the factor by which runs of the
// plan differ where that is more. Empty where the outcome is not usable. `outcome` must be that of
// `problem`. The time is that of sorting the runs by plan. Deterministic.
std::vector<Suspect> FindSuspects(const CalibrationProblem& problem,
                                  const CalibrationOutcome& outcome);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_SUSPECTS_H_
