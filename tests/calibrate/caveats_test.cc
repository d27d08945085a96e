// What speaks against a fit: each sentence in its case, and in no other.
#include "calibrate/caveats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/step/parameter_specs.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/changed_plans.h"
#include "tests/support/devices.h"
#include "tests/support/wide_csv.h"

namespace stepcast {
namespace {

// A campaign of which nothing is to be said: two batches of each workload, three nodes, all
// parameters decided by the runs and within their ranges.
struct Case {
  Case() {
    SyntheticProblem synthetic(PlausibleTruth());
    for (const auto& [name, values] : synthetic.truth().workloads) {
      for (const int batch : {8, 32}) {
        synthetic.Add(name, AllreducePlan({1}, batch));
        synthetic.Add(name, AllreducePlan({1, 1, 1}, batch));
      }
    }
    problem = synthetic.problem();
    outcome.status = CalibrationOutcome::Status::kConverged;
    outcome.mape = 0.05;
    outcome.cluster = CalibratedCluster(PlausibleTruth());
    outcome.cluster.calibration->range.max_nodes = 3;
  }

  Calibration& calibration() { return *outcome.cluster.calibration; }
  ParameterEstimate& Find(const std::string& scope, const std::string& name) {
    for (ParameterEstimate& p : calibration().parameters) {
      if (p.scope == scope && p.name == name) return p;
    }
    throw std::logic_error("no parameter " + name);
  }
  // As if no run had more than so many nodes.
  void OnNodes(int nodes) {
    calibration().range.max_nodes = nodes;
    for (auto& run : problem.runs) {
      if (run.plan.nodes() > nodes) {
        run.plan.placement = Placement(static_cast<std::size_t>(nodes), 3);
      }
    }
  }

