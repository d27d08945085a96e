// The text of a fleet's record: who goes on from it goes on as if nothing had been, and whatever
// is done to it, it is refused or as good as any other.
#include "data/io/fleet_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "calibrate/online/fleet.h"
#include "data/io/machines.h"
#include "data/io/workload_file.h"
#include "data/record/input_error.h"
#include "data/workloads/catalog.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/serve/mutations.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"
#include "tests/support/members.h"

namespace stepcast {
namespace {

std::string TextOf(const Fleet& fleet) { return FormatFleetRecord(fleet.Export()); }

void Load(const std::string& text, Fleet* fleet) { fleet->Import(ParseFleetRecord(text)); }

// Four hosts, two of which have a link of their own.
Cluster ClusterWithLinks() {
  Cluster cluster = SyntheticCluster();
  AddHosts({"a", "b", "c", "d"}, std::nullopt, &cluster);
  cluster.hosts[1].link.bandwidth = GigabitsPerSecond(1.0);
  cluster.hosts[2].link.bandwidth = GigabitsPerSecond(25.0);
  return cluster;
}

Workload BySize(const std::string& name, double bytes) {
  Workload workload;
  workload.name = workload.title = name;
  workload.parameters = workload.trainable_parameters = static_cast<std::int64_t>(bytes / 4);
  workload.gradient_bytes = Bytes(bytes);
  return workload;
}

const std::vector<Workload>& SomeWorkloads() {
  static const std::vector<Workload> workloads = {
      *FindWorkload("resnet50"), *FindWorkload("mlp_mnist"), *FindWorkload("message_1000000"),
      BySize("\"own\": net", 4e7)};
  return workloads;
}

// A step that nobody's model has made.
double StepOf(const Plan& plan, double factor, std::mt19937* random) {
  const double nodes = static_cast<double>(plan.placement.size());
  const double noise = std::uniform_real_distribution<double>(-0.05, 0.05)(*random);
  return factor * (0.01 + 0.002 * plan.local_batch + 0.03 * (nodes - 1)) * std::exp(noise);
}

Plan SomePlan(const Cluster& cluster, std::mt19937* random) {
  static const Placement kPlacements[] = {{1}, {2}, {4}, {1, 1}, {2, 2}, {4, 4, 4}};
  Plan plan;
  plan.strategy = (*random)() % 3 == 0 ? Strategy::kRing : Strategy::kAllreduce;
  plan.placement = kPlacements[(*random)() % std::size(kPlacements)];
  plan.local_batch = 8 << ((*random)() % 3);
  if (!cluster.hosts.empty() && (*random)() % 2 == 0) {
    for (std::size_t i = 0; i < plan.placement.size(); ++i) {
      plan.hosts.push_back(cluster.hosts[(i + (*random)() % 2 * 2) % cluster.hosts.size()].name);
    }
    std::sort(plan.hosts.begin(), plan.hosts.end());
    plan.hosts.erase(std::unique(plan.hosts.begin(), plan.hosts.end()), plan.hosts.end());
    if (plan.hosts.size() < plan.placement.size()) plan.hosts.clear();
  }
  return plan;
}

// Something that happens to a fleet; the same for the same random numbers.
void Happen(Fleet* fleet, std::mt19937* random) {
  const std::vector<std::string> jobs = fleet->jobs();
  const unsigned what = (*random)() % 8;
  const std::string job = jobs.empty() ? "" : jobs[(*random)() % jobs.size()];
  if (jobs.empty() || (what == 0 && jobs.size() < 4)) {
    const Workload& workload = SomeWorkloads()[(*random)() % SomeWorkloads().size()];
    const std::string name = "job \"" + std::to_string((*random)() % 1000) + "\"";
    if (std::find(jobs.begin(), jobs.end(), name) != jobs.end()) return;
    fleet->Add(name, workload, T4());
  } else if (what == 1) {
    fleet->End(job);
  } else if (what == 2) {
    fleet->Remove(job);
  } else {
    const double factor = what == 3 ? 2 : 1;  // it has become slower
    const Plan plan = SomePlan(fleet->cluster(), random);
    for (unsigned rows = 1 + (*random)() % 12; rows > 0; --rows) {
      const bool same = (*random)() % 2 == 0;
      const Plan& observed = same ? plan : SomePlan(fleet->cluster(), random);
      try {
        fleet->Job(job)->Observe(observed, Seconds(StepOf(observed, factor, random)));
      } catch (const InputError&) {  // a bare message between nobody
      }
    }
  }
}

std::vector<Cluster> SomeClusters() {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"a", GigabitsPerSecond(1.0)}, {"b", GigabitsPerSecond(20.0)}};
  truth.host_slowdowns = {{"b", 1.4}};
  return {SyntheticCluster(), CalibratedCluster(PlausibleTruth()), ClusterWithLinks(),
          CalibratedCluster(truth)};
}

