// Cheng, Liu, Kurihana: TensorFlow's parameter server over gRPC, on links shaped with tc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "model/failures/failures.h"
#include "model/network/congestion.h"
#include "tests/papers/evaluator.h"
#include "tests/papers/page.h"
#include "tests/papers/rows.h"

namespace stepcast::papers {
namespace {

// The ResNet of the runs with three workers, which is not that of the runs with one.
constexpr const char* kLargeResnet = "resnet_of_three_workers";
constexpr const char* kResnet = "resnet50";
constexpr const char* kMobilenet = "mobilenet_v2";
constexpr const char* kMlp = "mlp_mnist";
constexpr const char* kLargeMlp = "mlp_imagenet";

struct Conditions {
  int workers = 1;
  int batch = 32;
  double gbit_per_s = 1;
  double rtt_ms = 1;
  double loss = 0;
};

Plan PlanOf(const Conditions& c) {
  Plan plan;
  plan.placement = Placement(static_cast<std::size_t>(c.workers), 1);
  plan.servers = 1;
  plan.strategy = Strategy::kPsSync;
  plan.server.sharding = Sharding::kRoundRobin;  // TensorFlow's; of no effect with one server
  plan.overlap = Overlap::kNone;
  plan.local_batch = c.batch;
  plan.link.bandwidth = GigabitsPerSecond(c.gbit_per_s);
  plan.link.rtt = Milliseconds(c.rtt_ms);
  plan.link.loss = c.loss;
  // Linux's default; tc on a sender loses packets before the network card has cut them.
  plan.link.congestion_control = CongestionControl::kCubic;
  plan.link.loss_burst = kOffloadBurst;
  plan.server_link = plan.link;
  return plan;
}

double Seconds(const Setup& setup, const std::string& workload, const Conditions& c) {
  return setup.Step(workload, PlanOf(c)).in(kSeconds);
}

// Samples per second of one worker, as the paper prints them.
double Throughput(const Setup& setup, const std::string& workload, const Conditions& c) {
  return c.batch / Seconds(setup, workload, c);
}

double Printed(const std::string& id) {
  for (const Row& row : ReadRows()) {
    if (row.id == id) return row.value.value();
  }
  throw std::runtime_error("no row " + id);
}

// Compute of one image, as its work is to that of ResNet-50.
double WorkShare(const Setup& setup, const std::string& workload) {
  return setup.workload(workload).forward_flop() / setup.workload(kResnet).forward_flop();
}

std::shared_ptr<const Setup> MakeSetup() {
  auto setup = std::make_shared<Setup>("networking-perspective");
  constexpr double kLeast = 0.001;  // ms, as good as none
  const auto throughput_of = [](const char* workload, const Conditions& c) {
    return [=](const Setup& s) { return Throughput(s, workload, c); };
  };

  // ResNet: the batch costs what 992 more images cost; all else is the transfer.
  const double few = Printed("np-run-resnet-32");
  const double many = Printed("np-run-resnet-1024");
  const double image_ms = (1024 / many - 32 / few) * 1e3 / (1024 - 32);
  setup->Give(kResnet, kSampleTime, image_ms, "difference of np-run-resnet-1024, np-run-resnet-32");
  setup->Give(kResnet, kFixedTime, kLeast, kAsGoodAsNone);
  setup->Give(kResnet, kFloorTime, kLeast, kAsGoodAsNone);
  setup->Calibrate(kFlowWindow, "np-run-resnet-32", few, throughput_of(kResnet, {}));

  for (const char* workload : {kMobilenet, kMlp, kLargeMlp}) {
    setup->Give(workload, kSampleTime, std::max(1e-6, image_ms * WorkShare(*setup, workload)),
                "ResNet's, by FLOP");
    setup->Give(workload, kFixedTime, kLeast, kAsGoodAsNone);
    setup->Give(workload, kFloorTime, kLeast, kAsGoodAsNone);
  }
  setup->Calibrate(kMlp, kFixedTime, "np-run-mlp-32", Printed("np-run-mlp-32"),
                   throughput_of(kMlp, {}));
  setup->CalibrateBytes(kLargeMlp, "np-run-mlp-imagenet-1-worker",
                        Printed("np-run-mlp-imagenet-1-worker"), throughput_of(kLargeMlp, {}));

  setup->Add(kLargeResnet, setup->workload(kResnet));
  setup->Give(kLargeResnet, kSampleTime, image_ms, "ResNet's");
  setup->Give(kLargeResnet, kFixedTime, kLeast, kAsGoodAsNone);
  setup->Give(kLargeResnet, kFloorTime, kLeast, kAsGoodAsNone);
  setup->CalibrateBytes(kLargeResnet, "np-run-resnet-3-workers", Printed("np-run-resnet-3-workers"),
                        throughput_of(kLargeResnet, {.workers = 3}));
  return setup;
}

// The same cluster, whose server is slow with the one large tensor of the MLP.
std::shared_ptr<const Setup> MakeSlowServer(const Setup& base) {
  auto setup = std::make_shared<Setup>(base);
  setup->Calibrate(kServerRate, "np-run-mlp-imagenet-3-workers",
                   Printed("np-run-mlp-imagenet-3-workers"),
                   [](const Setup& s) { return Throughput(s, kLargeMlp, {.workers = 3}); });
  return setup;
}

constexpr const char* kModels[] = {kMlp, kMobilenet, kResnet};

constexpr const char* kMobilenetCollapse =
    "a step cannot take 35 times as long because the line is half as fast: 28 MB need half a "
    "second at 500 Mbit/s, not 12.8 s. The MLP beside it lost 6.5 %. The printed 2.5 images/s are "
    "likelier of another run";
constexpr const char* kTenPercent =
    "right in kind and too mild: 10 % is where CUBIC has been measured slower than the model, "
    "which holds for less. The paper is likelier right. No other law does better: losses packet by "
    "packet would give 97 % for the MLP and 129 min for ResNet, but 80 % instead of the tenth for "
    "one worker at 1 %; BBR, which ignores loss, no loss for the MLP and 2.3 min for ResNet";

constexpr const char* kOnePercentOfThree =
    "the paper has ten times as much loss for ResNet as for the MLP. In the model the line, which "
    "three flows share, hides most of what 1 % costs each of them, with BBR as with CUBIC: too "
    "mild "
    "for both. What costs ResNet the more is not known. Timers for the last packets of its "
    "tensors, "
    "which no later packet tells of, are too few for it: 161 tensors, sent and received, lose "
    "three "
    "such packets a step, and tens of milliseconds each are a thousandth of its 80 s. The paper is "
    "likelier right";

constexpr const char* kUnfinished =
    "the time of one step. The paper does not say how many steps the run was to make: a mean over "
    "ten would be longer than what is printed, one step is not. The paper is right about what it "
    "saw, and the model is not shown to be";

double Parameters(const Setup& setup, const std::string& workload) {
  return static_cast<double>(setup.workload(workload).parameters);
}

// Whether throughput follows the batch from 32 to 1024 under each of the conditions.
Answer BatchGains(const std::string& unit, const std::vector<double>& conditions,
                  const std::function<double(const char*, double)>& gain) {
  bool all = true;
  std::string says = "1024 against 32 images:";
  for (const char* workload : {kMlp, kResnet}) {
    says += fmt::format(" {}", workload);
    for (const double x : conditions) {
      const double g = gain(workload, x);
      all = all && g > 32 / 2.0;
      says += fmt::format(" {:.3g} times at {:g} {},", g, x, unit);
    }
  }
  says.pop_back();
  return Answer::Claim(all, says);
}

}  // namespace

PaperModel NetworkingPerspective() {
  const std::shared_ptr<const Setup> one_worker = MakeSetup();
  const std::shared_ptr<const Setup> slow = MakeSlowServer(*one_worker);
  PaperModel paper;
  paper.paper = "networking-perspective";
  paper.prose = {
      "The round trip is taken as the latency that the paper states. gRPC of the time gave an "
      "HTTP/2 stream a window of 64 KiB (RFC 9113): a tensor travels in so many bytes a round "
      "trip. The window is calibrated on one run and comes out near that value; it then carries "
      "every row about latency. Compute is small: 992 more images cost ResNet 0.22 s.",
      "The paper gives no sizes for what it calls ResNet and MLP when three workers train on "
      "ImageNet. 0.4 images a second over 1 Gbit/s are fifteen times the bytes of ResNet-50, so "
      "the message is calibrated there and everything else about these runs predicted; the same "
      "for the MLP, whose single large matrix the server besides handles slowly. With three "
      "workers the printed throughputs are read as those of one worker: the paper converts the 6 s "
      "of a step into 5.3 images/s that way.",
      "Congestion control is not stated: CUBIC is what Linux does. tc on the sender sees packets "
      "of up to 64 KiB before the network card cuts them, so that packets within a millisecond are "
      "lost together and TCP backs off once for them; where each was lost by itself, 1 % would "
      "cost four fifths, not the paper's tenth."};
  paper.setups = {{"", one_worker}, {"the MLP with three workers", slow}};
  paper.commands = fmt::format(
      "the runs of one worker on networks that have their own size, and latency.\n\n```console\n"
      "$ grep -v -e ',1-1-1,' -e mlp_imagenet data/measurements/networking-perspective.csv > "
      "small.csv\n"
      "$ stepcast evaluate --cluster {0} --runs small.csv\n"
      "$ stepcast sweep --cluster {0} --workload resnet50 \\\n"
      "    --strategy ps-sync --servers 1 --workers 1 --bandwidth \"1 Gbit/s\" \\\n"
      "    --over \"rtt=1 ms,10 ms,100 ms\" --over local-batch=32,1024\n"
      "```\n",
      ClusterFile(paper.paper));

  // With the slow server, the MLP of three workers; everything else without.
  const auto throughput = [one_worker, slow](const char* workload, const Conditions& c) {
    const Setup& setup = workload == kLargeMlp && c.workers > 1 ? *slow : *one_worker;
    return Throughput(setup, workload, c);
  };
  const auto ratio = [throughput](const char* workload, const Conditions& c,
                                  const Conditions& base) {
    return throughput(workload, c) / throughput(workload, base);
  };
  const auto mean_ratio = [ratio](const Conditions& c, const Conditions& base) {
    double product = 1;
    for (const char* workload : kModels) product *= ratio(workload, c, base);
    return std::pow(product, 1.0 / static_cast<double>(std::size(kModels)));
  };
  const auto lost_percent = [](double remaining) { return 100 * (1 - remaining); };
  const auto minutes = [throughput](const char* workload, const Conditions& c) {
    return c.batch / throughput(workload, c) / 60;
  };
  const auto value = [](auto f) { return [f] { return Answer::Value(f()); }; };
  const auto claim = [](auto f) { return std::function<Answer()>(f); };
  const auto run = [&](const char* id, const char* workload, const Conditions& c, Role role,
                       std::string remark = "", Standing standing = Standing::kInScope) {
    paper.evaluators.push_back({id, role, value([=] { return throughput(workload, c); }),
                                std::move(remark), standing, Compare::kRatio});
  };
  const auto add = [&](Evaluator e) { paper.evaluators.push_back(std::move(e)); };

  // ---- Runs.
  run("np-run-resnet-32", kResnet, {}, Role::kCalibratedOn);
  run("np-run-resnet-1024", kResnet, {.batch = 1024}, Role::kCalibratedOn);
  run("np-run-mlp-32", kMlp, {}, Role::kCalibratedOn);
  run("np-run-mlp-32-half-bandwidth", kMlp, {.gbit_per_s = 0.5}, Role::kPredicted);
  run("np-run-mobilenet-32", kMobilenet, {}, Role::kPredicted);
  run("np-run-mobilenet-32-half-bandwidth", kMobilenet, {.gbit_per_s = 0.5}, Role::kPredicted,
      kMobilenetCollapse, Standing::kDisputed);
  run("np-run-mlp-imagenet-1-worker", kLargeMlp, {}, Role::kCalibratedOn);
  run("np-run-mlp-imagenet-3-workers", kLargeMlp, {.workers = 3}, Role::kCalibratedOn);
  run("np-run-resnet-3-workers", kLargeResnet, {.workers = 3}, Role::kCalibratedOn);
  run("np-run-resnet-3-workers-half-bandwidth", kLargeResnet, {.workers = 3, .gbit_per_s = 0.5},
      Role::kPredicted);
  run("np-run-resnet-3-workers-quarter-bandwidth", kLargeResnet, {.workers = 3, .gbit_per_s = 0.25},
      Role::kPredicted);

  // ---- Latency and batch.
  add({"np-parameter-count", Role::kCounted,
       value([one_worker] { return Parameters(*one_worker, kResnet); }),
       "the largest network named has 25.6 million parameters; even the message that fits the runs "
       "with three workers is of 0.4 10^9",
       Standing::kDisputed});
  add({"np-latency-10ms", Role::kPredicted, value([=] { return mean_ratio({.rtt_ms = 10}, {}); }),
       "geometric mean of the three models"});
  add({"np-latency-every-model", Role::kPredicted, claim([=] {
         bool all = true;
         std::string says = "throughput at 10 ms over that at 1 ms:";
         for (const char* workload : kModels) {
           const double r = ratio(workload, {.rtt_ms = 10}, {});
           all = all && r < 0.5;
           says += fmt::format(" {} {:.2g},", workload, r);
         }
         says.pop_back();
         return Answer::Claim(all, says);
       })});
  add({"np-resnet-100ms-unfinished", Role::kPredicted,
       value([=] { return minutes(kResnet, {.rtt_ms = 100}); }),
       "two passes of 102 MB in windows of 64 KiB are 3100 round trips, five minutes at 100 ms, "
       "which is also the printed 3 s of 1 ms times the tenth that each tenfold latency leaves. "
       "The first step also sends the initial values and builds the graph, and tc on both sides "
       "would double the round trip; together that is 14 min. The paper is likelier right about "
       "what it saw, the model about a step once training runs",
       Standing::kInScope, Compare::kAtLeast});
  add({"np-batch-1024-gain", Role::kCounted, value([=] {
         return std::sqrt(ratio(kMlp, {.batch = 1024}, {}) * ratio(kResnet, {.batch = 1024}, {}));
       }),
       "geometric mean of the MLP and ResNet: 32 times the images in a step that hardly changes, "
       "for "
       "ResNet by the calibrated cost of an image"});
  add({"np-mlp-100ms-batch-1024", Role::kPredicted,
       value([=] { return ratio(kMlp, {.batch = 1024, .rtt_ms = 100}, {}); }),
       "read off a plot with a logarithmic axis. The bytes of this MLP take 80 windows of 64 KiB, "
       "so 80 round trips; the statement needs 40. It does not go with the other one about this "
       "MLP, a tenth of the throughput at 10 ms: time that grows tenfold with the first tenfold "
       "latency is all round trips and grows tenfold again. The model lies between the two"});
  add({"np-resnet-batch-gain", Role::kPredicted, claim([=] {
         const double at_1 = ratio(kResnet, {.batch = 1024}, {});
         const double at_10 = ratio(kResnet, {.batch = 1024, .rtt_ms = 10}, {.rtt_ms = 10});
         return Answer::Claim(
             at_10 < at_1 / 2,
             fmt::format("1024 against 32 images: {:.3g} times at 1 ms, {:.3g} times "
                         "at 10 ms",
                         at_1, at_10));
       }),
       "bytes do not depend on the batch: the longer the transfer, the more a larger batch gains. "
       "Sections 4.2 and 4.3 of the paper say so for every bandwidth and loss, and for the MLP "
       "section 4.1 does for latency. The model is likelier right; the bars at 10 ms were probably "
       "too low to be told apart",
       Standing::kDisputed});
  add({"np-mlp-3-workers-unfinished", Role::kPredicted,
       value([=] { return minutes(kLargeMlp, {.workers = 3, .rtt_ms = 100}); }), kUnfinished,
       Standing::kInScope, Compare::kAtLeast});
  add({"np-resnet-3-workers-unfinished", Role::kPredicted,
       value([=] { return minutes(kLargeResnet, {.workers = 3, .rtt_ms = 10}); }), kUnfinished,
       Standing::kInScope, Compare::kAtLeast});
  add({"np-two-more-workers", Role::kCounted,
       value([=] { return ratio(kLargeMlp, {.workers = 3}, {}); }),
       "both throughputs are calibrated on, the second with a rate of the server of its own: "
       "shared out evenly, three workers on one server have no less than a third each"});
  add({"np-more-workers-slower", Role::kPredicted, claim([=] {
         const double mlp = ratio(kMlp, {.workers = 3}, {});
         const double resnet = ratio(kResnet, {.workers = 3}, {});
         return Answer::Claim(
             mlp < 1 && resnet < 1,
             fmt::format("throughput of a worker among three over that of one alone: "
                         "MLP {:.2g}, ResNet {:.2g}",
                         mlp, resnet));
       })});
  add({"np-heavy-traffic-latency", Role::kPredicted, claim([=] {
         const double one = ratio(kLargeMlp, {.rtt_ms = 10}, {});
         const double mlp = ratio(kMlp, {.rtt_ms = 10}, {});
         const double resnet = ratio(kResnet, {.rtt_ms = 10}, {});
         return Answer::Claim(
             resnet < mlp && one < mlp,
             fmt::format("at 10 ms there remain {:.2g} of ResNet's throughput, {:.2g} of the large "
                         "MLP's, {:.2g} of the small MLP's",
                         resnet, one, mlp));
       })});

  // ---- Bandwidth.
  add({"np-mlp-half-bandwidth", Role::kPredicted,
       value([=] { return lost_percent(ratio(kMlp, {.gbit_per_s = 0.5}, {})); }),
       "the two throughputs that the paper prints beside it differ by 6.5 %. A window takes twice "
       "as "
       "long to send at half the rate, and the model adds that to each round trip, where a sender "
       "hides some of it. The paper is likelier right",
       Standing::kInScope, Compare::kLoss});
  add({"np-mobilenet-half-bandwidth", Role::kPredicted,
       value([=] { return ratio(kMobilenet, {.gbit_per_s = 0.5}, {}); }), kMobilenetCollapse,
       Standing::kDisputed});
  add({"np-bandwidth-by-parameters", Role::kPredicted, claim([=] {
         const double mlp = ratio(kMlp, {.gbit_per_s = 0.25}, {});
         const double mobilenet = ratio(kMobilenet, {.gbit_per_s = 0.25}, {});
         const double resnet = ratio(kResnet, {.gbit_per_s = 0.25}, {});
         return Answer::Claim(
             mlp > mobilenet && mobilenet > resnet * (1 - 1e-9),
             fmt::format("at 250 Mbit/s there remain {:.2g} of the MLP's throughput, "
                         "{:.2g} of MobileNet's, {:.2g} of ResNet's",
                         mlp, mobilenet, resnet));
       })});
  add({"np-batch-by-bandwidth", Role::kPredicted, claim([=] {
         return BatchGains("Mbit/s", {1000, 500, 250}, [=](const char* workload, double x) {
           return ratio(workload, {.batch = 1024, .gbit_per_s = x / 1000},
                        {.gbit_per_s = x / 1000});
         });
       })});
  add({"np-resnet-3-workers-half-bandwidth", Role::kPredicted, value([=] {
         return ratio(kLargeResnet, {.workers = 3, .gbit_per_s = 0.5}, {.workers = 3});
       })});
  add({"np-resnet-3-workers-quarter-bandwidth", Role::kPredicted, value([=] {
         return ratio(kLargeResnet, {.workers = 3, .gbit_per_s = 0.25}, {.workers = 3});
       })});
  add({"np-mlp-3-workers-bandwidth", Role::kPredicted, claim([=] {
         const double half = ratio(kLargeMlp, {.workers = 3, .gbit_per_s = 0.5}, {.workers = 3});
         const double quarter =
             ratio(kLargeMlp, {.workers = 3, .gbit_per_s = 0.25}, {.workers = 3});
         return Answer::Claim(
             half > 0.85 && quarter < 0.75,
             fmt::format("there remain {:.2g} at 500 Mbit/s, {:.2g} at 250", half, quarter));
       })});
  add({"np-3-workers-transfer", Role::kPredicted, claim([=] {
         const Prediction p = one_worker->Ask(kLargeResnet, PlanOf({.workers = 3}));
         const double share = p.breakdown.exposed() / p.step_time;
         return Answer::Claim(share > 0.9,
                              fmt::format("{:.3g} % of the step is transfer", 100 * share));
       })});

  // ---- Loss.
  add({"np-loss-1-percent", Role::kCalibratedOn,
       value([=] { return lost_percent(mean_ratio({.loss = 0.01}, {})); }),
       "geometric mean of the three models. That packets are lost in bursts was chosen because "
       "four "
       "fifths would be lost otherwise. What is lost is still three times the printed tenth: a "
       "window "
       "of 64 KiB is taken to lose each of its 50 packets by "
       "itself and to wait for the ones sent again. Lost as a whole, as above, it would wait "
       "seldom but long: 10 ms, the least wait of a tail loss probe, make the tenth. The paper is "
       "likelier right",
       Standing::kInScope, Compare::kLoss});
  add({"np-batch-by-loss", Role::kPredicted, claim([=] {
         return BatchGains("% loss", {0, 1, 10}, [=](const char* workload, double x) {
           return ratio(workload, {.batch = 1024, .loss = x / 100}, {.loss = x / 100});
         });
       })});
  add({"np-imagenet-against-mnist", Role::kCounted,
       value([=] { return throughput(kResnet, {}) / throughput(kMlp, {}); }),
       "about 30 by the text of 4.3; the throughputs printed in 4.1 and 4.2 for the same two "
       "models, 10.9 and 247 images/s, are 1 to 23, and the model is calibrated on these. The "
       "printed throughputs are likelier right than the round number",
       Standing::kOtherFigure, Compare::kRatio,
       Printed("np-run-resnet-32") / Printed("np-run-mlp-32")});
  add({"np-mlp-3-workers-loss-1", Role::kPredicted, value([=] {
         return lost_percent(ratio(kLargeMlp, {.workers = 3, .loss = 0.01}, {.workers = 3}));
       }),
       kOnePercentOfThree, Standing::kInScope, Compare::kLoss});
  add({"np-resnet-3-workers-loss-1", Role::kPredicted, value([=] {
         return lost_percent(ratio(kLargeResnet, {.workers = 3, .loss = 0.01}, {.workers = 3}));
       }),
       kOnePercentOfThree, Standing::kInScope, Compare::kLoss});
  add({"np-mlp-3-workers-loss-10", Role::kPredicted, value([=] {
         return lost_percent(ratio(kLargeMlp, {.workers = 3, .loss = 0.1}, {.workers = 3}));
       }),
       kTenPercent, Standing::kInScope, Compare::kAtLeast});
  add({"np-resnet-3-workers-loss-10", Role::kPredicted,
       value([=] { return minutes(kLargeResnet, {.workers = 3, .loss = 0.1}); }), kTenPercent,
       Standing::kInScope, Compare::kAtLeast});
  add({"np-loss-by-model", Role::kPredicted, claim([=] {
         const double mlp = ratio(kLargeMlp, {.workers = 3, .loss = 0.01}, {.workers = 3});
         const double resnet = ratio(kLargeResnet, {.workers = 3, .loss = 0.01}, {.workers = 3});
         return Answer::Claim(
             resnet < mlp,
             fmt::format("at 1 % of loss there remain {:.3g} of the MLP's throughput, "
                         "{:.3g} of ResNet's",
                         mlp, resnet));
       })});

  // ---- The rest.
  add({"np-failures", Role::kPredicted, claim([=] {
         constexpr int kWorkers = 3;
         const auto hours = [](double h) { return Duration<>::FromSi(h * 3600); };
         const Duration<> step =
             Duration<>::FromSi(one_worker->Step(kResnet, PlanOf({.workers = kWorkers})).si());
         const Duration<> recovery = hours(0.1);
         const Duration<> worker_mtbf = hours(1000);
         const Duration<> job_mtbf = worker_mtbf / static_cast<double>(kWorkers);
         const double together = SynchronousLossSlowdown(step, recovery, job_mtbf) - 1;
         const double alone = AsynchronousLossSlowdown(recovery, worker_mtbf) - 1;
         const Duration<> interval = DalyInterval(hours(0.01), job_mtbf);
         const Duration<> chief = ChiefLoss(interval, hours(0.01), recovery);
         return Answer::Claim(
             together > (kWorkers - 0.1) * alone && chief > recovery,
             fmt::format(
                 "of three workers, back after 6 min, one lost costs the synchronous job "
                 "{:.3g} times what it costs an asynchronous one; the chief lost costs "
                 "{:.3g} min, of which half a checkpoint interval of {:.3g} min is work done "
                 "again",
                 together / alone, chief.in(kMinutes), interval.in(kMinutes)));
       })});
  add({"np-not-always-beneficial", Role::kPredicted, claim([=] {
         // One device without servers against three workers with one.
         Plan alone = PlanOf({});
         alone.strategy = Strategy::kNone;
         alone.server = {};
         alone.servers = 0;
         alone.server_link = {};
         const double single = 32 / one_worker->Step(kResnet, alone).in(kSeconds);
         const double three = 3 * throughput(kResnet, {.workers = 3});
         return Answer::Claim(
             three < single,
             fmt::format("ResNet-50, batch 32: {:.0f} images/s with three workers, {:.0f} with one "
                         "device by itself",
                         three, single));
       })});
  return paper;
}

}  // namespace stepcast::papers