  CalibrationProblem problem;
  CalibrationOutcome outcome;
};

using Sentences = std::vector<std::string>;

Sentences After(const std::function<void(Case*)>& spoil) {
  Case its;
  spoil(&its);
  return Caveats(its.problem, its.outcome);
}

constexpr const char* kNoNetwork = "no run leaves its node: the network between nodes is a prior";
constexpr const char* kPairsOnly =
    "no run has three nodes: all flows between two share one path, and what a node with two "
    "neighbours does is a prior";

TEST(Caveats, NoneOfACampaignThatTellsAll) {
  EXPECT_EQ(After([](Case*) {}), Sentences());
}

TEST(Caveats, NoneWhereThereIsNoFit) {
  for (const auto status :
       {CalibrationOutcome::Status::kFailed, CalibrationOutcome::Status::kNoRuns}) {
    EXPECT_EQ(After([&](Case* its) {
                its->outcome.status = status;
                its->outcome.mape = 9;
                its->outcome.cluster.calibration.reset();
              }),
              Sentences());
  }
}

// One that was cut short is used, and so has its caveats.
TEST(Caveats, OfAFitThatHadNotConverged) {
  EXPECT_EQ(After([](Case* its) {
              its->outcome.status = CalibrationOutcome::Status::kNotConverged;
              its->OnNodes(1);
            }),
            Sentences({kNoNetwork}));
}

TEST(Caveats, TheModelDoesNotDescribeTheRuns) {
  const Sentences found = After([](Case* its) { its->outcome.mape = 0.731; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "the model does not describe these runs: it is 73.1 % off on average; look for a wrong "
            "unit, strategy, link or workload");
  EXPECT_TRUE(After([](Case* its) { its->outcome.mape = 0.5; }).empty());
}

TEST(Caveats, AParameterAtTheEdgeOfItsRange) {
  const auto at = [](const std::string& scope, const std::string& name, double value) {
    return After([&](Case* its) { its->Find(scope, name).value = value; });
  };
  EXPECT_EQ(
      at("cluster", "overlap_share", 0.95),
      Sentences({"overlap_share of cluster stands at the edge of its range (0.95): these runs "
                 "do not fit the formula"}));
  EXPECT_EQ(at("cluster", "overlap_share", 0.05).size(), 1U);
  EXPECT_EQ(at("cluster", "overlap_share", 0.94).size(), 0U);
  const Sentences within = at("cluster", "overlap_share", 0.06);
  ASSERT_EQ(within.size(), 1U);
  EXPECT_EQ(within[0].find("at the edge"), std::string::npos) << within[0];
  EXPECT_EQ(
      at("workload resnet50 on t4", "straggler_spread", 1e-4),
      Sentences({"straggler_spread of workload resnet50 on t4 stands at the edge of its range "
                 "(0.0001): these runs do not fit the formula"}));
  EXPECT_EQ(at("cluster", "link_latency", 1e5),
            Sentences({"link_latency of cluster stands at the edge of its range (1e+05 us): these "
                       "runs do not fit the formula"}));
}

TEST(Caveats, TheSpeedOfADeviceHasARangeToo) {
  const auto of = [](double value) {
    return After([&](Case* its) {
      ParameterEstimate p;
      p.scope = "device t4";
      p.name = "device_speed";
      p.value = value;
      p.decided_by = DecidedBy::kData;
      its->calibration().parameters.push_back(p);
    });
  };
  EXPECT_EQ(of(0.5).size(), 0U);
  ASSERT_EQ(of(0.02).size(), 1U);
  EXPECT_EQ(of(50).at(0).rfind("device_speed of device t4 stands at the edge", 0), 0U);
}

constexpr const char* kDistrusted =
    ", beyond three standard deviations of the prior: the formula, the runs or something stated is "
    "likely wrong, as where bare messages and training steps disagree about the network; do not "
    "trust forecasts beyond the fitted runs";

// Messages and steps that contradict each other: the fit meets both by workers that wait for each
// other longer than the step takes.
TEST(Caveats, AValueFarFromWhatIsBelievedOfIt) {
  const auto spread = [](double value, DecidedBy who) {
    return After([&](Case* its) {
      ParameterEstimate& p = its->Find("workload bert_base on t4", "straggler_spread");
      p.value = value;
      p.prior_value = 0.034;
      p.prior_log_sd = 1.17;
      p.decided_by = who;
    });
  };
  const Sentences said = {"straggler_spread of workload bert_base on t4 is 1.34 (prior ..." +
                          std::string(kDistrusted)};
  EXPECT_EQ(spread(1.34, DecidedBy::kData), said);
  EXPECT_EQ(spread(1.34, DecidedBy::kBoth), said);
  EXPECT_EQ(spread(1.34, DecidedBy::kStated), Sentences());
  // What is told as the edge of the range is not told again.
  const Sentences edge = spread(2, DecidedBy::kData);
  ASSERT_EQ(edge.size(), 1U);
  EXPECT_NE(edge[0].find("at the edge"), std::string::npos) << edge[0];
}

TEST(Caveats, TheThreeFurthestValuesAreNamed) {
  const auto strange = [](int values) {
    return After([&](Case* its) {
      const char* const names[] = {"link_latency", "flow_window", "server_rate", "rdma_latency"};
      for (int i = 0; i < values; ++i) {
        ParameterEstimate& p = its->Find("cluster", names[i]);
        p.value = p.prior_value * std::exp((4 + i) * p.prior_log_sd);
      }
    });
  };
  const std::string latency = "link_latency of cluster is 369 us (prior 50 us x/ 1.65)";
  const std::string window = "flow_window of cluster is 430 MB (prior 2.9 MB x/ 2.72)";
  const std::string server = "server_rate of cluster is 484 GB/s (prior 1.2 GB/s x/ 2.72)";
  EXPECT_EQ(strange(1), Sentences({latency + kDistrusted}));
  EXPECT_EQ(strange(3), Sentences({server + ", " + window + ", " + latency + kDistrusted}));
  const Sentences all = strange(4);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rfind("rdma_latency of cluster is 403 us", 0), 0U) << all[0];
  EXPECT_NE(all[0].find(", " + server + ", " + window + " and 1 more, beyond"), std::string::npos)
      << all[0];
}

// An optimizer may take any time, a host may be throttled, and a link that nobody stated is as fast
// as it was built.
TEST(Caveats, WhatIsAJobsOrAHostsOwnMayBeAnything) {
  EXPECT_EQ(After([](Case* its) {
              for (ParameterEstimate& p : its->calibration().parameters) {
                for (const char* own : {"link_bandwidth", "update_time"}) {
                  if (p.name != own) continue;
                  p.value = std::max(p.prior_value * std::exp(-4 * p.prior_log_sd),
                                     1.01 * FindParameterSpec(p.name)->low);
                }
              }
              ParameterEstimate slow;
              slow.scope = "hosts n1";
              slow.name = "compute_slowdown";
              slow.value = 4;
              slow.prior_value = 1;
              slow.prior_log_sd = 0.4;
              slow.decided_by = DecidedBy::kData;
              its->calibration().parameters.push_back(slow);
            }),
            Sentences());
}

// Two hosts at 5 of 50 Gbit/s: each is told of, but where no run is without them it is the rate
// that the cluster file says.
TEST(Caveats, LinksThatAreAllSlowerThanStatedAreToldTogether) {
  std::optional<Transport> transport;
  const auto links = [&](const std::vector<std::string>& hosts) {
    return After([&](Case* its) {
      its->problem.cluster.link.bandwidth = GigabitsPerSecond(50.0);
      its->problem.cluster.link.transport = transport;
      for (stepcast::Run& run : its->problem.runs) {
        if (run.plan.nodes() > 1) run.plan.hosts = hosts;
      }
      for (ParameterEstimate& of_cluster : its->calibration().parameters) {
        if (of_cluster.name != "link_bandwidth") continue;
        of_cluster.value = of_cluster.low = of_cluster.high = of_cluster.prior_value = 50;
      }
      for (const char* scope : {"hosts n1", "hosts n2"}) {
        ParameterEstimate p;
        p.scope = scope;
        p.name = "link_bandwidth";
        p.unit = "Gbit/s";
        p.value = 5.5;
        p.low = 5.3;
        p.high = 5.7;
        p.prior_value = 50;
        p.decided_by = DecidedBy::kData;
        its->calibration().parameters.push_back(p);
      }
    });
  };
  const char* const each =
      " is 5.5 Gbit/s, where the cluster file says 50: look at the cable, the port and who else "
      "uses it";
  EXPECT_EQ(links({"n3", "n4", "n5"}),
            Sentences({std::string("link_bandwidth of hosts n1") + each,
                       std::string("link_bandwidth of hosts n2") + each}));
  EXPECT_EQ(links({"n1", "n2", "n3"}),
            Sentences({"link_bandwidth of all hosts that the runs tell of is 5.5 Gbit/s or less, "
                       "where the cluster file says 50 Gbit/s: is that the rate of these links?"}));
  transport = Transport::kRdma;
  const std::string fallen_back = "; or does TCP carry these exchanges, where the file says rdma?";
  EXPECT_EQ(links({"n3", "n4", "n5"}),
            Sentences({"link_bandwidth of hosts n1" + (each + fallen_back),
                       "link_bandwidth of hosts n2" + (each + fallen_back)}));
}

// Whoever fixes a value at the edge of its range knows that it is there.
TEST(Caveats, WhatWasStatedMayStandAtTheEdge) {
  EXPECT_EQ(After([](Case* its) {
              ParameterEstimate& p = its->Find("cluster", "overlap_share");
              p.value = 0.95;
              p.decided_by = DecidedBy::kStated;
            }),
            Sentences());
}

TEST(Caveats, NothingWasDecidedByTheRuns) {
  const auto with_one = [](DecidedBy one) {
    return After([&](Case* its) {
      for (ParameterEstimate& p : its->calibration().parameters) p.decided_by = DecidedBy::kPrior;
      its->calibration().parameters[3].decided_by = one;
    });
  };
  EXPECT_EQ(with_one(DecidedBy::kPrior),
            Sentences({"no parameter was decided by the runs: forecasts rest on priors alone"}));
  EXPECT_EQ(with_one(DecidedBy::kData), Sentences());
  EXPECT_EQ(with_one(DecidedBy::kBoth), Sentences());
}

TEST(Caveats, RowsThatRepeatOthers) {
  // The last rows once more: as they are, and with one part of each changed.
  const auto repeat = [](int times, const std::function<void(stepcast::Run*)>& change = nullptr) {
    return After([&](Case* its) {
      std::vector<stepcast::Run>& runs = its->problem.runs;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].place = {"r.csv", static_cast<int>(i) + 2, ""};
      }
      const stepcast::Run last = runs.back();
      const int line = last.place.line;
      for (int n = 1; n <= times; ++n) {
        runs.push_back(last);
        runs.back().place.line = line + n;
        if (change) change(&runs.back());
      }
    });
  };
  const int last = [] {
    const Case its;
    return static_cast<int>(its.problem.runs.size()) + 1;
  }();
  const std::string of =
      "r.csv:" + std::to_string(last + 1) + " that of r.csv:" + std::to_string(last);
  const std::string counts = ": what was measured once counts as often as it stands there";
  EXPECT_EQ(repeat(1),
            Sentences{"a row repeats an earlier one in every column (" + of + ")" + counts});
  EXPECT_EQ(repeat(2),
            Sentences{"2 rows repeat an earlier one in every column (first " + of + ")" + counts});
  const std::function<void(stepcast::Run*)> changes[] = {
      [](stepcast::Run* run) { run->step_time = run->step_time * (1 + 1e-15); },
      [](stepcast::Run* run) { run->source = "again"; },
      [](stepcast::Run* run) { run->stopped = true; },
      [](stepcast::Run* run) { run->extra = {"2"}; },
      [](stepcast::Run* run) { run->exposed_sync = run->step_time * 0.1; },
      [](stepcast::Run* run) { run->spread.sd = run->step_time * 0.1; },
      [](stepcast::Run* run) { run->spread.p50 = run->step_time; },
      [](stepcast::Run* run) { run->spread.p95 = run->step_time; },
      [](stepcast::Run* run) { run->spread.p99 = run->step_time; },
      [](stepcast::Run* run) {
        run->plan.hosts = {"a", "b", "c"};
      }};
  for (const auto& change : changes) EXPECT_EQ(repeat(1, change), Sentences());
}

