#include "model/step/slow_ends.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>

#include "model/statistics/normal.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

using Transports = std::bitset<kTransportCount>;

// What sets the pace of bytes or samples, whether more of it makes a step slow, and whether it is a
// rate that a link may hide. The link of a plan's slowest host comes before the cluster's, which
// may be the same.
struct Pace {
  int column;
  bool slows = false;
  bool behind_link = false;
};
inline constexpr Pace kPaces[] = {{.column = kLinkColumn},
                                  {.column = kLinkBandwidth},
                                  {.column = kFlowBandwidth, .behind_link = true},
                                  {.column = kHostBandwidth, .behind_link = true},
                                  {.column = kHostSharing, .slows = true},
                                  {.column = kServerRate, .behind_link = true},
                                  {.column = kWorkloadColumn + kFixedTime, .slows = true},
                                  {.column = kWorkloadColumn + kFloorTime, .slows = true},
                                  {.column = kWorkloadColumn + kSampleTime, .slows = true}};

// Whether runs that exchanged like this tell it to a plan over this transport, to which links and
// flows belong.
bool IsToldBy(const CalibratedRange::Exchange& ran, int column, Transport over) {
  if (column == kHostBandwidth) return true;
  if (column == kServerRate) return UsesServers(ran.strategy);
  return column == kHostSharing ? ran.transport.has_value() : ran.transport == over;
}

// Whether runs were fitted that it could have held back. Where nobody says how they exchanged, all
// that left a node are taken to tell all.
bool IsTold(int column, const Belief& belief, Transport over) {
  if (IsWorkloadColumn(column)) {
    const ComputeBelief compute = belief.compute();
    const bool by_sheet =
        compute == ComputeBelief::kDataSheet || compute == ComputeBelief::kFromDevice;
    return by_sheet ? column == kWorkloadColumn + kSampleTime : compute != ComputeBelief::kPrior;
  }
  if (const auto& exchanges = belief.fitted_exchanges()) {
    return std::any_of(exchanges->begin(), exchanges->end(),
                       [&](const auto& ran) { return IsToldBy(ran, column, over); });
  }
  return belief.fitted_nodes() > 1 ||
         (column == kHostBandwidth && belief.fitted_devices_per_node() > 1);
}

// The transports for which it is.
Transports ToldOver(int column, const Belief& belief) {
  Transports told;
  for (std::size_t over = 0; over < told.size(); ++over) {
    told[over] = IsTold(column, belief, static_cast<Transport>(over));
  }
  return told;
}

// Moves parameters by these many times `along`, not beyond their plausible ranges.
PlanParameters Moved(PlanParameters values, const std::array<double, kPlanColumns>& along,
                     double times) {
  const auto move = [&](double* si, int column, const ParameterSpec& spec) {
    const double by = along[static_cast<std::size_t>(column)];
    if (by == 0) return;
    *si = std::clamp(*si * std::exp(times * by), spec.low * spec.si_per_unit,
                     spec.high * spec.si_per_unit);
  };
  for (std::size_t i = 0; i < values.cluster.si.size(); ++i) {
    move(&values.cluster.si[i], static_cast<int>(i), kClusterParameterSpecs[i]);
  }
  for (std::size_t i = 0; i < values.workload.si.size(); ++i) {
    move(&values.workload.si[i], kWorkloadColumn + static_cast<int>(i), kWorkloadParameterSpecs[i]);
  }
  if (values.cluster.node_link_si) {
    move(&*values.cluster.node_link_si, kLinkColumn, kClusterParameterSpecs[kLinkBandwidth]);
  }
  if (values.cluster.node_slowdown) {
    move(&*values.cluster.node_slowdown, kSlowdownColumn, kComputeSlowdownSpec);
  }
  return values;
}

}  // namespace

