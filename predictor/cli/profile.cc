// stepcast profile: what a profile holds, and what it says of a workload, layer by layer.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "data/io/compute_profile_file.h"
#include "data/plan/limits.h"
#include "data/record/point_samples.h"
#include "data/values/training_facts.h"
#include "predictor/cli/command.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/training_option.h"

namespace stepcast::cli {
namespace {

struct Contents {
  std::map<MeasuredPoint, PointSamples> points;
  // Points by kind of layer, or "update".
  std::map<std::string, int> kinds;
  std::set<int> batches;
  std::set<std::string> precisions;
  int measured = 0;
  int out_of_memory = 0;
  int unsupported = 0;
  int busy = 0;
  int throttled = 0;
  std::size_t samples = 0;
  std::size_t outliers = 0;
};

Contents ContentsOf(const ComputeProfile& profile) {
  Contents contents;
  for (const MeasuredSamples& samples : profile.samples) {
    contents.points[samples.point].Add(samples);
  }
  for (const auto& [point, samples] : contents.points) {
    contents.out_of_memory += samples.status() == PointStatus::kOutOfMemory ? 1 : 0;
    contents.unsupported += samples.status() == PointStatus::kUnsupported ? 1 : 0;
    if (!samples.measured()) continue;
    ++contents.measured;
    const bool update = point.pass == TrainingPass::kUpdate;
    const bool allocation = std::holds_alternative<AllocateOp>(point.operation);
    ++contents
          .kinds[update       ? "update"
                 : allocation ? "allocation"
                              : kLayerKindNames[static_cast<std::size_t>(KindOf(point.operation))]];
    if (!update && !allocation) {
      contents.batches.insert(point.batch);
      contents.precisions.insert(NameOf(point.precision));
    }
    contents.busy += samples.busy() ? 1 : 0;
    contents.throttled += samples.throttled() ? 1 : 0;
    contents.samples += samples.summary().count;
    contents.outliers += samples.summary().outliers;
  }
  return contents;
}

template <class List>
std::string JoinedList(const List& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

void PrintContents(const ComputeProfile& profile, const Contents& c) {
  const Style style = DetectStyle();
  Print(Heading(profile.device.name, style));
  Print(HangingLine("  device    ", JoinFacts(profile.device.facts)) +
        HangingLine("  back end  ", profile.backend + "; " + JoinFacts(profile.settings)) +
        HangingLine("  started   ", profile.started + ", stepcast " + profile.version) +
        HangingLine("  batches   ", JoinedList(c.batches)) +
        HangingLine("  precision ", JoinedList(c.precisions)));
  Table table({LeftColumn("operations"), "points"});
  for (const auto& [kind, count] : c.kinds) table.AddRow({kind, std::to_string(count)});
  table.AddRule();
  table.AddRow({"all", std::to_string(c.measured)});
  Print("\n" + table.Render(style, 2));
  Print(NoteLine(fmt::format("{} samples, {} of them outliers", FormatCount(c.samples), c.outliers),
                 style));
  const auto flag = [&](int count, const char* what) {
    if (count > 0) Print(FlagLine(fmt::format("{} points {}", count, what), style));
  };
  flag(c.busy, "were only measured while others used the device");
  flag(c.throttled, "were only measured while the device's clock was down");
  flag(c.out_of_memory, "do not fit the device's memory");
  flag(c.unsupported, "are unsupported by the back end");
}

Json ContentsJson(const ComputeProfile& profile, const Contents& c) {
  return {{"device",
           {{"name", profile.device.name},
            {"kind", profile.device.kind},
            {"facts", profile.device.facts}}},
          {"backend", profile.backend},
          {"settings", profile.settings},
          {"version", profile.version},
          {"started", profile.started},
          {"batches", c.batches},
          {"precisions", c.precisions},
          {"points", c.kinds},
          {"measured", c.measured},
          {"out_of_memory", c.out_of_memory},
          {"unsupported", c.unsupported},
          {"busy", c.busy},
          {"throttled", c.throttled},
          {"samples", c.samples},
          {"outliers", c.outliers}};
}

Json TimeJson(const OperationTime& time) {
  if (time.origin == TimeOrigin::kNone) return nullptr;
  return {{"seconds", time.time.si()},
          {"log_sd", time.log_sd},
          {"origin", kTimeOriginNames[static_cast<int>(time.origin)]}};
}

Json SumJson(const ProfiledCompute& compute, const ProfiledSum& sum, const Workload& workload,
             int batch) {
  Json layers = Json::array();
  for (const ProfiledLayer& layer : sum.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward", TimeJson(layer.forward)},
                      {"backward", TimeJson(layer.backward)},
                      {"update", TimeJson(layer.update)}});
  }
  return {{"workload", workload.name},
          {"local_batch", batch},
          {"forward_s", sum.forward.si()},
          {"backward_s", sum.backward.si()},
          {"update_s", sum.update.si()},
          {"host_s", sum.host.si()},
          {"host_update_s", sum.host_update.si()},
          {"allocation_s", sum.allocation.si()},
          {"micro_step_s", compute.MicroStep(batch).si()},
          {"log_sd", compute.LogSd(batch)},
          {"scaled_s", sum.scaled.si()},
          {"beyond_batches_s", sum.beyond.si()},
          {"layers", layers}};
}

// How well a layer is known: its worst origin.
std::string OriginOf(const ProfiledLayer& layer) {
  const TimeOrigin worst =
      std::max({layer.forward.origin, layer.backward.origin, layer.update.origin});
  return kTimeOriginNames[static_cast<int>(worst)];
}

void PrintSum(const ProfiledCompute& compute, const ProfiledSum& sum, const Workload& workload,
              int batch, bool each) {
  const Style style = DetectStyle();
  Print(Heading(fmt::format("{} at batch {}", workload.name, batch), style));
  const auto text = [](Duration<> time) {
    return time.si() > 0 ? FormatDuration(time) : std::string();
  };
  std::vector<TableColumn> columns = {LeftColumn(each ? "layer" : "layers"), "forward", "backward",
                                      "update"};
  columns.push_back(each ? LeftColumn("origin") : TableColumn("share"));
  Table table(columns);
  const Duration<> all = sum.forward + sum.backward + sum.update;
  if (each) {
    for (const ProfiledLayer& layer : sum.layers) {
      table.AddRow({layer.name, text(layer.forward.time), text(layer.backward.time),
                    text(layer.update.time), OriginOf(layer)});
    }
  } else {
    struct KindTotal {
      Duration<> forward;
      Duration<> backward;
      Duration<> update;
      int layers = 0;
    };
    std::map<std::string, KindTotal> kinds;
    for (const ProfiledLayer& layer : sum.layers) {
      KindTotal& kind = kinds[kLayerKindNames[static_cast<std::size_t>(layer.kind)]];
      kind.forward += layer.forward.time;
      kind.backward += layer.backward.time;
      kind.update += layer.update.time;
      ++kind.layers;
    }
    for (const auto& [name, kind] : kinds) {
      table.AddRow({fmt::format("{} {}", kind.layers, name), text(kind.forward),
                    text(kind.backward), text(kind.update),
                    FormatPercent((kind.forward + kind.backward + kind.update) / all)});
    }
  }
  table.AddRule();
  table.AddRow({"sum", text(sum.forward), text(sum.backward), text(sum.update), ""});
  Print(table.Render(style, 2));
  Print(NoteLine(
      fmt::format("The host adds {} of its own{}, {} a step with the update; {}. Micro-step {}, "
                  "update {}.",
                  FormatDuration(sum.host),
                  sum.allocation.si() > 0
                      ? " and " + FormatDuration(sum.allocation) + " for memory mapped anew"
                      : "",
                  FormatDuration(sum.host + sum.allocation + sum.host_update),
                  compute.runs_ahead() ? "it runs ahead of the device, so that the longer counts"
                                       : "it and the device work in turn",
                  FormatDuration(compute.MicroStep(batch)), FormatDuration(compute.Update())),
      style));
}

}  // namespace

