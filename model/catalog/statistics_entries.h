// Entries of the catalogue: stragglers and idleness, what a sample is worth, failures, money and
// energy.
#ifndef STEPCAST_MODEL_CATALOG_STATISTICS_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_STATISTICS_ENTRIES_H_

#include <cmath>
#include <vector>

#include "data/units/quantity.h"
#include "model/catalog/catalog.h"
#include "model/failures/failures.h"
#include "model/spending/spending.h"
#include "model/statistics/noise_scale.h"
#include "model/sync/idleness.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

inline constexpr Files kStragglerFiles{"model/sync/straggler.h", "docs/explanation/statistics.md",
                                       "tests/model/straggler_test.cc"};
inline constexpr Files kIdlenessFiles{"model/sync/idleness.h", "docs/explanation/statistics.md",
                                      "tests/model/straggler_test.cc"};
inline constexpr Files kNoiseScaleFiles{"model/statistics/noise_scale.h",
                                        "docs/explanation/statistics.md",
                                        "tests/model/statistics_test.cc"};
inline constexpr Files kFailuresFiles{"model/failures/failures.h", "docs/explanation/statistics.md",
                                      "tests/model/failures_test.cc"};
inline constexpr Files kSpendingFiles{"model/spending/spending.h", "docs/explanation/statistics.md",
                                      "tests/model/spending_test.cc"};

inline constexpr int kStatisticsWorkers = 12;
inline constexpr int kStatisticsNodes = 3;
inline constexpr int kStatisticsBackup = 2;
inline constexpr int kStatisticsMicroSteps = 4;