TEST(Caveats, WhatTheClusterDoesNotHave) {
  const auto spoil = [](const std::function<void(CalibrationProblem*)>& change) {
    return After([&](Case* its) {
      its->problem.cluster.name = "hall";
      change(&its->problem);
    });
  };
  Host known;
  known.name = "a";
  EXPECT_EQ(spoil([&](CalibrationProblem* p) {
              p->cluster.hosts = {known};
              for (auto& run : p->runs) run.plan.hosts.assign(run.plan.placement.size(), "a");
            }),
            Sentences());
  EXPECT_EQ(spoil([&](CalibrationProblem* p) {
              p->cluster.hosts = {known};
              p->runs.back().plan.hosts = {"a", "c", "b"};
            }),
            Sentences{"b, c are no hosts of hall"});
  EXPECT_EQ(spoil([](CalibrationProblem* p) {
              p->runs.back().plan.hosts = {"a", "c", "b"};
            }),
            Sentences())
      << "nobody said which there are";
  EXPECT_EQ(spoil([](CalibrationProblem* p) { p->cluster.nodes = 2; }),
            Sentences{"a run is on 3 nodes, hall has 2"});
  EXPECT_EQ(spoil([](CalibrationProblem* p) { p->runs.front().plan.placement = {9}; }),
            Sentences{"a run has 9 devices on a node, hall has 4"});
  for (const int devices : {4, 5}) {  // of 4 on each of 3 nodes
    EXPECT_EQ(spoil([&](CalibrationProblem* p) {
                p->cluster.nodes = 3;
                p->runs.front().plan.placement = {devices};
              }),
              devices == 4 ? Sentences() : Sentences{"a run has 5 devices on a node, hall has 4"});
  }
  EXPECT_EQ(spoil([](CalibrationProblem* p) {
              for (auto& run : p->runs) run.device = "rtx_3095";
              p->cluster.device = "rtx_3090";
            }),
            Sentences{"rtx_3095 has no data sheet, and is another device than rtx_3090 "
                      "(did you mean rtx_3090?)"});
}