std::vector<SlowEnd> SlowEndsOf(const Belief& belief, const Belief::AtHosts& hosts) {
  std::vector<SlowEnd> all;
  for (const Pace& pace : kPaces) {
    const int at = hosts.Position(pace.column);
    if (pace.column == kLinkBandwidth && hosts.link == kLinkBandwidth) continue;
    const double log_sd = std::sqrt(belief.log_covariance()(at, at));
    if (log_sd == 0) continue;
    const auto add = [&](Transports over, std::optional<DataRate<>> told_to, double times) {
      SlowEnd& end = all.emplace_back();
      end.column = pace.column;
      end.over = over;
      end.told_to = told_to;
      end.sds = pace.slows ? times : -times;
      for (int column = 0; column < kShareColumn; ++column) {
        if (column == kSlowdownColumn && !hosts.slowdown) continue;
        end.along[static_cast<std::size_t>(column)] =
            belief.log_covariance()(hosts.Position(column), at) / log_sd;
      }
      end.parameters = Moved(belief.ParametersAt(hosts), end.along, end.sds);
    };
    const Transports told = ToldOver(pace.column, belief);
    if (!told.all()) add(~told, std::nullopt, kNinetyPercent);
    if (told.none() || !pace.behind_link || !belief.fitted_rates()) continue;
    const DataRate<> most = belief.fitted_rates()->max;
    const double hidden = (belief.log_value(at) - std::log(most.si())) / log_sd;
    if (hidden > 0) add(told, most, std::min(hidden, kNinetyPercent));
  }
  // A rate that the plan states is known as well as one that the cluster's file does.
  if (const Transports told = ToldOver(kShareColumn, belief); !told.all()) {
    SlowEnd& end = all.emplace_back();
    end.column = kShareColumn;
    end.sds = -kNinetyPercent;
    end.over = ~told;
    end.along[kShareColumn] = kStatedLinkLogSd;
    end.parameters = belief.ParametersAt(hosts);
    end.parameters.cluster.stated_share *= std::exp(end.sds * kStatedLinkLogSd);
  }
  return all;
}

bool SlowEnd::IsUntoldTo(const StepFacts& facts) const {
  if (told_to) {
    const auto is_beyond = [&](const LinkFacts& link) { return link.bandwidth > told_to; };
    const bool to_servers = facts.server.HasOwnLink(facts.servers);
    if (!is_beyond(facts.link) && !(to_servers && is_beyond(facts.server_link))) return false;
  }
  const bool rdma = internal::ExchangeLink(facts)->rdma();
  return over[static_cast<std::size_t>(rdma ? Transport::kRdma : Transport::kTcp)];
}

std::vector<SlowEnd> UntoldEndsOf(const Belief& belief, const Belief::AtHosts& hosts,
                                  const StepFacts& facts) {
  const ColumnSet matter = ColumnsThatMatter(facts, true);
  std::vector<SlowEnd> ends = SlowEndsOf(belief, hosts);
  std::erase_if(ends, [&](const SlowEnd& end) {
    return !matter[static_cast<std::size_t>(end.column)] || !end.IsUntoldTo(facts);
  });
  return ends;
}

double VarianceOfSlowEnds(const Belief& belief, const Belief::AtHosts& hosts,
                          const StepFacts& facts, const PlanGradient& gradient, Duration<> step) {
  WorstEnd worst;
  for (const SlowEnd& end : UntoldEndsOf(belief, hosts, facts)) {
    const double tangent =
        std::inner_product(gradient.begin(), gradient.end(), end.along.begin(), 0.0);
    const auto& [cluster, workload] = end.parameters;
    worst.Include(tangent, step, EvaluateStep(facts, cluster, workload).total());
  }
  return worst.variance();
}

void WorstEnd::Include(double tangent, Duration<> step, Duration<> slow) {
  tangent_ = std::max(tangent_, std::abs(tangent));
  reached_ = std::max(reached_, std::log(slow / step) / kNinetyPercent);
}

double WorstEnd::variance() const {
  return std::max(0.0, reached_ * reached_ - tangent_ * tangent_);
}

}  // namespace stepcast
