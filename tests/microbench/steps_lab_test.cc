// A training between hosts whose links are known: see network_lab.h.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "microbench/steps/agent.h"
#include "microbench/steps/coordinator.h"
#include "tests/microbench/network_lab.h"
#include "tests/support/temp_file.h"

namespace stepcast::steps {
namespace {

using network::Deadline;
using network::NetworkError;

constexpr const char* kToken = "a token of tests";

class StepsLabTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef STEPCAST_GLOO_PROGRAM
    if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
#else
    GTEST_SKIP() << "built without Gloo";
#endif
  }

  // What each host does: rank 0 writes the mean step [s] and what went wrong.
  int Host(int host, int hosts, const Training& training) const {
    Programs programs;
#ifdef STEPCAST_GLOO_PROGRAM
    programs.gloo = STEPCAST_GLOO_PROGRAM;
#endif
#ifdef STEPCAST_PARAMETERS_PROGRAM
    programs.servers = STEPCAST_PARAMETERS_PROGRAM;
#endif
    const network::Address master = network::Resolve(NetworkLab::AddressOf(0), 29411).front();
    try {
      if (host > 0) {
        network::AgentOptions options;
        options.rank = host;
        options.of = hosts;
        options.name = "h" + std::to_string(host);
        options.master = master;
        options.token = kToken;
        options.join_s = 10;
        options.deadline = Deadline::In(100);
        return RunAgent(options, programs).empty() ? 0 : 1;
      }
      network::MeetingOptions options;
      options.hosts = hosts;
      for (int i = 0; i < hosts; ++i) options.names.push_back("h" + std::to_string(i));
      options.master = master;
      options.token = kToken;
      options.join_s = 10;
      options.deadline = Deadline::In(100);
      LeadSession(options, programs, {}, [&](Session* session) {
        // Servers have the last hosts.
        const int servers = training.servers ? training.servers->count : 0;
        Cast cast;
        for (int i = 0; i < hosts; ++i) {
          (i < hosts - servers ? cast.workers : cast.servers).push_back(i);
        }
        const TrainingTimes times = session->Measure(training, cast, {});
        double mean = 0;
        for (const double step : times.Means(&TimedStep::step_s)) {
          mean += step / static_cast<double>(times.steps());
        }
        std::ofstream(folder_.Path("answer")) << mean << "\n" << times.problem << "\n";
      });
      return 0;
    } catch (const NetworkError& e) {
      std::fprintf(stderr, "h%d: %s\n", host, e.what());
      return 1;
    }
  }

  std::pair<double, std::string> Answer() const {
    std::ifstream in(folder_.Path("answer"));
    double mean = 0;
    std::string problem;
    in >> mean >> std::ws;
    std::getline(in, problem);
    return {mean, problem};
  }

  TempFolder folder_;
};

Training OneBucket() {
  Training training;
  training.forward_s = 0.05;
  training.backward_s = 0.1;
  training.warm_up = 2;
  training.steps = 6;
  training.limit_s = 20;
  training.buckets = {{2.5e6, 0.1}};  // 10 MB
  return training;
}

// Each worker of a ring sends 2 (w-1) / w of the gradients, once the last of them has computed.
TEST_F(StepsLabTest, AStepIsItsComputeAndWhatTheRingSends) {
  for (const auto& [hosts, slowdown] : {std::pair(2, 1.0), std::pair(3, 1.0), std::pair(3, 2.5)}) {
    LabConditions conditions;
    conditions.hosts = hosts;
    conditions.rate = 200e6 / 8;
    Training training = OneBucket();
    training.slow_workers = 1;
    training.slowdown = slowdown;
    const double expected =
        0.15 * slowdown + 2.0 * (hosts - 1) / hosts * 10e6 / (conditions.rate * kPayload);
    double error = 1;
    bool busy = false;
    // Once more, at most twice, where the machine was too busy to be the network that was set.
    for (int attempt = 0; attempt < 3 && std::abs(error) > 0.05; ++attempt) {
      NetworkLab lab(conditions, [&, of = hosts](int host) { return Host(host, of, training); });
      for (const int code : lab.Wait()) EXPECT_EQ(code, 0);
      const auto [mean, problem] = Answer();
      EXPECT_EQ(problem, "");
      error = mean / expected - 1;
      busy = lab.LateShare() > 0.1;
    }
    if (busy && std::abs(error) > 0.05) GTEST_SKIP() << "the machine is too busy to be the network";
    EXPECT_NEAR(error, 0, 0.05) << hosts << " hosts, " << expected << " s expected";
  }
}

// Both phases of a step pass the server's port, once for each worker: n w transfers, 2 m w bytes.
TEST_F(StepsLabTest, AStepIsItsComputeAndWhatWorkersPushAndPull) {
#ifndef STEPCAST_PARAMETERS_PROGRAM
  GTEST_SKIP() << "built without gRPC";
#endif
  for (const auto& [workers, servers] : {std::pair(1, 1), std::pair(3, 1), std::pair(2, 2)}) {
    LabConditions conditions;
    conditions.hosts = workers + servers;
    conditions.rate = 200e6 / 8;
    Training training = OneBucket();
    training.servers.emplace().count = servers;
    training.servers->bound = 0;
    for (int server = 0; server < servers; ++server) {
      training.servers->parts.push_back({0, server, 2.5e6 / servers});
    }
    const double phase_s =
        10e6 * std::max(1.0, 1.0 * workers / servers) / (conditions.rate * kPayload);
    const double expected = 0.15 + 2 * phase_s;
    // Flows that share a link at both ends do not share both evenly.
    const double most = servers > 1 ? 0.4 : 0.06;
    double error = 1;
    const auto is_wrong = [&] { return error < -0.06 || error > most; };
    bool busy = false;
    for (int attempt = 0; attempt < 3 && is_wrong(); ++attempt) {
      NetworkLab lab(conditions,
                     [&, of = conditions.hosts](int host) { return Host(host, of, training); });
      for (const int code : lab.Wait()) EXPECT_EQ(code, 0);
      const auto [mean, problem] = Answer();
      EXPECT_EQ(problem, "");
      error = mean / expected - 1;
      busy = lab.LateShare() > 0.1;
    }
    if (busy && is_wrong()) GTEST_SKIP() << "the machine is too busy to be the network";
    EXPECT_FALSE(is_wrong()) << workers << " workers, " << servers << " servers: " << error
                             << " beyond the " << expected << " s expected";
  }
}

// Nobody waits for who is gone, and it is named.
TEST_F(StepsLabTest, AHostThatIsKilledEndsItsTraining) {
  LabConditions conditions;
  conditions.hosts = 3;
  Training training = OneBucket();
  training.steps = 1000;
  NetworkLab lab(conditions, [&](int host) { return Host(host, 3, training); });
  std::this_thread::sleep_for(std::chrono::seconds(4));
  const auto killed = std::chrono::steady_clock::now();
  lab.Kill(2);
  const std::vector<int>& codes = lab.Wait();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(60));
  EXPECT_EQ(codes[0], 0);
  EXPECT_NE(Answer().second, "");
}

}  // namespace
}  // namespace stepcast::steps