TEST(Caveats, NoRunBetweenNodes) {
  EXPECT_EQ(After([](Case* its) { its->OnNodes(1); }), Sentences({kNoNetwork}));
  EXPECT_EQ(After([](Case* its) {
              its->OnNodes(1);
              its->problem.cluster.nodes = 1;
            }),
            Sentences())
      << "there is no network";
}

TEST(Caveats, NoRunOnThreeNodes) {
  EXPECT_EQ(After([](Case* its) { its->OnNodes(2); }), Sentences({kPairsOnly}));
  for (const int nodes : {2, 3}) {  // of a cluster that has just as many as it takes
    EXPECT_EQ(After([&](Case* its) {
                its->OnNodes(nodes);
                its->problem.cluster.nodes = 3;
              }),
              nodes == 2 ? Sentences({kPairsOnly}) : Sentences());
  }
  EXPECT_EQ(After([](Case* its) {
              its->OnNodes(2);
              its->problem.cluster.nodes = 2;
            }),
            Sentences())
      << "there is no third node";
}

// Servers show the network from one node on; what a node with two neighbours does they do not.
TEST(Caveats, ServersNeedNoThirdNode) {
  const auto serve = [](auto* run) {
    run->plan.strategy = Strategy::kPsAsync;
    run->plan.servers = 1;
  };
  for (const int nodes : {1, 2}) {
    EXPECT_EQ(After([&](Case* its) {
                its->OnNodes(nodes);
                for (auto& run : its->problem.runs) {
                  if (TraitsOf(run.plan.strategy).exchanges) serve(&run);
                }
              }),
              Sentences());
    EXPECT_EQ(After([&](Case* its) {
                its->OnNodes(nodes);
                serve(&its->problem.runs[0]);
              }),
              nodes == 2 ? Sentences({kPairsOnly}) : Sentences());
  }
}

