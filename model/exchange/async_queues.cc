#include "model/exchange/async_queues.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace stepcast {
namespace internal {

namespace {

// G and U from 0 customers on, but for a factor that all share, for demands of at most 1.
class NormalisingConstants {
 public:
  // Set writes the rest before it is read.
  NormalisingConstants() {  // NOLINT(cppcoreguidelines-pro-type-member-init): time counts here
    std::fill_n(g_, kBefore, 0.0);
    std::fill_n(u_, kBefore, 0.0);
  }
  // Up to `customers`. With one more station of demand d, G(n) is G(n) + d G(n-1).
  void Set(double link, double update, double think, int customers) {
    double power = 0x1p-990;  // Z^n / n!, from where neither 1 nor 1e18^32 is out of range
    double in = 0.0;
    double out = 0.0;
    double g = 0.0;
    double u = 0.0;
    for (int n = 0; n <= customers; ++n) {
      in = power + link * in;
      out = in + link * out;
      g = out + update * g;
      u = g + update * u;
      g_[kBefore + n] = g;
      u_[kBefore + n] = u;
      power *= think * kInverses[n];
    }
  }
  // Zero for less than no customers.
  double g(int customers) const { return g_[kBefore + customers]; }
  double u(int customers) const { return u_[kBefore + customers]; }

 private:
  static constexpr int kBefore = 6;  // of which a series asks for five
  static constexpr int kRoom = kExactCustomers + 1;
  // 1 / (n+1): divisions would stand one behind the other.
  static constexpr std::array<double, kRoom> kInverses = [] {
    std::array<double, kRoom> inverses{};
    for (std::size_t n = 0; n < kRoom; ++n) inverses[n] = 1.0 / static_cast<double>(n + 1);
    return inverses;
  }();

  double g_[kBefore + kRoom];
  double u_[kBefore + kRoom];
};

// The queues of so many customers by their think time, for demands of at most 1: from X and Q_u as
// power series around a think time nearby.
class QueueSeries {
 public:
  struct Queues {
    double link = 0.0;  // at each of the two
    double update = 0.0;
    double link_slope = 0.0;  // by the think time
    double update_slope = 0.0;
  };

  QueueSeries(double link, double update, int customers)
      : link_(link), update_(update), customers_(customers) {}

  // Where the last expansion reaches, from that.
  Queues At(double think) {
    const double step = think - centre_;
    constexpr double kReach = 1e-3;  // its power of kDegree + 1 is rounding
    if (!(std::abs(step) * coefficients_[0][0] <= kReach)) return Expand(think);
    Two value = coefficients_[kDegree];
    Two slope = {0.0, 0.0};
    for (int j = kDegree - 1; j >= 0; --j) {
      slope = slope * step + value;
      value = value * step + coefficients_[j];
    }
    return Make(think, value, slope);
  }

 private:
  using Two = Lanes<2>::Two;
  static constexpr int kDegree = 4;
  static constexpr double kInverseFactorials[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24};

  // X G = dG/dZ and Q_u G = D_u U, as power series.
  Queues Expand(double think) {
    centre_ = think;
    constants_.Set(link_, update_, think, customers_);
    const double inverse = 1.0 / constants_.g(customers_);
    double g[kDegree + 1];
    for (int j = 0; j <= kDegree; ++j) {
      const double factor = inverse * kInverseFactorials[j];
      const int left = customers_ - 1 - j;
      g[j] = constants_.g(left + 1) * factor;
      coefficients_[j] = Two{constants_.g(left), update_ * constants_.u(left)} * factor;
      for (int i = 0; i < j; ++i) coefficients_[j] -= coefficients_[i] * g[j - i];
    }
    return Make(think, coefficients_[0], coefficients_[1]);
  }
  // A worker that neither thinks nor waits for an update is at a link.
  Queues Make(double think, const Two& value, const Two& slope) const {
    return {0.5 * (customers_ - think * value[0] - value[1]), value[1],
            -0.5 * (value[0] + think * slope[0] + slope[1]), slope[1]};
  }

  double link_;
  double update_;
  int customers_;
  double centre_ = 0.0;
  Two coefficients_[kDegree + 1] = {{std::numeric_limits<double>::infinity(), 0.0}};
  NormalisingConstants constants_;
};

// A station beside the fullest, by its s = D_i / D: R = D_i (1 + Q/h) / ((1 - s) + s y).
template <class T>
struct StationShare {
  StationShare(const Duration<T>& station, const Duration<T>& fullest)
      : demand(station.si()), share(station / fullest), rest((fullest - station) / fullest) {}

