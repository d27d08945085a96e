#include "predictor/cli/probe_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "data/io/csv.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "predictor/cli/shapes.h"

namespace stepcast::cli {
namespace {

using script::WantedRun;
using script::WantedRuns;
using steps::Conditions;

constexpr const char* kReplicate = "replicate";
// Packets that netem loses on the sender are lost together, as long as TCP's pieces of them last.
constexpr const char* kBurst = "1";  // ms
constexpr int kMostReplicates = 1000;

std::string Number(double value) { return fmt::format("{:.10g}", value); }

// Where the column is, which is added where there is none.
std::size_t ColumnOf(const std::string& name, std::vector<std::string>* header) {
  const auto found = std::find(header->begin(), header->end(), name);
  if (found == header->end()) header->push_back(name);
  return static_cast<std::size_t>(std::find(header->begin(), header->end(), name) -
                                  header->begin());
}

}  // namespace

Conditions Design::hardest() const {
  Conditions all;
  for (const Conditions& cell : cells) {
    if (cell.bandwidth) all.bandwidth = cell.bandwidth;
    if (!all.rtt || cell.delays()) all.rtt = cell.rtt;
    if (!all.loss || cell.loses()) all.loss = cell.loss;
  }
  return all;
}

void AddShapeOptions(po::options_description* options) {
  options->add_options()(
      "shape", OptionValues("KEY=..."),
      "steps, collectives: conditions to set on the links by tc, each combination in turn: "
      "\"bandwidth=100 Mbit/s,1 Gbit/s; rtt=0 ms,10 ms; loss=0,0.01\"")(
      "shape-interface", OptionValue("I"),
      "the interface of this host that tc may shape meanwhile; all hosts need it")(
      "replicates", OptionValue("N"), "steps, collectives: how often each run is measured (1)")(
      "seed", OptionValue("N"), "with --shape: of the order of the conditions (by chance)");
}

std::string ReadShapedInterface(const Arguments& args) {
  if (!args.Has("shape-interface")) return "";
  const std::string name = args.Text("shape-interface");
  if (!steps::IsInterfaceName(name)) {
    throw InputError(OptionPlace("shape-interface"), name, "is no name of an interface",
                     "like eth0");
  }
  return name;
}

Design ReadDesign(const Arguments& args) {
  Design design;
  const InputPlace place = OptionPlace("replicates");
  design.counted = args.Has("replicates");
  if (design.counted) {
    design.replicates = ParseInteger(args.Text("replicates"), place, 1, kMostReplicates);
  }
  if (!args.Has("shape")) {
    for (const char* option : {"shape-interface", "seed"}) {
      if (!args.Has(option)) continue;
      throw InputError(OptionPlace(option), "", "has no meaning without --shape",
                       "with --shape \"bandwidth=...\"");
    }
    return design;
  }
  design.cells = ParseShapes(args.Texts("shape"), OptionPlace("shape"));
  design.interface = ReadShapedInterface(args);
  if (design.interface.empty()) {
    throw InputError(OptionPlace("shape-interface"), "", "is required with --shape",
                     "the interface by which the hosts meet, like eth0");
  }
  constexpr int kMost = std::numeric_limits<int>::max();
  design.seed = args.Has("seed") ? ParseInteger(args.Text("seed"), OptionPlace("seed"), 0, kMost)
                                 : static_cast<int>(std::random_device()() >> 1);
  // What this host cannot do should be known before the others come.
  try {
    steps::Shaper shaper(design.interface);
    if (const std::string why = shaper.WhyNot(design.hardest()); !why.empty()) {
      throw InputError(OptionPlace("shape"), "", why);
    }
  } catch (const network::NetworkError& e) {
    throw InputError(OptionPlace("shape"), "", e.what());
  }
  return design;
}

DesignedRuns Spread(const WantedRuns& wanted, const Design& design) {
  DesignedRuns out;
  if (!design.shapes() && !design.counted) {
    out.wanted = wanted;
    out.conditions.resize(wanted.runs.size());
    return out;
  }
  std::vector<std::string> header = wanted.header;
  const Conditions hardest = design.hardest();
  const auto column_of = [&](const char* flag) {
    return ColumnOf(FindPlanField(flag)->column, &header);
  };
  std::optional<std::size_t> bandwidth;
  std::optional<std::size_t> rtt;
  std::optional<std::size_t> loss;
  std::optional<std::size_t> burst;
  if (hardest.bandwidth) bandwidth = column_of("bandwidth");
  if (hardest.rtt) rtt = column_of("rtt");
  if (hardest.loss) loss = column_of("loss");
  if (hardest.loss.value_or(0) > 0) burst = column_of("loss-burst");
  const std::size_t replicate = ColumnOf(kReplicate, &header);
  for (const WantedRun& run : wanted.runs) {
    for (const auto& column : {bandwidth, rtt, loss, burst, std::optional(replicate)}) {
      if (!column || *column >= run.fields.size() || Trim(run.fields[*column]).empty()) continue;
      throw InputError({run.run.place.file, run.run.place.line, header[*column]},
                       run.fields[*column], "is set by --shape or --replicates", "an empty cell");
    }
  }
  std::vector<std::optional<Conditions>> cells(design.cells.begin(), design.cells.end());
  if (cells.empty()) cells.emplace_back();
  const std::size_t count =
      wanted.runs.size() * cells.size() * static_cast<std::size_t>(design.replicates);
  if (count > kMostDesignedRuns) {
    throw InputError(OptionPlace(design.shapes() ? "shape" : "replicates"), "",
                     fmt::format("makes {} runs", count),
                     fmt::format("at most {}", kMostDesignedRuns));
  }
  std::mt19937 random(static_cast<std::mt19937::result_type>(design.seed));
  std::string text = CsvLine(header);
  std::vector<const WantedRun*> origins;
  for (int r = 1; r <= design.replicates; ++r) {
    // The same order wherever the seed is the same, which std::shuffle does not promise.
    for (std::size_t i = cells.size(); i > 1; --i) std::swap(cells[i - 1], cells[random() % i]);
    for (const std::optional<Conditions>& cell : cells) {
      for (const WantedRun& run : wanted.runs) {
        std::vector<std::string> fields = run.fields;
        fields.resize(header.size());
        if (bandwidth) fields[*bandwidth] = Number(cell->bandwidth->in(kGigabitsPerSecond));
        if (rtt) fields[*rtt] = Number(cell->rtt->in(kMilliseconds));
        if (loss) fields[*loss] = Number(*cell->loss);
        if (cell && cell->loses()) fields[*burst] = kBurst;
        fields[replicate] = std::to_string(r);
        text += CsvLine(fields);
        origins.push_back(&run);
        out.conditions.push_back(cell);
      }
    }
  }
  out.wanted = script::ParseWantedRuns(text, wanted.runs.front().run.place.file);
  for (std::size_t i = 0; i < origins.size(); ++i) {
    out.wanted.runs[i].run.place = origins[i]->run.place;
  }
  return out;
}

std::vector<std::string> FlagsOf(const DesignedRuns& runs,
                                 const std::set<std::string>& sending_only) {
  if (sending_only.empty()) return {};
  for (std::size_t i = 0; i < runs.conditions.size(); ++i) {
    const Plan& plan = runs.wanted.runs[i].run.plan;
    const auto& conditions = runs.conditions[i];
    if (!conditions || !conditions->bandwidth || !UsesServers(plan.strategy)) continue;
    if (plan.workers() <= plan.servers) continue;
    return {
        fmt::format("{} can set a bandwidth on what is sent only (no ifb, u32 or mirred in the "
                    "kernel, or another ingress queue): where more workers than servers push, the "
                    "servers take in more than it; a forecast has it both ways",
                    fmt::join(sending_only, ", "))};
  }
  return {};
}

Json DesignJson(const Design& design, const std::set<std::string>& sending_only) {
  Json cells = Json::array();
  for (const Conditions& cell : design.cells) {
    const auto si = [](const auto& value) { return value ? Json(value->si()) : Json(nullptr); };
    cells.push_back({{"bandwidth_bytes_per_s", si(cell.bandwidth)},
                     {"rtt_s", si(cell.rtt)},
                     {"loss_rate", OptionalJson(cell.loss)}});
  }
  return {{"interface", design.interface},
          {"seed", design.seed},
          {"replicates", design.replicates},
          {"sending_only", sending_only},
          {"cells", cells}};
}

}  // namespace stepcast::cli
