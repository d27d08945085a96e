// Built where libpcap is.
#ifdef STEPCAST_HAS_PCAP
#include "predictor/cli/import_pcap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "data/io/csv.h"
#include "data/io/text_file.h"
#include "data/io/training_steps_file.h"
#include "data/pcap/import_pcap.h"
#include "data/pcap/traffic_summary.h"
#include "data/plan/fields.h"
#include "data/record/quantile.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kShownFlows = 10;
constexpr std::size_t kMostInMatrix = 16;

// ---- What the model counts.

// Payload a step [bytes], as far as the model tells it for hosts.
struct ModelCount {
  Prediction prediction;
  Plan plan;
  std::optional<double> host;    // sent by a host with workers
  std::optional<double> server;  // sent by a host with a server alone
  std::optional<double> flow;    // of a flow that carries the model
  std::optional<double> all;     // sent by all hosts
};

ModelCount CountOf(const Prediction& prediction, const Plan& plan) {
  ModelCount count{prediction, plan, {}, {}, {}, {}};
  const Traffic& t = prediction.traffic;
  const StrategyTraits& traits = TraitsOf(prediction.algorithm);
  const bool one_device = plan.nodes() == plan.workers();
  // A ring leaves each node once, however many devices it passes there.
  if (one_device || traits.ring) count.host = t.per_worker.si();
  if (traits.ring) count.flow = t.per_worker.si();
  if (one_device && !traits.asynchronous()) count.all = t.total.si();
  if (!traits.may_have_servers() || plan.servers == 0 || !one_device) return count;
  if (traits.servers) count.flow = t.gradient.si() / plan.servers;
  if (!plan.server.colocated) {
    if (t.server_out) count.server = t.server_out->si();
  } else if (plan.servers == plan.nodes() && t.server_out) {
    *count.host += t.server_out->si();
  } else {
    count.host.reset();
  }
  return count;
}

std::optional<ModelCount> ReadModel(const Arguments& args) {
  po::options_description asked;
  AddTargetOptions(&asked);
  AddPlanOptions(&asked);
  if (std::none_of(asked.options().begin(), asked.options().end(),
                   [&](const auto& option) { return args.Has(option->long_name()); })) {
    return std::nullopt;
  }
  const Target target = ReadTarget(args);
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  return CountOf(target.MakePredictor().Predict(plan), plan);
}

// Hosts of servers alone: as many as the plan has beside its nodes, those that send the most.
std::vector<bool> ServerHosts(const TrafficSummary& summary, const ModelCount& model) {
  std::vector<bool> servers(summary.hosts.size(), false);
  const auto wanted = static_cast<std::size_t>(model.plan.servers);
  if (!model.server ||
      summary.hosts.size() != static_cast<std::size_t>(model.plan.nodes()) + wanted) {
    return servers;
  }
  std::vector<std::size_t> order(summary.hosts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool more = *model.server > model.host.value_or(0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return more ? summary.hosts[a].bytes > summary.hosts[b].bytes
                : summary.hosts[a].bytes < summary.hosts[b].bytes;
  });
  for (std::size_t i = 0; i < wanted; ++i) servers[order[i]] = true;
  return servers;
}

// ---- As text.

std::string SizeText(double bytes) { return FormatSize(Bytes(bytes)); }
std::string ShareText(double part, double whole) {
  return whole > 0 ? FormatPercent(part / whole) : "-";
}
std::string TimeText(double seconds) { return FormatDuration(Seconds(seconds)); }
std::string OffText(double measured, double model) {
  return model > 0 ? fmt::format("{:+.2f} %", 100 * (measured / model - 1)) : "-";
}

std::vector<std::string> CountCells(const TrafficCount& count, const TrafficCount& all) {
  return {FormatCount(count.packets),
          ShareText(static_cast<double>(count.packets), static_cast<double>(all.packets)),
          SizeText(static_cast<double>(count.bytes)),
          ShareText(static_cast<double>(count.bytes), static_cast<double>(all.bytes))};
}