TEST(Caveats, OneBatchOnly) {
  const auto only = [](Case* its, const std::string& workload, int batch) {
    for (auto& run : its->problem.runs) {
      if (run.workload == workload) run.plan.local_batch = batch;
    }
  };
  const std::string rest =
      " was measured at one batch only (32): how its time grows with the batch is a prior";
  EXPECT_EQ(After([&](Case* its) { only(its, "resnet50", 32); }),
            Sentences({"resnet50 on t4" + rest}));
  EXPECT_EQ(After([&](Case* its) {
              only(its, "resnet50", 32);
              only(its, "bert_base", 32);
            }),
            Sentences({"bert_base on t4, resnet50 on t4 were each measured at one batch only: how "
                       "their times grow with the batch is a prior"}));
  // On each device by itself.
  const Sentences devices = After([](Case* its) {
    for (auto& run : its->problem.runs) {
      if (run.workload == "resnet50" && run.plan.local_batch == 32) run.device = "v100";
    }
  });
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].rfind("resnet50 on t4, resnet50 on v100 were each", 0), 0U) << devices[0];
}

TEST(Caveats, AMessageHasNoBatch) {
  EXPECT_EQ(After([](Case* its) {
              its->problem.workloads["message"] = Message("message", 1e6);
              auto run = its->problem.runs[1];
              run.workload = "message";
              its->problem.runs.push_back(run);
            }),
            Sentences());
}

TEST(Caveats, TheGravestFirst) {
  const Sentences found = After([](Case* its) {
    its->outcome.mape = 3;
    for (ParameterEstimate& p : its->calibration().parameters) p.decided_by = DecidedBy::kPrior;
    its->Find("cluster", "overlap_share").value = 0.95;
    its->OnNodes(2);
    for (auto& run : its->problem.runs) run.plan.local_batch = 16;
  });
  const char* const starts[] = {"the model does not describe", "overlap_share of cluster",
                                "no parameter was decided", "no run has three nodes",
                                "bert_base on t4, resnet18_cifar10 on t4, resnet50 on t4"};
  ASSERT_EQ(found.size(), std::size(starts));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].rfind(starts[i], 0), 0U) << found[i];
    EXPECT_NE(found[i].back(), '.') << "the full stop is the printer's";
  }
}

// ---- Where each of them begins.

bool SaysWith(const std::string& part, const std::function<void(Case*)>& spoil) {
  const Sentences found = After(spoil);
  return std::any_of(found.begin(), found.end(), [&](const std::string& sentence) {
    return sentence.find(part) != std::string::npos;
  });
}

// Just beyond half off, and a hundred times as long or as short.
TEST(CaveatBounds, OfErrorsAndUnits) {
  for (const auto& [mape, said] : {std::pair(0.4999, false), std::pair(0.5001, true)}) {
    EXPECT_EQ(SaysWith("does not describe", [&](Case* its) { its->outcome.mape = mape; }), said);
  }
  const auto units = [](double times) {
    return After([&](Case* its) { its->outcome.prior_log_ratio = std::log(times); });
  };
  const std::string rest =
      " times as long as clusters of such devices and links do, by their median: are their times "
      "in seconds?";
  EXPECT_EQ(units(99.9), Sentences());
  EXPECT_EQ(units(1 / 99.9), Sentences());
  EXPECT_EQ(units(100.1), Sentences{"runs take 100" + rest});
  EXPECT_EQ(units(1 / 125.0), Sentences{"runs take 0.008" + rest});
}

// Within a millionth of either end of the range.
TEST(CaveatBounds, OfARange) {
  const auto at = [](double value) {
    return SaysWith("at the edge",
                    [&](Case* its) { its->Find("cluster", "link_latency").value = value; });
  };
  for (const auto& [off, edge] : {std::pair(5e-7, true), std::pair(2e-6, false)}) {
    EXPECT_EQ(at(0.5 * (1 + off)), edge) << off;
    EXPECT_EQ(at(1e5 * (1 - off)), edge) << off;
  }
}

// Three standard deviations of the prior, either way.
TEST(CaveatBounds, OfABelief) {
  const auto off = [](double deviations) {
    return SaysWith("do not trust forecasts", [&](Case* its) {
      ParameterEstimate& p = its->Find("cluster", "link_latency");
      p.value = p.prior_value * std::exp(deviations * p.prior_log_sd);
    });
  };
  for (const double way : {1.0, -1.0}) {
    EXPECT_FALSE(off(2.99 * way)) << way;
    EXPECT_TRUE(off(3.01 * way)) << way;
  }
  // Of what has no prior nothing is believed.
  EXPECT_FALSE(SaysWith("do not trust forecasts", [](Case* its) {
    ParameterEstimate& p = its->Find("cluster", "link_latency");
    p.value = 5000;
    p.prior_log_sd = 0;
  }));
}