// What a new job of each workload would begin with.
std::string StartsOf(const Fleet& fleet) {
  std::string starts;
  for (const Workload& workload : SomeWorkloads()) {
    starts += FormatCluster(fleet.ClusterFor(workload, T4()));
  }
  return starts + FormatCluster(fleet.ClusterFor(*FindWorkload("bert_base"), T4()));
}

TEST(FleetText, WhoGoesOnFromItGoesOnToTheBit) {
  constexpr int kHistories = 6;  // of each cluster
  int drifted = 0;
  int running = 0;
  int taught = 0;
  for (const Cluster& cluster : SomeClusters()) {
    for (unsigned seed = 0; seed < kHistories; ++seed) {
      SCOPED_TRACE("history " + std::to_string(seed));
      std::mt19937 random(seed);
      Fleet fleet(cluster);
      for (unsigned events = random() % 40; events > 0; --events) Happen(&fleet, &random);
      const std::string text = TextOf(fleet);
      Fleet copy(cluster);
      Load(text, &copy);
      ASSERT_EQ(TextOf(copy), text);
      ASSERT_EQ(copy.jobs(), fleet.jobs());
      ASSERT_EQ(StartsOf(copy), StartsOf(fleet));
      std::mt19937 same = random;
      for (unsigned events = 10; events > 0; --events) {
        Happen(&fleet, &random);
        Happen(&copy, &same);
      }
      ASSERT_EQ(TextOf(copy), TextOf(fleet));
      ASSERT_EQ(StartsOf(copy), StartsOf(fleet));
      for (const std::string& job : fleet.jobs()) {
        ASSERT_EQ(FormatCluster(copy.Job(job)->cluster()),
                  FormatCluster(fleet.Job(job)->cluster()));
        drifted += fleet.Job(job)->drifted() ? 1 : 0;
        ++running;
      }
      taught += static_cast<int>(fleet.Export().taught.size());
    }
  }
  EXPECT_GT(running, 20);
  EXPECT_GT(drifted, 3);
  EXPECT_GT(taught, 40);
}

// A fleet with something of each kind: one over, one that drifted, one without rows.
Fleet SomeFleet(int rows = 40) {
  Fleet fleet(SyntheticCluster());
  std::mt19937 random(1);
  const auto observe = [&](const std::string& job, int count, double factor) {
    for (int i = 0; i < count; ++i) {
      const Plan plan = SomePlan(fleet.cluster(), &random);
      fleet.Job(job)->Observe(plan, Seconds(StepOf(plan, factor, &random)));
    }
  };
  fleet.Add("over", *FindWorkload("resnet50"), T4());
  observe("over", rows, 1);
  fleet.End("over");
  Device other = T4();
  other.name = "other";
  fleet.Add("a", BySize("net", 1e8), std::nullopt, "t4");
  observe("a", rows, 1);
  observe("a", rows, 2);
  fleet.Add("b", *FindWorkload("mlp_mnist"), other);
  return fleet;
}