std::vector<std::string> Row(std::vector<std::string> cells, const std::vector<std::string>& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

std::string CapturesTable(const CapturedTraffic& traffic, const Style& style) {
  Table table({LeftColumn("capture"), LeftColumn("of"), LeftColumn("address"), "packets", "lasts",
               "not of a flow"});
  for (const Capture& c : traffic.captures) {
    table.AddRow({c.path, c.host.empty() ? "-" : c.host, c.address.empty() ? "-" : c.address,
                  FormatCount(c.packets),
                  TimeText(static_cast<double>(c.end_ns - c.begin_ns) * 1e-9),
                  FormatCount(c.others + c.cut_short + c.broken)});
  }
  return table.Render(style, 2);
}

std::string PeriodsTable(const TrafficSummary& summary, const Style& style) {
  Table table({LeftColumn(""), "packets", "", "payload", ""});
  const TrafficPeriods& p = summary.periods;
  TrafficCount known;
  const std::pair<const char*, const TrafficCount*> rows[] = {{"before the first step", &p.before},
                                                              {"in steps", &p.during},
                                                              {"between steps", &p.between},
                                                              {"after the last step", &p.after}};
  for (const auto& [name, count] : rows) {
    table.AddRow(Row({name}, CountCells(*count, summary.all)));
    known += *count;
  }
  const TrafficCount others{summary.all.packets - known.packets, summary.all.bytes - known.bytes};
  if (others.packets > 0) {
    table.AddRow(Row({"of hosts without steps"}, CountCells(others, summary.all)));
  }
  return table.Render(style, 2);
}

std::string ClassesTable(const TrafficSummary& summary, const Style& style) {
  Table table({LeftColumn("class"), "flows", "packets", "", "payload", ""});
  for (int i = 0; i < kFlowClassCount; ++i) {
    const ClassTraffic& own = summary.classes[static_cast<std::size_t>(i)];
    table.AddRow(
        Row({kFlowClassNames[i], FormatCount(own.flows)}, CountCells(own.count, summary.all)));
  }
  return table.Render(style, 2);
}

double MedianStep(const CapturedFlow& flow) {
  Sample sample;
  for (const StepTraffic& step : flow.steps)
    sample.push_back(static_cast<double>(step.count.bytes));
  std::sort(sample.begin(), sample.end());
  return sample.empty() ? 0 : Quantile(sample, 0.5);
}

std::string EndText(const CapturedTraffic& traffic, const std::string& address, int port,
                    const std::optional<std::size_t>& host) {
  const std::string name = host ? traffic.hosts[*host].name : address;
  return name.find(':') == std::string::npos ? fmt::format("{}:{}", name, port)
                                             : fmt::format("[{}]:{}", name, port);
}

std::string FlowsTable(const CapturedTraffic& traffic, bool all, const Style& style) {
  Table table({LeftColumn("from"), LeftColumn("to"), LeftColumn("class"), LeftColumn("began"),
               LeftColumn("ended"), "packets", "payload", "a step", "steps", "sent again",
               "not captured"});
  const std::size_t shown =
      all ? traffic.flows.size() : std::min(kShownFlows, traffic.flows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const CapturedFlow& f = traffic.flows[i];
    const std::string udp = f.tcp ? "" : "UDP";
    table.AddRow({EndText(traffic, f.from, f.from_port, f.from_host),
                  EndText(traffic, f.to, f.to_port, f.to_host),
                  kFlowClassNames[static_cast<int>(f.size)],
                  f.tcp ? (f.opened ? "SYN" : "earlier") : udp,
                  f.tcp ? (f.reset    ? "RST"
                           : f.closed ? "FIN"
                                      : "later")
                        : udp,
                  FormatCount(f.all.packets), SizeText(static_cast<double>(f.all.bytes)),
                  f.steps.empty() ? "-" : SizeText(MedianStep(f)), FormatCount(f.steps.size()),
                  SizeText(static_cast<double>(f.repeated_bytes)),
                  SizeText(static_cast<double>(f.missing_bytes))});
  }
  return table.Render(style, 2);
}

struct NamedSample {
  const char* name;
  const char* key;
  const Sample* sample;
  bool is_time;
};
std::vector<NamedSample> SamplesOf(const TrafficSummary& s) {
  return {{"step", "step_time_s", &s.step_s, true},
          {"a flow", "flow_bytes", &s.flow_bytes, false},
          {"a large flow in a step", "large_flow_step_bytes", &s.large_flow_step_bytes, false},
          {"sent by a host in a step", "host_step_bytes", &s.host_step_bytes, false},
          {"between hosts in a step", "step_bytes", &s.step_bytes, false}};
}
constexpr double kShares[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};

std::string DistributionsTable(const TrafficSummary& summary, const Style& style) {
  Table table({LeftColumn("distribution of"), "values", "least", "5 %", "25 %", "half", "75 %",
               "95 %", "most"});
  for (const NamedSample& named : SamplesOf(summary)) {
    if (named.sample->empty()) continue;
    std::vector<std::string> cells = {named.name, FormatCount(named.sample->size())};
    for (const double share : kShares) {
      const double value = Quantile(*named.sample, share);
      cells.push_back(named.is_time ? TimeText(value) : SizeText(value));
    }
    table.AddRow(cells);
  }
  return table.Render(style, 2);
}

std::string RingText(const CapturedTraffic& traffic, const RingOrder& ring) {
  std::string text;
  for (const std::size_t host : ring.hosts) text += traffic.hosts[host].name + " -> ";
  return text + traffic.hosts[ring.hosts.front()].name;
}

std::string MatrixTable(const CapturedTraffic& traffic, const TrafficSummary& summary,
                        const Style& style) {
  std::vector<TableColumn> columns = {LeftColumn("from \\ to")};
  for (const CapturedHost& host : traffic.hosts) columns.emplace_back(host.name);
  Table table(columns);
  for (std::size_t i = 0; i < traffic.hosts.size(); ++i) {
    std::vector<std::string> cells = {traffic.hosts[i].name};
    for (const double bytes : summary.between[i]) cells.push_back(bytes > 0 ? SizeText(bytes) : "");
    table.AddRow(cells);
  }
  return table.Render(style, 2);
}

std::string HostsTable(const CapturedTraffic& traffic, const TrafficSummary& summary,
                       const std::optional<ModelCount>& model, const Style& style) {
  std::vector<TableColumn> columns = {
      LeftColumn("host"), "steps", "sent a step", "from", "to", "busy"};
  if (traffic.knows_compute) columns.emplace_back("while computing");
  if (model) {
    columns.emplace_back("model's count");
    columns.emplace_back("");
  }
  Table table(columns);
  const std::vector<bool> servers =
      model ? ServerHosts(summary, *model) : std::vector<bool>(summary.hosts.size(), false);
  for (std::size_t i = 0; i < traffic.hosts.size(); ++i) {
    const HostSummary& host = summary.hosts[i];
    const bool any = host.steps > 0;
    std::vector<std::string> cells = {traffic.hosts[i].name,
                                      FormatCount(host.steps),
                                      any ? SizeText(host.bytes) : "-",
                                      any ? TimeText(host.first_s) : "-",
                                      any ? TimeText(host.last_s) : "-",
                                      any ? TimeText(host.busy_s) : "-"};
    if (traffic.knows_compute) cells.push_back(any ? FormatPercent(host.hidden) : "-");
    if (model) {
      const std::optional<double> count = servers[i] ? model->server : model->host;
      cells.push_back(count ? SizeText(*count) : "-");
      cells.push_back(count && any ? OffText(host.bytes, *count) : "-");
    }
    table.AddRow(cells);
  }
  return table.Render(style, 2);
}

std::optional<double> Median(const Sample& sample) {
  if (sample.empty()) return std::nullopt;
  return Quantile(sample, 0.5);
}
// Share of the synchronisation that the model hides behind compute.
std::optional<double> ModelHidden(const ModelCount& model) {
  const StepTime<double>& b = model.prediction.breakdown;
  if (b.synchronisation.si() <= 0 || TraitsOf(model.plan.strategy).asynchronous()) {
    return std::nullopt;
  }
  constexpr double kRounding = 1e-12;
  const double hidden = (b.synchronisation - b.exposed()).si() / b.synchronisation.si();
  return hidden < kRounding ? 0 : hidden;
}

std::string ModelTable(const TrafficSummary& summary, const ModelCount& model, const Style& style) {
  Table table({LeftColumn("median of the steps"), "captured", "model", "captured / model - 1"});
  const auto row = [&](const char* name, std::optional<double> captured,
                       std::optional<double> counted, const auto& text) {
    table.AddRow({name, captured ? text(*captured) : "-", counted ? text(*counted) : "-",
                  captured && counted ? OffText(*captured, *counted) : "-"});
  };
  row("a large flow", Median(summary.large_flow_step_bytes), model.flow, SizeText);
  row("between all hosts", Median(summary.step_bytes), model.all, SizeText);
  row("step time", Median(summary.step_s), model.prediction.p50.si(), TimeText);
  row("sent while computing", summary.hidden, ModelHidden(model), FormatPercent);
  return table.Render(style, 2);
}

void PrintTraffic(const CapturedTraffic& traffic, const TrafficSummary& summary,
                  const std::optional<ModelCount>& model, bool all_flows) {
  const Style style = DetectStyle();
  const int width = TerminalWidth();
  std::string title = fmt::format(
      "Traffic of {} hosts: {} of payload in {} packets", traffic.hosts.size(),
      SizeText(static_cast<double>(summary.all.bytes)), FormatCount(summary.all.packets));
  if (summary.steps > 0) {
    title += fmt::format(", {} steps", FormatCount(summary.steps));
  }
  std::string out = Heading(title, style) + CapturesTable(traffic, style);
  if (summary.steps > 0) out += "\n" + PeriodsTable(summary, style);
  out += "\n" + ClassesTable(summary, style) + "\n" + FlowsTable(traffic, all_flows, style);
  if (!all_flows && traffic.flows.size() > kShownFlows) {
    out += NoteLine(fmt::format("and {} flows more: --flows shows them",
                                FormatCount(traffic.flows.size() - kShownFlows)),
                    style, width);
  }
  out += "\n" + DistributionsTable(summary, style);
  if (traffic.hosts.size() <= kMostInMatrix && traffic.hosts.size() > 1) {
    out += "\n" + MatrixTable(traffic, summary, style);
  }
  if (summary.ring) {
    out +=
        NoteLine(fmt::format("ring: {}, with {} of what these hosts send",
                             RingText(traffic, *summary.ring), FormatPercent(summary.ring->share)),
                 style, width);
  } else {
    out += NoteLine(
        "no ring: following the host to which each sends most does not come back with "
        "nine tenths of what they send",
        style, width);
  }
  if (summary.steps > 0) out += "\n" + HostsTable(traffic, summary, model, style);
  if (model) {
    out += "\n" + ModelTable(summary, *model, style);
    for (const std::string& flag : model->prediction.flags) out += FlagLine(flag, style, width);
  }
  for (const Capture& c : traffic.captures) {
    const auto flag = [&](const std::string& text) {
      out += FlagLine(c.path + ": " + text, style, width);
    };
    if (c.truncated) {
      flag(fmt::format("the file ends within packet {}; what is before it was read",
                       FormatCount(c.packets + 1)));
    }
    if (c.cut_short > 0) {
      flag(fmt::format("of {} packets too little was kept to tell their flow (tcpdump -s 150)",
                       FormatCount(c.cut_short)));
    }
    if (c.broken > 0) {
      flag(
          fmt::format("{} packets have headers that contradict themselves, the first of them "
                      "packet {}",
                      FormatCount(c.broken), FormatCount(c.first_broken)));
    }
  }
  Print(out);
}

// ---- As JSON.

Json PacketsJson(const TrafficCount& count) {
  return {{"packets", count.packets}, {"payload_bytes", count.bytes}};
}

Json CapturesJson(const CapturedTraffic& traffic) {
  Json captures = Json::array();
  for (const Capture& c : traffic.captures) {
    captures.push_back({{"file", c.path},
                        {"host", c.host},
                        {"address", c.address},
                        {"packets", c.packets},
                        {"duration_s", static_cast<double>(c.end_ns - c.begin_ns) * 1e-9},
                        {"truncated", c.truncated},
                        {"other_packets", c.others},
                        {"short_packets", c.cut_short},
                        {"broken_packets", c.broken}});
  }
  return captures;
}

Json ClassesJson(const TrafficSummary& summary) {
  Json classes = Json::object();
  for (int i = 0; i < kFlowClassCount; ++i) {
    const ClassTraffic& own = summary.classes[static_cast<std::size_t>(i)];
    classes[kFlowClassNames[i]] = {
        {"flows", own.flows}, {"packets", own.count.packets}, {"payload_bytes", own.count.bytes}};
  }
  return classes;
}

Json FlowsJson(const CapturedTraffic& traffic) {
  Json flows = Json::array();
  for (const CapturedFlow& f : traffic.flows) {
    const auto name = [&](const std::optional<std::size_t>& host) {
      return host ? Json(traffic.hosts[*host].name) : Json(nullptr);
    };
    flows.push_back({{"from", f.from},
                     {"from_port", f.from_port},
                     {"from_host", name(f.from_host)},
                     {"to", f.to},
                     {"to_port", f.to_port},
                     {"to_host", name(f.to_host)},
                     {"protocol", f.tcp ? "tcp" : "udp"},
                     {"class", kFlowClassNames[static_cast<int>(f.size)]},
                     {"opened", f.opened},
                     {"closed", f.closed},
                     {"reset", f.reset},
                     {"duration_s", static_cast<double>(f.end_ns - f.begin_ns) * 1e-9},
                     {"packets", f.all.packets},
                     {"payload_bytes", f.all.bytes},
                     {"payload_in_steps_bytes", f.periods.during.bytes},
                     {"steps", f.steps.size()},
                     {"median_step_bytes", f.steps.empty() ? Json(nullptr) : Json(MedianStep(f))},
                     {"repeated_bytes", f.repeated_bytes},
                     {"missing_bytes", f.missing_bytes}});
  }
  return flows;
}

Json DistributionsJson(const TrafficSummary& summary) {
  Json distributions = Json::object();
  for (const NamedSample& named : SamplesOf(summary)) {
    Json cdf = Json::array();
    constexpr int kPoints = 20;
    for (int i = 0; i <= kPoints && !named.sample->empty(); ++i) {
      const double share = static_cast<double>(i) / kPoints;
      cdf.push_back({share, Quantile(*named.sample, share)});
    }
    distributions[named.key] = {{"values", named.sample->size()}, {"cdf", cdf}};
  }
  return distributions;
}

Json HostStepsJson(const CapturedHost& host, bool knows_compute) {
  Json steps = Json::array();
  for (const HostStepTraffic& s : host.steps) {
    steps.push_back(
        {{"step", s.step},
         {"step_time_s", s.step_s},
         {"sent_bytes", s.bytes},
         {"first_s", s.first_s},
         {"last_s", s.last_s},
         {"busy_s", s.busy_s},
         {"busy_in_compute_s", knows_compute ? Json(s.busy_in_compute_s) : Json(nullptr)}});
  }
  return steps;
}

Json HostsJson(const CapturedTraffic& traffic, const TrafficSummary& summary,
               const std::optional<ModelCount>& model) {
  const std::vector<bool> servers =
      model ? ServerHosts(summary, *model) : std::vector<bool>(summary.hosts.size(), false);
  Json hosts = Json::array();
  for (std::size_t i = 0; i < traffic.hosts.size(); ++i) {
    const HostSummary& h = summary.hosts[i];
    Json to = Json::array();
    for (std::size_t k = 0; k < traffic.hosts.size(); ++k) {
      if (summary.between[i][k] == 0) continue;
      to.push_back(
          {{"host", traffic.hosts[k].name}, {"payload_bytes", CountJson(summary.between[i][k])}});
    }
    Json host = {{"name", traffic.hosts[i].name},
                 {"addresses", traffic.hosts[i].addresses},
                 {"sent_bytes", h.steps > 0 ? Json(h.bytes) : Json(nullptr)},
                 {"to", to},
                 {"steps", HostStepsJson(traffic.hosts[i], traffic.knows_compute)}};
    if (model) host["model_bytes"] = NumberJson(servers[i] ? model->server : model->host);
    hosts.push_back(host);
  }
  return hosts;
}

Json RingJson(const CapturedTraffic& traffic, const TrafficSummary& summary) {
  if (!summary.ring) return nullptr;
  Json order = Json::array();
  for (const std::size_t host : summary.ring->hosts) order.push_back(traffic.hosts[host].name);
  return {{"order", order}, {"share", summary.ring->share}};
}

Json TrafficJson(const CapturedTraffic& traffic, const TrafficSummary& summary,
                 const std::optional<ModelCount>& model) {
  const TrafficPeriods& p = summary.periods;
  Json json = {{"captures", CapturesJson(traffic)},
               {"packets", summary.all.packets},
               {"payload_bytes", summary.all.bytes},
               {"steps", summary.steps},
               {"periods",
                {{"before", PacketsJson(p.before)},
                 {"in_steps", PacketsJson(p.during)},
                 {"between", PacketsJson(p.between)},
                 {"after", PacketsJson(p.after)}}},
               {"classes", ClassesJson(summary)},
               {"distributions", DistributionsJson(summary)},
               {"ring", RingJson(traffic, summary)},
               {"hidden_share", NumberJson(summary.hidden)},
               {"hosts", HostsJson(traffic, summary, model)},
               {"flows", FlowsJson(traffic)}};
  if (model) {
    json["model"] = {{"flow_bytes", NumberJson(model->flow)},
                     {"step_bytes", NumberJson(model->all)},
                     {"p50_s", model->prediction.p50.si()},
                     {"hidden_share", NumberJson(ModelHidden(*model))},
                     {"flags", model->prediction.flags}};
  }
  return json;
}

// ---- By flow and step.

std::string StepsCsv(const CapturedTraffic& traffic) {
  std::string out = "from,from_port,to,to_port,protocol,class,step,packets,payload_bytes\n";
  for (const CapturedFlow& f : traffic.flows) {
    for (const StepTraffic& step : f.steps) {
      out += fmt::format("{},{},{},{},{},{},{},{},{}\n", f.from, f.from_port, f.to, f.to_port,
                         f.tcp ? "tcp" : "udp", kFlowClassNames[static_cast<int>(f.size)],
                         step.step, step.count.packets, step.count.bytes);
    }
  }
  return out;
}

// "HOST=A,..." of each --address.
std::map<std::string, std::string> ReadAddresses(const Arguments& args) {
  std::map<std::string, std::string> names;
  const InputPlace place = OptionPlace("address");
  for (const std::string& text : args.Texts("address")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw InputError(place, text, "names no host", "HOST=A,...");
    const std::string host = CheckedName(text.substr(0, equals), place);
    std::istringstream parts(text.substr(equals + 1));
    for (std::string address; std::getline(parts, address, ',');) {
      if (!names.emplace(address, host).second) {
        throw InputError(place, address, "is given twice", "each address once");
      }
    }
  }
  return names;
}

}  // namespace