// Three standard deviations of what the data sheet lets expect, either way, at the batch where the
// priors are surest: with a sample as good as certain those of device_speed.
TEST(CaveatBounds, OfTheDataSheet) {
  const auto off = [](double deviations) {
    return After([&](Case* its) {
      for (const char* name : {"fixed_time", "floor_time", "sample_time"}) {
        ParameterEstimate& p = its->Find("workload resnet50 on t4", name);
        p.prior_log_sd = 1e-3;
        p.prior_value = p.value / std::exp(deviations * 0.35);
      }
    });
  };
  EXPECT_EQ(off(2.99), Sentences());
  EXPECT_EQ(off(-2.99), Sentences());
  const std::string rest =
      " the device's data sheet lets expect: is it this device, this precision, and inputs of this "
      "size? How its time changes with the batch is a guess until another batch is measured";
  EXPECT_EQ(off(4), Sentences{"workload resnet50 on t4 computes 4.06 times as long as" + rest});
  EXPECT_EQ(off(-4), Sentences{"workload resnet50 on t4 computes 4.06 times as fast as" + rest});
}

// A rate whose interval ends where its standard deviation has it is that of the link.
TEST(CaveatBounds, OfALinkOfWhichNobodySaysTheRate) {
  const auto says = [](double times, DecidedBy by) {
    return SaysWith("if links hold these runs back", [&](Case* its) {
      ParameterEstimate& p = its->Find("cluster", "link_bandwidth");
      p.decided_by = by;
      p.low = p.value / 1.1;
      p.high = p.value * std::exp(times * 1.96 * p.log_sd);
    });
  };
  EXPECT_FALSE(says(2.9, DecidedBy::kData));
  EXPECT_TRUE(says(3.1, DecidedBy::kData));
  EXPECT_TRUE(says(3.1, DecidedBy::kBoth));
  EXPECT_FALSE(says(100, DecidedBy::kPrior));
  EXPECT_FALSE(says(100, DecidedBy::kStated));
}

// A link is told by its interval: all of it below half of what is stated, or above by a tenth.
TEST(CaveatBounds, OfALinkBesideWhatIsStated) {
  enum class By { kCluster, kHost, kNobody };
  const auto link = [](const std::string& scope, double low, double high, By by) {
    return After([&](Case* its) {
      if (by == By::kCluster) its->problem.cluster.link.bandwidth = GigabitsPerSecond(40.0);
      for (const char* name : {"n1", "n2"}) {
        Host host;
        host.name = name;
        if (by == By::kHost && host.name == "n1") host.link.bandwidth = GigabitsPerSecond(40.0);
        its->problem.cluster.hosts.push_back(host);
      }
      ParameterEstimate& of_cluster = its->Find("cluster", "link_bandwidth");
      of_cluster.low = of_cluster.high = of_cluster.prior_value = 40;
      ParameterEstimate p = of_cluster;
      of_cluster.log_sd = p.log_sd = 1;  // an interval as wide as that is of one mind
      p.scope = scope;
      p.value = 30;
      p.low = low;
      p.high = high;
      if (scope == "cluster") {
        of_cluster = p;
      } else {
        its->calibration().parameters.push_back(p);
      }
    });
  };
  const auto sentence = [](const std::string& scope, const std::string& why) {
    return Sentences{"link_bandwidth of " + scope +
                     " is 30 Gbit/s, where the cluster file says 40: " + why};
  };
  const std::string slow = "look at the cable, the port and who else uses it";
  const std::string fast = "no link is faster than its port";
  for (const std::string scope : {"cluster", "hosts n1", "hosts n1+n2"}) {
    for (const By by : {By::kCluster, By::kHost}) {
      if (scope == "cluster" && by == By::kHost) continue;
      EXPECT_EQ(link(scope, 15, 20.01, by), Sentences()) << scope;
      EXPECT_EQ(link(scope, 15, 19.99, by), sentence(scope, slow)) << scope;
      EXPECT_EQ(link(scope, 43.9, 50, by), Sentences()) << scope;
      EXPECT_EQ(link(scope, 44.1, 50, by), sentence(scope, fast)) << scope;
    }
    EXPECT_EQ(link(scope, 1, 2, By::kNobody), Sentences()) << scope;
  }
  EXPECT_EQ(link("hosts n2", 1, 2, By::kHost), Sentences()) << "of whose port nobody says a rate";
}