template <class T>
void AddStragglerEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  const ModelInput t{"t", "s", 1e-3, 10, kUp, "compute time of one micro-step"};
  const ModelInput sigma{"sigma", "",  1e-4,
                         1,       kUp, "spread of a micro-step between workers, as a share of it"};
  models->push_back(
      {.id = "sync/straggler",
       .sentence = "A synchronous step waits for the slowest of its workers, whose times spread "
                   "normally: the expected largest of w values.",
       .formula = "sigma t sqrt(a) Phi^-1((w - 3/8) / (w + 1/4)), a = 4, w = 12",
       .source = "Blom, Statistical Estimates and Transformed Beta-Variables, 1958; Wichura, "
                 "Applied Statistics 37 (1988)",
       .validity = "spreads independent between workers and micro-steps; 4.5 % high at w = 2, "
                   "within 1 % from w = 7 on",
       .inputs = {t, sigma},
       .evaluate =
           [](const std::vector<T>& x) {
             return StragglerWait(Duration<T>::FromSi(x[0]), x[1], kStatisticsMicroSteps,
                                  kStatisticsWorkers)
                 .si();
           },
       .known = {{"100 ms, 5 %: 10 ms times the normal quantile of 11.625/12.25",
                  {0.1, 0.05},
                  0.01 * 1.6350392668},
                 {"workers that do not differ", {0.1, 0}, 0}},
       .home = {kStragglerFiles, "StragglerWait", "1-the-slowest-of-w"}});
  models->push_back(
      {.id = "sync/backup_workers",
       .sentence = "With k backup workers a step ends with the slowest but k: a shorter wait, "
                   "bought with the gradients of the k.",
       .formula = "sigma t sqrt(a) max(0, Phi^-1((w - k - 3/8) / (w + 1/4))), a = 4, w = 12, k = 2",
       .source = "Chen, Pan, Monga, Bengio, Jozefowicz, Revisiting Distributed Synchronous SGD, "
                 "2016; Blom 1958",
       .validity = "spreads independent between workers and micro-steps; the workers that are not "
                   "waited for drop their gradients",
       .inputs = {t, sigma},
       .evaluate =
           [](const std::vector<T>& x) {
             return StragglerWait(Duration<T>::FromSi(x[0]), x[1], kStatisticsMicroSteps,
                                  kStatisticsWorkers, kStatisticsBackup)
                 .si();
           },
       .known = {{"100 ms, 5 %: 10 ms times the normal quantile of 9.625/12.25",
                  {0.1, 0.05},
                  0.01 * 0.7916386077},
                 {"workers that do not differ", {0.1, 0}, 0}},
       .home = {kStragglerFiles, "StragglerWait", "1-the-slowest-of-w"}});
  models->push_back(
      {.id = "sync/exponential_straggler",
       .sentence = "Where each worker is late by an exponential delay, the step waits for the "
                   "largest delay beyond the mean one.",
       .formula = "theta (H_w - 1), H_w = 1 + 1/2 + ... + 1/w, w = 12",
       .source = "Renyi, Acta Mathematica Hungarica 4 (1953); David and Nagaraja, Order "
                 "Statistics, 2003",
       .validity = "one delay for each worker and step, with a memoryless tail",
       .inputs = {{"theta", "s", 1e-5, 10, kUp, "mean delay of a worker"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return ExponentialStragglerWait(Duration<T>::FromSi(x[0]), kStatisticsWorkers).si();
           },
       .known = {{"H_12 is 86021/27720", {1}, 58301.0 / 27720},
                 {"10 ms of delay", {0.01}, 583.01 / 27720}},
       .home = {kStragglerFiles, "ExponentialStragglerWait", "1-the-slowest-of-w"}});
  models->push_back(
      {.id = "sync/exponential_backup_workers",
       .sentence = "Exponential delays with k backup workers: the step waits for the largest "
                   "delay but k, beyond the mean one.",
       .formula = "theta max(0, H_w - H_k - 1), w = 12, k = 2",
       .source = "Renyi, Acta Mathematica Hungarica 4 (1953); Chen et al., Revisiting Distributed "
                 "Synchronous SGD, 2016",
       .validity = "one delay for each worker and step, with a memoryless tail",
       .inputs = {{"theta", "s", 1e-5, 10, kUp, "mean delay of a worker"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return ExponentialStragglerWait(Duration<T>::FromSi(x[0]), kStatisticsWorkers,
                                             kStatisticsBackup)
                 .si();
           },
       .known = {{"H_12 - H_2 - 1", {1}, 86021.0 / 27720 - 2.5},
                 {"a tenth of the delay", {0.1}, 0.1 * (86021.0 / 27720 - 2.5)}},
       .home = {kStragglerFiles, "ExponentialStragglerWait", "1-the-slowest-of-w"}});
  models->push_back(
      {.id = "sync/step_p95",
       .sentence = "The step that 19 of 20 steps do not exceed, from the spread of the slowest "
                   "worker and from a scatter that all workers share.",
       .formula = "(c + d x50) exp(sqrt(ln((c + d x95) / (c + d x50))^2 + (1.645 s)^2)), "
                  "x_q = Phi^-1(q^(1/w)), w = 12",
       .source = "the distribution of the largest of w (David and Nagaraja, Order Statistics, "
                 "2003); the combination is this project's, docs/explanation/statistics.md",
       .validity = "exact without one of the two scatters; within 3 % for d up to 0.3 c and s up "
                   "to 0.2",
       .inputs = {{"c", "s", 1e-3, 10, kUp, "the step without the wait"},
                  {"d", "s", 1e-5, 10, kUp, "spread of one worker"},
                  {"s", "", 1e-3, 0.7, kUp, "standard deviation of ln(step) common to all"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return StepQuantile(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]), x[2],
                                 {Spread::kNormal, kStatisticsWorkers, 0}, 0.95)
                 .si();
           },
       .known = {{"no common scatter: c + d times the normal quantile of 0.95^(1/12)",
                  {1, 0.1, 0},
                  1 + 0.1 * 2.6303126461},
                 {"no spread between workers: the log-normal quantile",
                  {1, 0, 0.1},
                  std::exp(0.1 * 1.6448536270)},
                 {"neither: the step itself", {2, 0, 0}, 2}},
       .home = {kStragglerFiles, "StepQuantile", "2-p50-p95-and-p99-of-a-step"}});
  models->push_back(
      {.id = "sync/idleness",
       .sentence = "The share of a step in which a worker does not compute.",
       .formula = "1 - t / (t + x)",
       .source = "Jia, Saha, Bhimani, Mi, Performance and Consistency Analysis for Distributed "
                 "Deep Learning Applications",
       .validity = "any step; communication behind the backward pass is no idleness",
       .output = "",
       .inputs = {{"t", "s", 1e-2, 10, Trend::kNeverRises, "compute time of the step"},
                  {"x", "s", 1e-2, 10, kUp, "exposed synchronisation and wait"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return IdlenessRatio(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[0] + x[1]));
           },
       .known = {{"a quarter", {0.3, 0.1}, 0.25},
                 {"a step of nothing but compute", {0.3, 0}, 0},
                 {"a step of nothing but waiting", {0, 0.1}, 1}},
       .home = {kIdlenessFiles, "IdlenessRatio", "3-idleness"}});
}