  T demand;
  T share;
  T rest;
};

// max D, or so little of the think time that nobody queues: 1e18^32 is still a number.
template <class T>
Duration<T> FullDemand(const AsyncTimes<T>& demand, Duration<> think) {
  constexpr double kNothing = 1e-18;
  const Duration<> least = think * kNothing + Seconds(std::numeric_limits<double>::min());
  return Max(Bottleneck(demand), Duration<T>(least));
}

// A cycle C, and how C - sum R moves with the time at the update and with that at both links.
struct CycleAndSlopes {
  double cycle = 0.0;
  double of_update = 0.0;
  double of_link = 0.0;
};

// The cycle of workers of one kind.
class CycleOfOne {
 public:
  explicit CycleOfOne(const AsyncNetwork<double>& network)
      : network_(network), line_(network.lines.begin()) {}

  const AsyncTimes<double>& demand() const { return network_.demand; }
  double LeastThink() const { return network_.LeastThink().si(); }
  double MostThink() const { return network_.Think(network_.demand).si(); }
  // Without the workers of other nodes.
  double Shortest() const { return std::max(network_.alone.si(), network_.at_own_link.si()); }
  CycleAndSlopes At(const AsyncTimes<double>& residence) {
    line_ = network_.lines.Highest(network_.backward, network_.Push(residence), line_);
    const double cycle = network_.Along(*line_, residence).si();
    if (cycle < network_.at_own_link.si()) return {network_.at_own_link.si(), -1.0, -2.0};
    return {cycle, line_->suffix - 1.0, line_->suffix - 1.0};
  }

 private:
  const AsyncNetwork<double>& network_;
  const OverlapLines::Line* line_;  // of the bucket that ends last
};

// The mean cycle of workers of several kinds: 1/C is the mean of theirs.
class MeanCycle {
 public:
  explicit MeanCycle(std::span<const AsyncKind<double>> kinds) : kinds_(kinds) {
    for (const AsyncKind<double>& kind : kinds) all_ += kind.workers;
  }

  const AsyncTimes<double>& demand() const { return kinds_.front().network.demand; }
  double LeastThink() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& kind : kinds_) least = std::min(least, CycleOfOne(kind.network).LeastThink());
    return least;
  }
  double MostThink() const {
    double most = 0.0;
    for (const auto& kind : kinds_) most = std::max(most, CycleOfOne(kind.network).MostThink());
    return most;
  }
  double Shortest() const {
    double updates = 0.0;
    for (const auto& kind : kinds_) updates += kind.workers / CycleOfOne(kind.network).Shortest();
    return all_ / updates;
  }
  CycleAndSlopes At(const AsyncTimes<double>& residence) const {
    double updates = 0.0;
    double by_update = 0.0;
    double by_link = 0.0;
    for (const auto& kind : kinds_) {
      const CycleAndSlopes own = CycleOfOne(kind.network).At(residence);
      const double pace = 1.0 / own.cycle;
      const double rate = kind.workers * pace;
      updates += rate;
      by_update += rate * pace * (own.of_update + 1.0);
      by_link += rate * pace * (own.of_link + 2.0);
    }
    const double cycle = all_ / updates;
    const double slope = cycle / updates;
    return {cycle, slope * by_update - 1.0, slope * by_link - 2.0};
  }

 private:
  std::span<const AsyncKind<double>> kinds_;
  double all_ = 0.0;
};