TEST(FleetText, HasEveryMemberOfARecord) {
  const FleetRecord is = SomeFleet().Export();
  const FleetRecord read = ParseFleetRecord(FormatFleetRecord(is));
  // One more than is compared here would be forgotten.
  EXPECT_EQ(CountMembers<FleetRecord>(), 3U);
  EXPECT_EQ(CountMembers<FleetRecord::Job>(), 3U);
  EXPECT_EQ(CountMembers<FleetRecord::Learnt>(), 4U);
  EXPECT_EQ(read.cluster, "synthetic");
  ASSERT_EQ(read.taught.size(), 3U);
  ASSERT_EQ(read.jobs.size(), 2U);
  EXPECT_EQ(read.jobs[0].name, "a");
  EXPECT_EQ(read.jobs[1].name, "b");
  const auto expect_same = [](const FleetRecord::Learnt& one, const FleetRecord::Learnt& other) {
    EXPECT_EQ(FormatWorkload(one.workload), FormatWorkload(other.workload));
    EXPECT_EQ(one.device, other.device);
    ASSERT_EQ(one.facts.has_value(), other.facts.has_value());
    if (one.facts) {
      EXPECT_EQ(one.facts->name, other.facts->name);
      EXPECT_EQ(one.facts->fp32, other.facts->fp32);
      EXPECT_EQ(one.facts->memory, other.facts->memory);
      EXPECT_EQ(one.facts->memory_bandwidth, other.facts->memory_bandwidth);
    }
    EXPECT_EQ(one.state.rows, other.state.rows);
    EXPECT_EQ(one.state.y, other.state.y);
    EXPECT_EQ(one.state.b, other.state.b);
    EXPECT_EQ(one.state.anew.has_value(), other.state.anew.has_value());
  };
  for (std::size_t i = 0; i < 3; ++i) expect_same(read.taught[i], is.taught[i]);
  for (std::size_t i = 0; i < 2; ++i) {
    expect_same(read.jobs[i].learnt, is.jobs[i].learnt);
    ASSERT_TRUE(read.jobs[i].start && is.jobs[i].start);
    EXPECT_EQ(read.jobs[i].start->log_covariance, is.jobs[i].start->log_covariance);
  }
  EXPECT_TRUE(read.jobs[0].learnt.state.anew);
  EXPECT_FALSE(read.jobs[0].learnt.facts);
  EXPECT_TRUE(read.jobs[1].learnt.facts);
}

// What many jobs train is written out once, but only where it is the same.
TEST(FleetText, WorkloadsOfOneNameKeepWhatTheyAre) {
  FleetRecord is = SomeFleet(3).Export();
  const auto taught = std::find_if(is.taught.begin(), is.taught.end(),
                                   [](const auto& of) { return of.workload.name == "net"; });
  ASSERT_NE(taught, is.taught.end());
  ASSERT_EQ(is.jobs.at(0).learnt.workload, taught->workload);
  taught->workload.title = "as it was taught";
  is.jobs[0].learnt.workload.title = "as it runs";
  const FleetRecord read = ParseFleetRecord(FormatFleetRecord(is));
  const auto at = static_cast<std::size_t>(taught - is.taught.begin());
  EXPECT_EQ(read.taught.at(at).workload.title, "as it was taught");
  EXPECT_EQ(read.jobs.at(0).learnt.workload.title, "as it runs");
}