template <class T>
void AddNoiseScaleEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  const auto batch = [](Trend trend) {
    return ModelInput{"B", "samples", 1, 1e6, trend, "global batch of a step"};
  };
  const auto noise = [](Trend trend) {
    return ModelInput{"B_noise", "samples", 1, 1e6, trend, "gradient noise scale"};
  };
  const ModelInput known_batch{
      "m0", "samples", 1, 1e4, kUp, "batch for which learning rate and epochs are known"};
  const char* mccandlish =
      "McCandlish, Kaplan, Amodei et al., An Empirical Model of Large-Batch Training, 2018";
  const char* pollux = "Qiao et al., Pollux, OSDI 2021";
  const char* holds =
      "synchronous gradient descent, learning rate adapted to the batch, one noise scale for the "
      "whole stretch; staleness costs nothing here";
  models->push_back({.id = "statistics/steps_to_target",
                     .sentence = "Steps to a target: fewer with larger batches, down to a least "
                                 "number; twice that at the noise scale.",
                     .formula = "S_min (1 + B_noise / B)",
                     .source = mccandlish,
                     .validity = holds,
                     .output = "",
                     .inputs = {{"S_min", "", 10, 1e7, kUp, "steps with an endless batch"},
                                noise(kUp),
                                batch(kDown)},
                     .evaluate =
                         [](const std::vector<T>& x) {
                           return StepsToTarget(x[0], SampleCount<T>::FromSi(x[1]),
                                                SampleCount<T>::FromSi(x[2]));
                         },
                     .known = {{"at the noise scale twice the least", {1000, 512, 512}, 2000},
                               {"no noise: the least", {1000, 0, 64}, 1000}},
                     .home = {kNoiseScaleFiles, "StepsToTarget", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/samples_to_target",
       .sentence = "Samples to a target: more with larger batches; twice the least number at the "
                   "noise scale.",
       .formula = "E_min (1 + B / B_noise)",
       .source = mccandlish,
       .validity = holds,
       .output = "samples",
       .inputs = {{"E_min", "samples", 1e3, 1e10, kUp, "samples with the smallest batch"},
                  noise(kDown),
                  batch(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             return SamplesToTarget(SampleCount<T>::FromSi(x[0]), SampleCount<T>::FromSi(x[1]),
                                    SampleCount<T>::FromSi(x[2]))
                 .si();
           },
       .known = {{"at the noise scale twice the least", {1e6, 512, 512}, 2e6},
                 {"three times the noise scale", {1e6, 100, 300}, 4e6}},
       .home = {kNoiseScaleFiles, "SamplesToTarget", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/critical_batch",
       .sentence = "The batch beyond which more samples buy few steps: least samples over least "
                   "steps.",
       .formula = "E_min / S_min",
       .source = mccandlish,
       .validity = holds,
       .output = "samples",
       .inputs = {{"E_min", "samples", 1e3, 1e10, kUp, "samples with the smallest batch"},
                  {"S_min", "", 10, 1e7, kDown, "steps with an endless batch"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return CriticalBatch(SampleCount<T>::FromSi(x[0]), x[1]).si();
           },
       .known = {{"a million samples, a thousand steps", {1e6, 1e3}, 1000},
                 {"one sample a step", {1e4, 1e4}, 1}},
       .home = {kNoiseScaleFiles, "CriticalBatch", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/noise_scale",
       .sentence = "The gradient noise scale from the mean squared gradient norms of batches of 32 "
                   "and 1024 samples.",
       .formula = "tr / G2, tr = (n_small - n_big) / (1/32 - 1/1024), G2 = (1024 n_big - 32 "
                  "n_small) / 992, n_small = n_big (1 + r)",
       .source = mccandlish,
       .validity = "norms averaged over many steps; excess below 31, where the true gradient "
                   "would vanish",
       .output = "samples",
       .constants = "batches of 32 and 1024 samples",
       .inputs = {{"n_big", "", 1e-6, 1e6, Trend::kEither, "mean squared norm, big batch"},
                  {"r", "", 1e-2, 20, kUp, "excess of the small batch's, as a share"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return EstimateGradientNoise(T(x[0] * (T(1.0) + x[1])), SampleCount<T>(Samples(32.0)),
                                          x[0], SampleCount<T>(Samples(1024.0)))
                 .scale()
                 .si();
           },
       .known = {{"|G|^2 = 1 and tr = 1024: norms 2 and 33", {2, 15.5}, 1024},
                 {"|G|^2 = 1 and tr = 32: norms 1 + 1/32 and 2", {1 + 1.0 / 32, 31.0 / 33}, 32}},
       .home = {kNoiseScaleFiles, "EstimateGradientNoise", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/efficiency",
       .sentence = "What a sample in batch m is worth, in samples of batch m0.",
       .formula = "(phi + m0) / (phi + m)",
       .source = pollux,
       .validity = holds,
       .output = "",
       .inputs = {{"phi", "samples", 1, 1e6, Trend::kEither, "gradient noise scale"},
                  known_batch,
                  {"m", "samples", 1, 1e6, kDown, "global batch of a step"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return StatisticalEfficiency(SampleCount<T>::FromSi(x[0]),
                                          SampleCount<T>::FromSi(x[1]),
                                          SampleCount<T>::FromSi(x[2]));
           },
       .known = {{"at m0 exactly 1", {700, 128, 128}, 1},
                 {"no noise: a larger batch is worth no more", {0, 128, 1024}, 0.125},
                 {"(100 + 100) / (100 + 300)", {100, 100, 300}, 0.5}},
       .home = {kNoiseScaleFiles, "StatisticalEfficiency", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/step_gain",
       .sentence = "How many steps of batch m0 one step of batch m replaces.",
       .formula = "(m / m0) (phi + m0) / (phi + m)",
       .source = "Johnson, Agrawal, Gu, Guestrin, AdaScale SGD, ICML 2020; Qiao et al., OSDI 2021",
       .validity = holds,
       .output = "",
       .inputs = {{"phi", "samples", 1, 1e6, Trend::kEither, "gradient noise scale"},
                  {"m0", "samples", 1, 1e4, kDown, known_batch.meaning},
                  {"m", "samples", 1, 1e6, kUp, "global batch of a step"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return StepGain(SampleCount<T>::FromSi(x[0]), SampleCount<T>::FromSi(x[1]),
                             SampleCount<T>::FromSi(x[2]));
           },
       .known = {{"at m0 exactly 1", {700, 128, 128}, 1},
                 {"no noise: a step is a step", {0, 128, 1024}, 1},
                 {"3 times 200/400", {100, 100, 300}, 1.5}},
       .home = {kNoiseScaleFiles, "StepGain", "4-what-a-sample-is-worth"}});
  models->push_back({.id = "statistics/goodput",
                     .sentence = "Throughput times what its samples are worth.",
                     .formula = "X (phi + m0) / (phi + m)",
                     .source = pollux,
                     .validity = holds,
                     .output = "samples/s",
                     .inputs = {{"X", "samples/s", 1, 1e6, kUp, "throughput"},
                                {"phi", "samples", 1, 1e6, Trend::kEither, "gradient noise scale"},
                                known_batch,
                                {"m", "samples", 1, 1e6, kDown, "global batch of a step"}},
                     .evaluate =
                         [](const std::vector<T>& x) {
                           return Goodput(SampleRate<T>::FromSi(x[0]), SampleCount<T>::FromSi(x[1]),
                                          SampleCount<T>::FromSi(x[2]),
                                          SampleCount<T>::FromSi(x[3]))
                               .si();
                         },
                     .known = {{"at m0 the throughput", {500, 700, 128, 128}, 500},
                               {"half of it", {500, 100, 100, 300}, 250}},
                     .home = {kNoiseScaleFiles, "Goodput", "4-what-a-sample-is-worth"}});
  models->push_back({.id = "statistics/time_to_target",
                     .sentence = "Steps to the target times the time of one.",
                     .formula = "T S_min (1 + B_noise / B)",
                     .source = mccandlish,
                     .validity = holds,
                     .inputs = {{"T", "s", 1e-3, 10, kUp, "step"},
                                {"S_min", "", 10, 1e7, kUp, "steps with an endless batch"},
                                noise(kUp),
                                batch(kDown)},
                     .evaluate =
                         [](const std::vector<T>& x) {
                           return TimeToTarget(Duration<T>::FromSi(x[0]), x[1],
                                               SampleCount<T>::FromSi(x[2]),
                                               SampleCount<T>::FromSi(x[3]))
                               .si();
                         },
                     .known = {{"at the noise scale", {0.5, 1000, 512, 512}, 1000},
                               {"no noise", {0.5, 1000, 0, 512}, 500}},
                     .home = {kNoiseScaleFiles, "TimeToTarget", "4-what-a-sample-is-worth"}});
  models->push_back(
      {.id = "statistics/best_batch",
       .sentence = "The global batch with the highest goodput and the shortest time to a target, "
                   "where a step has a fixed part and one that grows with the batch.",
       .formula = "sqrt(B_noise c0 / c1)",
       .source = "minimum of (c0 + c1 B)(1 + B_noise / B), docs/explanation/statistics.md",
       .validity = "step time affine in the batch; memory and the smallest batch may bind first",
       .output = "samples",
       .inputs = {noise(kUp),
                  {"c0", "s", 1e-4, 10, kUp, "part of the step that no batch changes"},
                  {"c1", "s/samples", 1e-6, 1, kDown, "time of a further sample"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return BestBatch(SampleCount<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                              DurationPerSample<T>::FromSi(x[2]))
                 .si();
           },
       .known = {{"400 samples, 100 ms, 1 ms a sample", {400, 0.1, 1e-3}, 200},
                 {"fixed part and noise scale alike: the noise scale", {100, 0.1, 1e-3}, 100}},
       .home = {kNoiseScaleFiles, "BestBatch", "4-what-a-sample-is-worth"}});
}

template <class T>
void AddFailureEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  const auto job = [](Trend trend) {
    return ModelInput{"M", "s", 1e4, 1e8, trend, "mean time between failures of the job"};
  };
  const ModelInput checkpoint{"d", "s", 0.1, 1800, kUp, "time to write a checkpoint"};
  const ModelInput interval{"tau", "s", 10, 1e4, Trend::kEither, "useful time between checkpoints"};
  const char* daly = "Daly, Future Generation Computer Systems 22 (2006)";
  models->push_back(
      {.id = "failures/job_time_between_failures",
       .sentence = "Any of 3 nodes or 12 devices stops a synchronous job: their rates of failure "
                   "add.",
       .formula = "1 / (N / M_node + w / M_device), N = 3, w = 12",
       .source = "superposition of independent Poisson processes; Young, CACM 17 (1974)",
       .validity = "independent failures at constant rates",
       .inputs = {{"M_node", "s", 1e5, 1e9, kUp, "mean time between failures of a node"},
                  {"M_device", "s", 1e5, 1e9, kUp, "of a device and its process"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return JobTimeBetweenFailures(Duration<T>::FromSi(x[0]), kStatisticsNodes,
                                           Duration<T>::FromSi(x[1]), kStatisticsWorkers)
                 .si();
           },
       .known = {{"nodes and devices fail alike often", {3e6, 12e6}, 5e5},
                 {"devices that hardly fail", {3e6, 1e30}, 1e6}},
       .home = {kFailuresFiles, "JobTimeBetweenFailures", "5-failures"}});
  models->push_back(
      {.id = "failures/young_interval",
       .sentence = "How long to work between checkpoints, to first order.",
       .formula = "sqrt(2 d M)",
       .source = "Young, CACM 17 (1974)",
       .validity = "d much smaller than M",
       .inputs = {checkpoint, job(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             return YoungInterval(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1])).si();
           },
       .known = {{"2 minutes, a day and a bit", {120, 93750}, 4743.416490252569},
                 {"a minute, 30000 s", {60, 30000}, std::sqrt(3.6e6)}},
       .home = {kFailuresFiles, "YoungInterval", "5-failures"}});
  models->push_back(
      {.id = "failures/daly_interval",
       .sentence = "How long to work between checkpoints, to higher order.",
       .formula = "sqrt(2 d M) (1 + sqrt(x)/3 + x/9) - d, x = d / (2 M); M where x >= 1",
       .source = daly,
       .validity = "exponential times between failures, at any moment",
       .inputs = {checkpoint, job(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             return DalyInterval(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1])).si();
           },
       .known = {{"x = 1/100: 2 M (0.1 (1 + 1/30 + 1/900) - 0.01)",
                  {200, 10000},
                  20000 * (0.1 * (931.0 / 900) - 0.01)},
                 {"checkpoints longer than 2 M: M", {30000, 10000}, 10000}},
       .home = {kFailuresFiles, "DalyInterval", "5-failures"}});
  models->push_back(
      {.id = "failures/checkpoint_slowdown",
       .sentence = "Wall time for each second of useful work, with checkpoints, failures and "
                   "restarts from the last checkpoint.",
       .formula = "(M/tau) exp(R/M) (exp((tau + d)/M) - 1)",
       .source = daly,
       .validity = "exponential times between failures, which may hit checkpoints and restarts",
       .output = "",
       .inputs = {interval, checkpoint, {"R", "s", 1, 3600, kUp, "restart"}, job(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return CheckpointSlowdown(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                                       Duration<T>::FromSi(x[2]), Duration<T>::FromSi(x[3]));
           },
       .known = {{"hardly any failures: 1 + d / tau", {1000, 100, 10, 1e16}, 1.1},
                 {"tau + d = M, no restart: (e - 1) M / tau",
                  {900, 100, 0, 1000},
                  (std::exp(1.0) - 1) / 0.9}},
       .home = {kFailuresFiles, "CheckpointSlowdown", "5-failures"}});
  models->push_back(
      {.id = "failures/chief_loss",
       .sentence = "What losing the chief costs: half an interval of work, and the restart.",
       .formula = "(tau + d)/2 + R",
       .source = daly,
       .validity = "intervals much shorter than the time between failures",
       .inputs = {{"tau", "s", 10, 1e5, kUp, interval.meaning},
                  checkpoint,
                  {"R", "s", 1, 3600, kUp, "restart"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return ChiefLoss(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                              Duration<T>::FromSi(x[2]))
                 .si();
           },
       .known = {{"by hand", {1000, 100, 50}, 600}, {"the restart alone", {0, 0, 50}, 50}},
       .home = {kFailuresFiles, "ChiefLoss", "5-failures"}});
  models->push_back(
      {.id = "failures/synchronous_worker_loss",
       .sentence = "Wall time for each second of work where the loss of any worker stops all until "
                   "it is replaced.",
       .formula = "1 + (D + T/2) / M",
       .source = "renewal reward: one recovery and half a step for each mean time at work; "
                 "docs/explanation/statistics.md",
       .validity = "the state is with the other workers; steps much shorter than M",
       .output = "",
       .inputs = {{"T", "s", 1e-3, 10, kUp, "step"},
                  {"D", "s", 1, 1e4, kUp, "recovery"},
                  job(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return SynchronousLossSlowdown(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                                            Duration<T>::FromSi(x[2]));
           },
       .known = {{"a minute in an hour, 2 s steps", {2, 59, 3600}, 1 + 1.0 / 60},
                 {"no failures", {2, 60, 1e30}, 1}},
       .home = {kFailuresFiles, "SynchronousLossSlowdown", "5-failures"}});
  models->push_back(
      {.id = "failures/asynchronous_worker_loss",
       .sentence = "Wall time for each second of work where a lost worker takes along only its "
                   "own share of the throughput.",
       .formula = "1 + D / M_w",
       .source = "renewal reward for each worker alone; docs/explanation/statistics.md",
       .validity = "asynchronous workers that set the pace; where servers do, it costs less",
       .output = "",
       .inputs = {{"D", "s", 1, 1e4, kUp, "recovery"},
                  {"M_w", "s", 1e4, 1e9, kDown, "mean time between failures of one worker"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return AsynchronousLossSlowdown(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]));
           },
       .known = {{"a minute in an hour", {60, 3600}, 1 + 1.0 / 60}, {"no failures", {60, 1e30}, 1}},
       .home = {kFailuresFiles, "AsynchronousLossSlowdown", "5-failures"}});
}

template <class T>
void AddSpendingEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  const ModelInput step{"T", "s", 1e-3, 10, kUp, "step"};
  models->push_back({.id = "spending/step_price",
                     .sentence = "What a step costs on 3 rented nodes.",
                     .formula = "N P T / 3600, N = 3",
                     .source = "the definition of a price by the hour",
                     .validity = "nodes paid for by the second, busy or not",
                     .output = "USD",
                     .constants = "3600 s in an hour",
                     .inputs = {step, {"P", "USD/h", 0.01, 100, kUp, "price of a node"}},
                     .evaluate =
                         [](const std::vector<T>& x) {
                           return StepPriceUsd(Duration<T>::FromSi(x[0]), kStatisticsNodes, x[1]);
                         },
                     .known = {{"3.6 s at 4 USD/h", {3.6, 4}, 0.012}, {"free nodes", {3.6, 0}, 0}},
                     .home = {kSpendingFiles, "StepPriceUsd", "6-money-and-energy"}});
  models->push_back(
      {.id = "spending/step_energy",
       .sentence = "What a step draws on 3 nodes with 12 devices, which draw less while they wait.",
       .formula = "w (p_idle + p_extra) t + w p_idle x + N p_node (t + x), w = 12, N = 3",
       .source = "energy is power x time; against measured power in docs/explanation/statistics.md",
       .validity = "mean powers of the workload in question; switches and cooling not counted",
       .output = "J",
       .inputs = {{"t", "s", 1e-3, 10, kUp, "compute time of the step"},
                  {"x", "s", 1e-3, 10, kUp, "the rest of it"},
                  {"p_idle", "J/s", 5, 100, kUp, "power of a device that waits"},
                  {"p_extra", "J/s", 10, 1000, kUp, "what it draws beyond that while it computes"},
                  {"p_node", "J/s", 10, 2000, kUp, "power of a node but for its devices"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return StepEnergyJ(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[0] + x[1]),
                                {T(x[2] + x[3]), x[2], x[4]}, kStatisticsWorkers, kStatisticsNodes);
           },
       .known = {{"1 s of compute, 1 s of waiting", {1, 1, 50, 250, 100}, 3600 + 600 + 600},
                 {"nothing but compute", {1, 0, 50, 250, 0}, 3600},
                 {"nothing but waiting", {0, 1, 50, 250, 0}, 600}},
       .home = {kSpendingFiles, "StepEnergyJ", "6-money-and-energy"}});
}

template <class T>
void AddStatisticsEntries(std::vector<Model<T>>* models) {
  AddStragglerEntries(models);
  AddNoiseScaleEntries(models);
  AddFailureEntries(models);
  AddSpendingEntries(models);
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_STATISTICS_ENTRIES_H_