template <class Cycles>
AsyncBalance BalanceOf(Cycles cycles, int workers) {
  const AsyncTimes<double>& demand = cycles.demand();
  const double w = workers;
  double low = cycles.LeastThink();
  double high = std::max(low, cycles.MostThink());
  if (workers == 1) return {{demand, Seconds(cycles.At(demand).cycle)}, high, 1.0};
  const Others others(workers);
  const double full = FullDemand(demand, Seconds(high)).si();
  const double unit = 1.0 / full;
  const StationShare<double> link(demand[kInbound], Seconds(full));
  const StationShare<double> update(demand[kUpdateStation], Seconds(full));
  AsyncBalance balance;
  double& z = balance.think;
  double& y = balance.idle;

  AsyncTimes<double>& residence = balance.state.residence;
  const auto meet = [&](double at_link, double at_update) {
    residence = {Seconds(at_link), Seconds(at_update), Seconds(at_link)};
  };

  // It starts from the queues that workers find who are as fast as a lone one, or as the fullest
  // station lets them be: those of Schweitzer's estimate Q(w-1) = Q(w) (1 - 1/w).
  const double fastest = std::max(cycles.Shortest(), w * full);
  const double busy = 1.0 - std::max(1.0 - (w - 1.0) * full / fastest, 1.0 / w);
  meet(link.demand / (1.0 - busy * link.share), update.demand / (1.0 - busy * update.share));
  CycleAndSlopes at = cycles.At(residence);
  z = std::clamp(at.cycle - AtStations(residence).si(), low, high);
  y = std::clamp(1.0 - others.load * full / at.cycle, others.part, 1.0);

  // gap = C(R) - sum R - Z falls in Z. Newton's method between bounds: where a step leaves them, or
  // has not halved the gap, since another bucket ends last there, the middle is next.
  QueueSeries queues(link.share, update.share, others.exact);
  constexpr double kTolerance = 3e-14;
  constexpr int kSteps = 100;
  double before = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kSteps; ++step) {
    const QueueSeries::Queues q = queues.At(z * unit);
    const double link_weight = link.demand * (1.0 + q.link * others.part);
    const double update_weight = update.demand * (1.0 + q.update * others.part);
    double free_link = 1.0;
    double free_update = 1.0;
    double closed = 0.0;
    double rate = 0.0;
    double link_by_y = 0.0;
    double update_by_y = 0.0;
    double lag_by_y = -1.0;
    bool held = false;
    // 1 - y - w (1 - 1/h) max D / (Z + sum R) falls ever less in y, 1/C being the parallel sum of
    // straight lines: from the second step on Newton's method comes up to the root.
    for (int inner = 0; inner < kSteps; ++inner) {
      free_link = 1.0 / (link.rest + link.share * y);
      free_update = 1.0 / (update.rest + update.share * y);
      meet(link_weight * free_link, update_weight * free_update);
      closed = z + AtStations(residence).si();
      if (others.load == 0.0) break;
      rate = others.load * full / closed;
      link_by_y = -residence[kInbound].si() * link.share * free_link;
      update_by_y = -residence[kUpdateStation].si() * update.share * free_update;
      lag_by_y = rate / closed * (2.0 * link_by_y + update_by_y) - 1.0;
      const double next = y - (1.0 - y - rate) / lag_by_y;
      held = !(next > others.part);
      const double last = y;
      y = std::clamp(next, others.part, 1.0);
      if (!(std::abs(y - last) > kTolerance * y)) break;
    }
    at = cycles.At(residence);
    const double gap = at.cycle - closed;
    if (!(std::abs(gap) > kTolerance * closed)) break;
    const double link_by_z = link.share * others.part * q.link_slope * free_link;
    const double update_by_z = update.share * others.part * q.update_slope * free_update;
    const double lag_by_z = rate / closed * (1.0 + 2.0 * link_by_z + update_by_z);
    const double y_by_z = held ? 0.0 : -lag_by_z / lag_by_y;
    const double slope = at.of_link * (link_by_z + link_by_y * y_by_z) +
                         at.of_update * (update_by_z + update_by_y * y_by_z) - 1.0;
    (gap < 0.0 ? high : low) = z;
    double next = std::clamp(z - gap / slope, low, high);
    if (next == z || std::abs(gap) > 0.5 * before) next = low + 0.5 * (high - low);
    if (next == z) break;
    before = std::abs(gap);
    y = std::clamp(y + y_by_z * (next - z), others.part, 1.0);
    z = next;
  }
  balance.state.cycle = AtLeastFull(demand, workers, Seconds(at.cycle));
  return balance;
}

}  // namespace

void OverlapLines::LeaveOneOut(Line* next) {
  std::size_t least = count - 1;
  double cost = lines[least].lost + Loss(least, *next);
  for (std::size_t i = 1; i + 1 < count; ++i) {
    const double other = lines[i].lost + Loss(i, lines[i + 1]);
    if (other < cost) {
      least = i;
      cost = other;
    }
  }
  Line& after = least + 1 < count ? lines[least + 1] : *next;
  after.lost = std::max(after.lost, cost);
  lines[least - 1].lost = std::max(lines[least - 1].lost, cost);
  std::copy(lines.data() + least + 1, lines.data() + count, lines.data() + least);
  --count;
}

}  // namespace internal