// The text with `from`, which it has, replaced where it is first.
std::string With(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(FleetText, SaysWhatIsWrong) {
  const std::string text = TextOf(SomeFleet(3));
  const auto refuses = [](const std::string& damaged, const std::string& why) {
    Fleet fleet = SomeFleet(2);
    const std::string before = TextOf(fleet);
    const auto error = ErrorOf([&] { Load(damaged, &fleet); });
    EXPECT_TRUE(Says(error, why)) << why;
    EXPECT_EQ(TextOf(fleet), before) << "nothing changes";
  };
  refuses("", "fleet: is not JSON; allowed: what was saved of one");
  refuses("[]", "state: 'array' is no object; allowed: what was saved");
  refuses("{}", "format: is missing; allowed: what was saved");
  refuses(With(text, "stepcast fleet", "a fleet"),
          "format: 'a fleet' is another; allowed: stepcast fleet");
  refuses(With(text, "\"version\":1", "\"version\":2"), "version: '2' is another; allowed: 1");
  refuses(With(text, "\"cluster\":\"synthetic\"", "\"cluster\":\"other\""),
          "cluster: 'other' is another; allowed: synthetic");
  refuses(With(text, "\"jobs\":", "\"job\":"), "jobs: is missing");
  refuses(With(text, "\"version\":1", "\"version\":1,\"version\":1"), "version: is given twice");
  refuses(With(text, "\"version\":1", "\"version\":1,\"more\":1"), "members that are not known");
  refuses(With(text, "\"job\":\"a\"", "\"job\":\"\""), "jobs[0].job: is empty; allowed: a name");
  refuses(With(text, "\"job\":\"b\"", "\"job\":\"a\""), "jobs[1].job: 'a' is no name, or there");
  refuses(With(text, "parameters: 25000000", "parameters: x"), "taught[1].workload:2: parameters");
  refuses(With(text, "\"device\":\"t4\"", "\"device\":4"), "taught[1].device: 'number' is no text");
  refuses(With(text, "\"scatter\":0.", "\"scatter\":-0."), "taught[0].state.scatter");
  refuses(With(text, "\"version\":3", "\"version\":4"), "taught[0].state.version: '4' is another");
  refuses(With(text, "\"version\":3", "\"version\":3.0"),
          "taught[0].state.version: 'number' is no whole number");
  refuses(With(text, "name: t4", "nam: t4"), "device_facts:");
  refuses(With(text, "\\nnodes: 1\\n", "\\nnodes: 1\\nmore: 1\\n"), "jobs[0].start:");
}

TEST(FleetText, IsOfJobsThatCanBe) {
  const FleetRecord good = SomeFleet(20).Export();
  const auto refuses = [&](const std::string& why, const auto& damage) {
    FleetRecord bad = good;
    damage(&bad);
    Fleet fleet(SyntheticCluster());
    EXPECT_TRUE(Says(ErrorOf([&] { fleet.Import(bad); }), why)) << why;
    EXPECT_EQ(fleet.Export().taught.size(), 0U) << "nothing changes";
  };
  refuses("taught[3].workload: 'workload mlp_mnist on other' is there twice",
          [](FleetRecord* r) { r->taught.push_back(r->taught[0]); });
  refuses("jobs[1].workload: 'workload mlp_mnist on other' is not among what is taught",
          [](FleetRecord* r) { r->taught.erase(r->taught.begin()); });
  refuses("jobs[0].workload: 'net' has other gradients than that of another job",
          [](FleetRecord* r) { r->jobs[0].learnt.workload = BySize("net", 2e8); });
  refuses("taught[0].state: is of a job that is running",
          [](FleetRecord* r) { r->taught[0].state.plans = r->jobs[0].learnt.state.plans; });
  refuses("taught[0].state: is of a job that is running",
          [](FleetRecord* r) { r->taught[0].state.anew = r->jobs[0].learnt.state.anew; });
  refuses("jobs[0].state.start_log_values", [](FleetRecord* r) {
    r->jobs[0].start->parameters[0].value *= 1.001;
    r->jobs[0].learnt.state.anew.reset();
    r->jobs[0].learnt.state.earlier_rows = 0;
  });
  refuses("jobs[0].job: is no name", [](FleetRecord* r) { r->jobs[0].name = ""; });
  // Sums that are no numbers any more, or of more than there can be.
  for (const double sum : {1e90, std::numeric_limits<double>::infinity()}) {
    refuses("state", [&](FleetRecord* r) {
      OnlineRecord& state = r->taught[2].state;
      state.folded.diagonal().setConstant(sum);
      state.a.diagonal().setConstant(sum);
    });
  }
}

// Many small texts do not become large ones.
// What is known of nobody's rows can be only so certain.
TEST(FleetText, IsOfNoMoreThanRowsCanTell) {
  Fleet fleet(SyntheticCluster());
  fleet.Add("a", *FindWorkload("resnet50"), T4())->Observe(AllreducePlan({1, 1}, 32), Seconds(0.3));
  fleet.End("a");
  for (const double information : {1e6, 1e20}) {
    FleetRecord record = fleet.Export();
    ASSERT_EQ(record.taught.size(), 1U);
    OnlineRecord& state = record.taught[0].state;
    const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(state.y.size(), state.y.size());
    state.folded = information * one;
    state.a = state.folded + one;
    Fleet other(SyntheticCluster());
    const auto error = ErrorOf([&] { other.Import(record); });
    EXPECT_EQ(error.has_value(), information > 1e15);
    if (error) {
      EXPECT_TRUE(Says(error, "taught[0]"));
      EXPECT_TRUE(Says(error, "is of more than rows can have told"));
    }
  }
}

TEST(FleetText, NoPartRepeatsByAliases) {
  const std::string text = TextOf(SomeFleet(3));
  for (const std::string key : {"\"device_facts\":\"name: ", "\"start\":\"name: "}) {
    const std::string damaged = With(text, key, key + "&a ");
    const std::size_t at = damaged.find("&a ");
    const std::size_t end = damaged.find("\\n", at);
    const std::string with_alias = damaged.substr(0, end) + "\\nsource: *a" + damaged.substr(end);
    EXPECT_TRUE(
        Says(ErrorOf([&] { ParseFleetRecord(with_alias); }), "repeats too much by aliases"));
  }
  // Nor is there a matrix that is larger than the text.
  FleetRecord many = SomeFleet(3).Export();
  many.jobs[0].start->parameters.resize(400, many.jobs[0].start->parameters[0]);
  many.jobs[0].start->log_covariance = Eigen::MatrixXd::Identity(400, 400);
  const std::string with = FormatFleetRecord(many);
  ParseFleetRecord(with);
  const std::size_t at = with.find("  log_covariance: |", with.find("\"start\""));
  const std::string without = with.substr(0, at) + with.substr(with.find('"', at));
  EXPECT_TRUE(Says(ErrorOf([&] { ParseFleetRecord(without); }),
                   "jobs[0].start: calibration.log_covariance: is missing"));
}

// A name that JSON cannot hold is refused before there is a text that nobody reads.
TEST(FleetText, IsNotOfNamesThatAreNone) {
  for (const std::string& name : {std::string("\xff"), std::string(1001, 'n')}) {
    Fleet fleet(SyntheticCluster());
    fleet.Add(name, *FindWorkload("resnet50"), T4());
    EXPECT_TRUE(Says(ErrorOf([&] { TextOf(fleet); }), "job: ")) << name;
  }
}

// Whatever is done to the text: a fleet as good as any other, or an error and no change.
TEST(FleetText, DamagedTextIsRefusedOrAnswersFinitely) {
  const std::string text = TextOf(SomeFleet(6));
  std::mt19937 random(1);
  int taken = 0;
  int answers = 0;
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    Fleet fleet(SyntheticCluster());
    try {
      std::string damaged = text;
      if (i % 2 == 0) {
        damaged = serve::Mutate(text, &random);
      } else {  // another number
        const std::size_t at = text.find_first_of("123456789", random() % text.size());
        if (at != std::string::npos) damaged[at] = static_cast<char>('1' + random() % 9);
      }
      Load(damaged, &fleet);
    } catch (const InputError&) {
      ASSERT_EQ(fleet.Export().taught.size(), 0U);
      continue;
    }
    ++taken;
    for (const char* workload : {"resnet50", "bert_base"}) {
      try {
        const Cluster start = fleet.ClusterFor(*FindWorkload(workload), T4());
        for (const ParameterEstimate& e : start.calibration->parameters) {
          ASSERT_TRUE(std::isfinite(e.value) && std::isfinite(e.log_sd)) << e.name;
        }
        const auto job = fleet.Add(workload, *FindWorkload(workload), T4());
        const Observation seen = job->Observe(SomePlan(fleet.cluster(), &random), Seconds(0.1));
        ASSERT_TRUE(std::isfinite(seen.predicted.si()) && std::isfinite(seen.surprise));
        ++answers;
        for (const std::string& name : fleet.jobs()) fleet.End(name);
      } catch (const InputError&) {
      }
    }
  }
  EXPECT_GT(taken, 40);
  EXPECT_GT(answers, 40);
}

}  // namespace
}  // namespace stepcast
