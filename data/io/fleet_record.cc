#include "data/io/fleet_record.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/io/json_members.h"
#include "data/io/online_record_json.h"
#include "data/io/strict_json.h"
#include "data/io/text_parts.h"
#include "data/io/workload_file.h"
#include "data/record/within.h"
#include "data/values/names.h"

namespace stepcast {
namespace {

using nlohmann::json;

constexpr const char* kFleetFormat = "stepcast fleet";
constexpr int kFleetVersion = 1;

// The texts of workloads: what many jobs train is written out once.
class WorkloadTexts {
 public:
  const std::string& Of(const Workload& workload) {
    auto& [known, text] = known_[workload.name];
    if (text.empty() || !(known == workload)) {
      known = workload;
      text = FormatWorkload(workload);
    }
    return text;
  }

 private:
  std::map<std::string, std::pair<Workload, std::string>> known_;
};

json LearntJson(const FleetRecord::Learnt& learnt, WorkloadTexts* texts) {
  json written = {{"workload", texts->Of(learnt.workload)},
                  {"device", learnt.device},
                  {"state", OnlineRecordJson(learnt.state)}};
  if (learnt.facts) written["device_facts"] = FormatDevicePart(*learnt.facts);
  return written;
}

json JobJson(const FleetRecord::Job& job, WorkloadTexts* texts) {
  json written = LearntJson(job.learnt, texts);
  written["job"] = CheckedName(job.name, {"", 0, "job"});
  if (job.start) written["start"] = FormatCalibrationPart(*job.start, "start");
  return written;
}

// What many jobs have in common is the same text in each, and is read once.
template <class Value>
class KnownTexts {
 public:
  template <class Parse>
  const Value& Read(const std::string& text, const Parse& parse, const std::string& path) {
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    return known_.emplace(text, parse(text, path)).first->second;
  }

 private:
  std::map<std::string, Value> known_;
};

class FleetReader {
 public:
  FleetRecord::Learnt ReadLearnt(JsonMembers* members) {
    FleetRecord::Learnt learnt;
    learnt.workload =
        workloads_.Read(members->Text("workload"), ParseWorkloadPart, members->Place("workload"));
    learnt.device = members->Text("device");
    if (members->Has("device_facts")) {
      learnt.facts = devices_.Read(members->Text("device_facts"), ParseDevicePart,
                                   members->Place("device_facts"));
    }
    learnt.state =
        Within(members->Place("state"), [&] { return ReadOnlineRecord(members->Member("state")); });
    return learnt;
  }

  FleetRecord::Job ReadJob(JsonMembers* members) {
    FleetRecord::Job job;
    job.name = CheckedName(members->Text("job"), {"", 0, members->Place("job")});
    if (members->Has("start")) {
      job.start =
          starts_.Read(members->Text("start"), ParseCalibrationPart, members->Place("start"));
    }
    job.learnt = ReadLearnt(members);
    return job;
  }

 private:
  KnownTexts<Workload> workloads_;
  KnownTexts<Device> devices_;
  KnownTexts<Calibration> starts_;
};

// The objects of an array, as `read` makes them.
template <class Value, class Read>
std::vector<Value> ReadEach(const json& array, const char* name, const Read& read) {
  std::vector<Value> values;
  for (const json& object : array) {
    JsonMembers members(object, fmt::format("{}[{}]", name, values.size()));
    values.push_back(read(&members));
    members.Finish();
  }
  return values;
}

// Objects as one array, each written before the next is made.
template <class Value, class ToObject>
std::string ArrayText(const std::vector<Value>& values, const ToObject& to_object,
                      WorkloadTexts* texts) {
  std::string text = "[";
  for (const Value& value : values) {
    if (text.size() > 1) text += ',';
    text += to_object(value, texts).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return text + "]";
}

}  // namespace

std::string FormatFleetRecord(const FleetRecord& record) {
  const json cluster = record.cluster;
  WorkloadTexts texts;
  return fmt::format(R"({{"format":"{}","version":{},"cluster":{},"taught":)", kFleetFormat,
                     kFleetVersion, cluster.dump(-1, ' ', false, json::error_handler_t::replace)) +
         ArrayText(record.taught, LearntJson, &texts) +
         ",\"jobs\":" + ArrayText(record.jobs, JobJson, &texts) + "}";
}

FleetRecord ParseFleetRecord(const std::string& text) {
  // The fleet, its jobs, and one of them, whose state is a record.
  constexpr int kDeepest = 3 + kDeepestOnlineRecord;
  const json in = ParseStrictJson(text, kDeepest, {"", 0, "fleet"}, "what was saved of one");
  JsonMembers members(in, "");
  if (members.Text("format") != kFleetFormat) {
    RefuseMember("format", in.at("format").get<std::string>(), "is another", kFleetFormat);
  }
  if (members.Whole("version", -1e9, 1e9) != kFleetVersion) {
    RefuseMember("version", in.at("version").dump(), "is another", std::to_string(kFleetVersion));
  }
  FleetRecord record;
  record.cluster = members.Text("cluster");
  FleetReader reader;
  record.taught = ReadEach<FleetRecord::Learnt>(
      members.Array("taught"), "taught", [&](JsonMembers* of) { return reader.ReadLearnt(of); });
  record.jobs = ReadEach<FleetRecord::Job>(members.Array("jobs"), "jobs",
                                           [&](JsonMembers* of) { return reader.ReadJob(of); });
  members.Finish();
  return record;
}

}  // namespace stepcast