int RunProfile(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("workload", OptionValue("W"), "show what its layers take")(
      "workload-file", OptionValues("F"), "workload file; may be repeated")(
      "local-batch", OptionValue("B"), "of the workload (the largest measured)")(
      "layers", "each layer, not their kinds")("json", "print one JSON object")("help",
                                                                                "print this text");
  AddTrainingOptions(&options);
  po::options_description all;
  all.add(options).add_options()("profile", po::value<std::string>());
  const Arguments args("profile", all, "profile", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast profile FILE [--workload W] [options]",
              "Shows what stepcast microbench measured of a device and, with a workload, what its\n"
              "layers take, one by one or by kind, and how they add up to a micro-step.",
              options,
              "  stepcast profile nvidia-h200.profile.jsonl\n"
              "  stepcast profile nvidia-h200.profile.jsonl --workload resnet50 --local-batch 32 "
              "--layers\n");
    return kDone;
  }
  if (!args.Has("profile")) {
    throw InputError({"", 0, "FILE"}, "", "is required", "a profile of stepcast microbench");
  }
  const auto require_workload = [&](const char* option) {
    if (!args.Has(option) || args.Has("workload")) return;
    throw InputError(OptionPlace(option), "", "is a choice of what to show of a workload",
                     "with --workload");
  };
  for (const char* option : {"layers", "local-batch", "workload-file"}) require_workload(option);
  for (const TrainingFact& fact : TrainingFacts()) require_workload(fact.key);
  const ComputeProfile profile = *ReadProfileOption(args);
  if (!args.Has("workload")) {
    const Contents contents = ContentsOf(profile);
    if (args.Has("json")) {
      PrintJson(ContentsJson(profile, contents));
    } else {
      PrintContents(profile, contents);
    }
    return kDone;
  }
  const Library library = LibraryOf(args);
  Workload workload = library.LoadWorkload(args.Text("workload"));
  ReadTrainingOptions(args, std::nullopt, "", &workload);
  const ProfiledCompute compute(profile, workload);
  const int batch =
      ReadInteger(args, "local-batch", 1, kMostBatch, static_cast<int>(compute.batches().back()));
  const ProfiledSum sum = compute.Sum(batch);
  if (args.Has("json")) {
    PrintJson(SumJson(compute, sum, workload, batch));
  } else {
    PrintSum(compute, sum, workload, batch, args.Has("layers"));
  }
  return kDone;
}

}  // namespace stepcast::cli