// The network shows in runs that ended, exchange something, and leave their node.
TEST(CaveatBounds, OfRunsThatShowTheNetwork) {
  const auto after = [](const std::function<void(stepcast::Run*)>& change) {
    return After([&](Case* its) {
      for (stepcast::Run& run : its->problem.runs) {
        if (run.plan.nodes() > 1) change(&run);
      }
    });
  };
  EXPECT_EQ(after([](stepcast::Run* run) { run->plan.strategy = Strategy::kNone; }),
            Sentences{kNoNetwork});
  const Sentences stopped = after([](stepcast::Run* run) { run->stopped = true; });
  EXPECT_EQ(std::count(stopped.begin(), stopped.end(), kNoNetwork), 1);
  const auto serve = [&](bool colocated, int nodes) {
    return after([&](stepcast::Run* run) {
      run->plan.placement = Placement(static_cast<std::size_t>(nodes), 2);
      run->plan.strategy = Strategy::kPsSync;
      run->plan.servers = 1;
      run->plan.server.colocated = colocated;
    });
  };
  EXPECT_EQ(serve(true, 1), Sentences{kNoNetwork}) << "servers on the workers' own node";
  EXPECT_EQ(serve(true, 2), Sentences());
  EXPECT_EQ(serve(false, 1), Sentences());
}

// Batches that differ within one run show how its time grows; what was stopped shows nothing.
TEST(CaveatBounds, OfBatches) {
  const auto at_32 = [](const std::function<void(stepcast::Run*)>& change) {
    return SaysWith("resnet50 on t4 was measured at one batch only (32)", [&](Case* its) {
      for (stepcast::Run& run : its->problem.runs) {
        if (run.workload != "resnet50" || run.plan.local_batch == 32) continue;
        run.plan.local_batch = 32;
        change(&run);
      }
    });
  };
  EXPECT_TRUE(at_32([](stepcast::Run*) {}));
  EXPECT_FALSE(at_32([](stepcast::Run* run) {
    run->plan.slow_nodes = 1;
    run->plan.slow_local_batch = 16;
  }));
  EXPECT_TRUE(at_32([](stepcast::Run* run) {
    run->plan.local_batch = 8;
    run->stopped = true;
  }));
}

// What somebody stated was not decided by the runs.
TEST(CaveatBounds, OfWhatRunsDecided) {
  EXPECT_TRUE(SaysWith("no parameter was decided", [](Case* its) {
    for (ParameterEstimate& p : its->calibration().parameters) p.decided_by = DecidedBy::kStated;
  }));
}

TEST(CaveatBounds, OfDevicesThatAreMisspelt) {
  const auto asks = [](const std::string& device, bool with_data_sheet) {
    return SaysWith("has no data sheet", [&](Case* its) {
      its->problem.cluster.device = "rtx_3090";
      for (stepcast::Run& run : its->problem.runs) run.device = device;
      if (with_data_sheet) its->problem.devices[device] = T4();
    });
  };
  EXPECT_TRUE(asks("rtx_3095", false));
  EXPECT_FALSE(asks("rtx_3095", true));
  EXPECT_FALSE(asks("rtx_3090", false));
  EXPECT_FALSE(asks("abacus", false)) << "like no other";
}

TEST(CaveatBounds, OfOneStrangeHost) {
  EXPECT_EQ(After([](Case* its) {
              its->problem.cluster.name = "hall";
              Host known;
              known.name = "a";
              its->problem.cluster.hosts = {known};
              its->problem.runs.back().plan.hosts = {"a", "c", "a"};
            }),
            Sentences{"c is no host of hall"});
}

// A row is another as soon as one word or one field of its plan differs.
TEST(CaveatBounds, OfRowsThatRepeat) {
  const auto repeats = [](const stepcast::Run& one, const stepcast::Run& other) {
    return SaysWith("repeat", [&](Case* its) { its->problem.runs = {one, other}; });
  };
  stepcast::Run run = Case().problem.runs.back();
  EXPECT_TRUE(repeats(run, run));
  for (const ChangedPlan& changed : ChangedPlans()) {
    stepcast::Run before = run;
    stepcast::Run after = run;
    before.plan = changed.before;
    after.plan = changed.after;
    EXPECT_FALSE(repeats(before, after)) << changed.facts.state;
    EXPECT_TRUE(repeats(after, after)) << changed.facts.state;
  }
  const std::function<void(stepcast::Run*)> changes[] = {
      [](stepcast::Run* other) {
        other->workload = other->workload == "resnet50" ? "bert_base" : "resnet50";
      },
      [](stepcast::Run* other) { other->device = "v100"; },
      [](stepcast::Run* other) {
        other->plan.placement = {1, 2};
      },
      [](stepcast::Run* other) { ++other->plan.local_batch; },
      [](stepcast::Run* other) { ++other->plan.accumulation_steps; }};
  for (const auto& change : changes) {
    stepcast::Run other = run;
    change(&other);
    EXPECT_FALSE(repeats(run, other));
  }
}