int ImportTraffic(const Arguments& args, const std::vector<std::string>& files) {
  const std::optional<ModelCount> model = ReadModel(args);
  std::vector<HostSteps> steps;
  if (args.Has("steps")) steps = ReadTrainingSteps(args.Text("steps"));
  if (args.Has("output") && steps.empty()) {
    throw InputError(OptionPlace("steps"), "", "is required with --output",
                     "a file of when steps began and ended");
  }
  std::vector<CaptureFile> captures;
  for (const std::string& file : files) captures.push_back(ParseCaptureFile(file, steps));
  PcapOptions options;
  if (args.Has("filter")) options.filter = args.Text("filter");
  options.addresses = ReadAddresses(args);
  if (model) {
    const StepTime<double>& b = model->prediction.breakdown;
    const Duration<> compute = b.forward + b.backward;
    if (compute.si() > 0) options.compute_s = compute.si();
  }
  const CapturedTraffic traffic = ImportPcap(captures, std::move(steps), options);
  const TrafficSummary summary = Summarise(traffic);
  if (args.Has("output")) WriteTextFile(args.Text("output"), StepsCsv(traffic));
  if (args.Has("json")) {
    PrintJson(TrafficJson(traffic, summary, model));
  } else {
    PrintTraffic(traffic, summary, model, args.Has("flows"));
    if (args.Has("output")) {
      Print(NoteLine("flows by step: " + args.Text("output"), DetectStyle()));
    }
  }
  return kDone;
}

}  // namespace stepcast::cli
#endif  // STEPCAST_HAS_PCAP