internal::OverlapLines MakeOverlapLines(const std::vector<Bucket>* buckets) {
  using namespace internal;  // NOLINT(google-build-using-namespace): of its own
  OverlapLines lines;
  if (buckets == nullptr || buckets->empty()) {
    lines.Add({});
    return lines;
  }
  DataSize<> total;
  for (const Bucket& bucket : *buckets) total += bucket.bytes;
  DataSize<> left = total;
  for (const Bucket& bucket : *buckets) {
    lines.Add({bucket.ready, left / total, 0.0});
    left -= bucket.bytes;
  }
  lines.Add({1.0, 0.0, 0.0});
  return lines;
}

internal::AsyncBalance Balance(const internal::AsyncNetwork<double>& network, int workers) {
  return internal::BalanceOf(internal::CycleOfOne(network), workers);
}

internal::AsyncBalance Balance(std::span<const internal::AsyncKind<double>> kinds, int workers) {
  return internal::BalanceOf(internal::MeanCycle(kinds), workers);
}

internal::AsyncTimes<DualOf<4>> ResidenceBy(const internal::AsyncTimes<double>& demand, int workers,
                                            const internal::AsyncBalance& balance) {
  using namespace internal;  // NOLINT(google-build-using-namespace): of its own
  using T = DualOf<4>;
  enum Lane { kLink, kUpdate, kThink, kIdle };
  const auto seeded = [](double value, Lane lane) {
    T dual(value);
    dual.slope.Set(lane, 1.0);
    return dual;
  };
  const auto link_demand = Duration<T>::FromSi(seeded(demand[kInbound].si(), kLink));
  const auto update_demand = Duration<T>::FromSi(seeded(demand[kUpdateStation].si(), kUpdate));
  const auto think = Duration<T>::FromSi(seeded(balance.think, kThink));
  const T y = seeded(balance.idle, kIdle);
  const Duration<T> full =
      FullDemand<T>({link_demand, update_demand, link_demand}, Seconds(balance.think));
  const StationShare<T> link(link_demand, full);
  const StationShare<T> update(update_demand, full);

  // The product form's derivatives: by Z a customer less, by a demand its station once more.
  const Others others(workers);
  const int k = others.exact;
  const double s = link.share.value;
  const double s_u = update.share.value;
  NormalisingConstants constants;
  constants.Set(s, s_u, ValueOf(think / full), k);
  double in = 0.0;
  double in_twice = 0.0;
  double both = 0.0;
  double update_twice = 0.0;
  for (int n = 0; n < k - 1; ++n) {
    in = constants.g(n) + s * in;
    in_twice = in + s * in_twice;
    both = constants.u(n) + s * both;
    update_twice = constants.u(n) + s_u * update_twice;
  }
  const double g = 1.0 / constants.g(k);
  const double by_link = 2.0 * g * (constants.g(k - 1) + s * in);  // of ln G
  const double by_update = g * constants.u(k - 1);
  const double by_think = g * constants.g(k - 1);
  const double q_link = s * 0.5 * by_link;
  const double q_update = s_u * by_update;
  const double unit = 1.0 / full.si().value;
  const auto queue = [unit](double value, double a, double b, double c) {
    T dual(value);
    dual.slope.Set(kLink, a * unit);
    dual.slope.Set(kUpdate, b * unit);
    dual.slope.Set(kThink, c * unit);
    return dual;
  };
  const T at_link = queue(q_link, 0.5 * by_link + g * 3.0 * s * in_twice - q_link * by_link,
                          g * s * both - q_link * by_update, g * s * in - q_link * by_think);
  const T at_update = queue(q_update, g * s_u * 2.0 * both - q_update * by_link,
                            by_update + g * 2.0 * s_u * update_twice - q_update * by_update,
                            g * s_u * constants.u(k - 2) - q_update * by_think);

  const auto time = [&](const StationShare<T>& station, const T& found) {
    return Duration<T>::FromSi(station.demand * (1.0 + found * others.part) /
                               (station.rest + station.share * y));
  };
  AsyncTimes<T> residence = {time(link, at_link), time(update, at_update), time(link, at_link)};
  // y goes with them, unless it is held.
  if (others.load > 0.0 && balance.idle > others.part) {
    const T lag = 1.0 - y - full / (think + AtStations(residence)) * others.load;
    for (Duration<T>& at : residence) {
      T moved = at.si();
      moved.slope = moved.slope - lag.slope * (moved.slope[kIdle] / lag.slope[kIdle]);
      at = Duration<T>::FromSi(moved);
    }
  }
  return residence;
}

}  // namespace stepcast
