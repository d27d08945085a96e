// Farhat, Ghobadi: Horovod's ring over 4 x 4 T4, watched with tcpdump.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "tests/papers/evaluator.h"
#include "tests/papers/page.h"
#include "tests/papers/rows.h"

namespace stepcast::papers {
namespace {

constexpr const char* kResnet = "resnet50";
constexpr const char* kDensenet = "densenet121";
constexpr const char* kInception = "inception_v3";
constexpr int kIterations = 200;
constexpr int kWarmUp = 5;
constexpr const char* kNetworks[] = {"mobilenet", kDensenet, kInception, kResnet, "vgg19"};

Plan Cluster16() {
  Plan plan;
  plan.placement = {4, 4, 4, 4};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 64;
  return plan;
}

Plan OneDevice() {
  Plan plan = Cluster16();
  plan.placement = {1};
  plan.strategy = Strategy::kNone;
  return plan;
}

// The network on images of another size: work and activations of all but the last layers go with
// the pixels. Convolutions are those of smaller images; the rest is its work and bytes.
Workload AtSize(Workload workload, double size, double of) {
  const double pixels = (size / of) * (size / of);
  const auto scaled = [&](std::int64_t length) {
    return std::int64_t{std::lround(static_cast<double>(length) * size / of)};
  };
  for (Layer& layer : workload.layers) {
    layer.forward_flop = layer.forward_flop * pixels;
    layer.activation_bytes = layer.activation_bytes * pixels;
    if (auto* convolution = std::get_if<ConvolutionOp>(&layer.operation)) {
      convolution->input = {scaled(convolution->input.height), scaled(convolution->input.width)};
    } else {
      layer.operation = {};
    }
  }
  return workload;
}

constexpr const char* kPackets =
    "packets that carry no gradients, acknowledgements and negotiation, are not modelled; the "
    "bytes "
    "of the same runs are held against the model beside it";

double Step(const Setup& setup, const std::string& workload) {
  return setup.Step(workload, Cluster16()).in(kSeconds);
}

std::shared_ptr<const Setup> MakeSetup() {
  auto setup = std::make_shared<Setup>("gce-t4", /*data_sheet=*/true);
  setup->Add(kInception, AtSize(setup->workload(kInception), 224, 299));
  // Compute as the data sheet has it, times one factor for the device that ResNet's step fixes.
  const double sheet = setup->Step(kResnet, OneDevice()).in(kSeconds);
  std::vector<std::pair<const char*, double>> relative;
  for (const char* network : kNetworks) {
    relative.emplace_back(network, setup->Step(network, OneDevice()).in(kSeconds) / sheet);
  }
  constexpr double kLeast = 0.001;  // ms, as good as none
  setup->Give(kResnet, kFixedTime, kLeast, kAsGoodAsNone);
  setup->Give(kResnet, kFloorTime, kLeast, kAsGoodAsNone);
  double printed = 0;
  for (const Row& row : ReadRows()) {
    if (row.id == "cp-run-resnet50") printed = row.step_time_s;
  }
  setup->Calibrate(kResnet, kSampleTime, "cp-run-resnet50", printed,
                   [](const Setup& s) { return Step(s, kResnet); });
  const double image_ms = setup->lines().back().value;
  for (const auto& [network, factor] : relative) {
    if (network == std::string(kResnet)) continue;
    setup->Give(network, kFixedTime, kLeast, kAsGoodAsNone);
    setup->Give(network, kFloorTime, kLeast, kAsGoodAsNone);
    setup->Give(network, kSampleTime, image_ms * factor,
                "ResNet's, as what the data sheet lets expect is");
  }
  return setup;
}

// Bytes that leave the nodes in all while `iterations` run, in units of what one link between two
// nodes carries.
double BytesBetweenNodes(const Setup& setup, const std::string& workload, int iterations) {
  const Plan plan = Cluster16();
  return setup.Ask(workload, plan).traffic.per_worker.in(kMegabytes)*plan.nodes() * iterations;
}

// Share of what passes between the nodes, in per cent: before the iterations stand the warm-up and
// the broadcast of the first weights, which enters every node but one once.
double ShareDuring(const Setup& setup, const std::string& workload) {
  const double broadcast =
      setup.workload(workload).gradient_bytes.in(kMegabytes) * (Cluster16().nodes() - 1);
  const double during = BytesBetweenNodes(setup, workload, kIterations);
  return 100 * during / (during + BytesBetweenNodes(setup, workload, kWarmUp) + broadcast);
}

}  // namespace

PaperModel CommunicationPatterns() {
  const std::shared_ptr<const Setup> setup = MakeSetup();
  PaperModel paper;
  paper.paper = "communication-patterns";
  paper.prose = {
      "Neither link nor compute times are given. Horovod's synthetic benchmark feeds 224 x 224 "
      "images to every network, Inception-v3 included. Compute is what the data sheet "
      "of the T4 lets expect, times one factor, calibrated on ResNet-50's iteration; the other "
      "networks' iterations "
      "are predicted. The links stay at their priors.",
      "Traffic is counted: an iteration sends 2 (w-1)/w of the model from every worker; before the "
      "200 iterations go five of warm-up and the broadcast of the first weights."};
  paper.setups = {{"", setup}};
  paper.commands = fmt::format(
      "the iterations. What an image costs is calibrated, so that the size of Inception's does "
      "not "
      "matter.\n\n```console\n"
      "$ stepcast evaluate --cluster {} \\\n"
      "    --runs data/measurements/communication-patterns.csv\n"
      "```\n",
      ClusterFile(paper.paper));
  const auto value = [](auto f) { return [f] { return Answer::Value(f()); }; };
  const auto claim = [](auto f) { return std::function<Answer()>(f); };
  const auto add = [&](Evaluator e) { paper.evaluators.push_back(std::move(e)); };
  const auto out = [&](const std::string& id, const char* why) {
    add({id, Role::kPredicted, nullptr, why, Standing::kOutOfReach});
  };
  const auto mean = [setup](double (*of)(const Setup&, const std::string&)) {
    double sum = 0;
    for (const char* network : kNetworks) sum += of(*setup, network);
    return sum / static_cast<double>(std::size(kNetworks));
  };
  const auto flow = [setup](const char* network) {
    return setup->Ask(network, Cluster16()).traffic.per_worker /
           setup->workload(network).gradient_bytes;
  };

  for (const auto& [slug, network] :
       {std::pair{"mobilenet", "mobilenet"}, std::pair{"densenet121", kDensenet},
        std::pair{"inception", kInception}, std::pair{"resnet50", kResnet},
        std::pair{"vgg19", "vgg19"}}) {
    const std::string name = network;
    add({fmt::format("cp-parameters-{}", slug), Role::kCounted,
         value([=] { return static_cast<double>(setup->workload(name).parameters); })});
    add({fmt::format("cp-size-{}", slug), Role::kCounted, value([=] {
           return Bytes(4.0 * static_cast<double>(setup->workload(name).parameters)).in(kMebibytes);
         }),
         "4 bytes a parameter, in MiB, which the paper calls MB"});
    out(fmt::format("cp-packets-{}", slug), kPackets);
    add({fmt::format("cp-bytes-{}", slug), Role::kCounted,
         value([=] { return ShareDuring(*setup, name); })});
  }
  out("cp-packets-summary", kPackets);
  add({"cp-bytes-summary", Role::kCounted, value([=] { return mean(ShareDuring); })});
  add({"cp-flow-over-model", Role::kCounted, value([=] { return flow(kResnet); }),
       "2 x 15/16; twice the model is its limit for many workers"});
  add({"cp-resnet50-over-densenet121", Role::kCounted, value([=] {
         return static_cast<double>(setup->workload(kResnet).parameters) /
                static_cast<double>(setup->workload(kDensenet).parameters);
       })});
  add({"cp-run-resnet50", Role::kCalibratedOn, value([=] { return Step(*setup, kResnet); })});
  add({"cp-run-densenet121", Role::kPredicted, value([=] { return Step(*setup, kDensenet); })});
  add({"cp-run-inception", Role::kPredicted, value([=] { return Step(*setup, kInception); })});
  add({"cp-resnet50-minus-inception", Role::kPredicted,
       value([=] { return 1e3 * (Step(*setup, kResnet) - Step(*setup, kInception)); }),
       "a difference has the errors of both iterations: a fifth more of Inception-v3's halves it"});

  add({"cp-flow-linear", Role::kCounted, claim([=] {
         double least = 1e9;
         double most = 0;
         for (const char* network : kNetworks) {
           least = std::min(least, flow(network));
           most = std::max(most, flow(network));
         }
         return Answer::Claim(most - least < 1e-9,
                              fmt::format("every network sends {:.4g} times its size", most));
       })});
  out("cp-ring-order",
      "which host follows which is a fact of mpirun; the model's ring takes the placement in its "
      "order, and equal links make every order alike");
  add({"cp-size-not-time", Role::kPredicted, claim([=] {
         const double densenet = Step(*setup, kDensenet);
         const double resnet = Step(*setup, kResnet);
         const double inception = Step(*setup, kInception);
         return Answer::Claim(
             densenet > 0.75 * resnet && densenet < 1.25 * resnet && inception < resnet,
             fmt::format("DenseNet-121 {:.2g} s, ResNet-50 {:.2g} s with three times its size, "
                         "Inception-v3 {:.2g} s with as much",
                         densenet, resnet, inception));
       })});
  out("cp-flow-classes",
      "connections that carry no gradients (start-up, control) are not modelled");
  return paper;
}

}  // namespace stepcast::papers