// Runs of no file have no lines to be named.
TEST(CaveatBounds, OfRowsThatStandNowhere) {
  EXPECT_EQ(After([](Case* its) {
              for (stepcast::Run& run : its->problem.runs) run.place = {};
              its->problem.runs.push_back(its->problem.runs.back());
            }),
            Sentences{"a row repeats an earlier one in every column: what was measured once counts "
                      "as often as it stands there"});
}

// Each of the others stands between its neighbours, too.
TEST(CaveatBounds, OfTheirOrder) {
  const Sentences found = After([](Case* its) {
    its->outcome.mape = 3;
    its->outcome.prior_log_ratio = 9;
    for (ParameterEstimate& p : its->calibration().parameters) p.decided_by = DecidedBy::kPrior;
    its->Find("cluster", "overlap_share").value = 0.95;
    its->Find("cluster", "link_latency").value = 5000;
    its->problem.cluster.link.bandwidth = GigabitsPerSecond(40.0);
    its->Find("cluster", "link_bandwidth").prior_value = 40;
    its->problem.cluster.nodes = 2;
    its->problem.cluster.devices_per_node = 1;
    its->problem.runs[0].plan.placement = {2};
    its->problem.cluster.device = "t5";
    Host host;
    host.name = "a";
    its->problem.cluster.hosts = {host};
    its->problem.runs[1].plan.hosts = {"b", "c", "d"};
    its->problem.runs.push_back(its->problem.runs[1]);
    for (auto& run : its->problem.runs) run.plan.local_batch = 16;
  });
  const char* const parts[] = {"does not describe", "in seconds?",      "in every column",
                               "are no hosts of",   "is on 3 nodes",    "devices on a node",
                               "has no data sheet", "at the edge",      "do not trust",
                               "look at the cable", "no parameter was", "one batch only"};
  ASSERT_EQ(found.size(), std::size(parts));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NE(found[i].find(parts[i]), std::string::npos) << found[i];
  }
}

// ---- Of fits.

Sentences OfFit(const CalibrationProblem& problem) {
  const CalibrationOutcome outcome = Calibrate(problem);
  EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
  return Caveats(problem, outcome);
}

TEST(CaveatsOfFits, AGoodCampaignHasNone) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), 0.03, 1);
  EXPECT_EQ(OfFit(synthetic.problem()), Sentences());
}

TEST(CaveatsOfFits, OneDeviceAtOneBatch) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  SyntheticProblem synthetic(truth);
  for (int i = 0; i < 5; ++i) synthetic.Add("resnet50", AllreducePlan({1}, 32), 0.001 * i);
  const Sentences found = OfFit(synthetic.problem());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], kNoNetwork);
  EXPECT_EQ(found[1].rfind("resnet50 on t4 was measured at one batch only (32)", 0), 0U);
}

// Milliseconds that were taken for seconds; and a cluster that is as slow as half a dozen.
TEST(CaveatsOfFits, TimesOfAnotherUnitAreAskedAfter) {
  const auto asks = [](double times) {
    SyntheticProblem synthetic(PlausibleTruth());
    AddCampaign(&synthetic, FittedPlacements(), 0.03, 1);
    synthetic.problem().devices[kSyntheticDevice] = T4();
    for (auto& run : synthetic.problem().runs) run.step_time = run.step_time * times;
    const Sentences found = OfFit(synthetic.problem());
    return std::any_of(found.begin(), found.end(), [](const std::string& sentence) {
      return sentence.find("are their times in seconds?") != std::string::npos;
    });
  };
  EXPECT_TRUE(asks(1e3));
  EXPECT_TRUE(asks(1e-3));
  EXPECT_FALSE(asks(6));
}

// Step times in nanoseconds that were taken for seconds.
TEST(CaveatsOfFits, AWrongUnitIsSeen) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, {{1}, {1, 1}, {1, 1, 1}}, 0.03, 1);
  for (auto& run : synthetic.problem().runs) run.step_time = run.step_time * 1e9;
  const Sentences found = OfFit(synthetic.problem());
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found[0].rfind("the model does not describe", 0) == 0 ||
              found[0].find("at the edge of its range") != std::string::npos)
      << found[0];
}

}  // namespace
}  // namespace stepcast
