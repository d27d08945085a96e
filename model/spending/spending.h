// What a step costs in money and in energy.
//
//   price    = N P T                                                          [USD]
//   energy   = w (p_busy - p_idle) t  +  (w p_idle + N p_node) T               [J]
//   epoch    = step x D / B;   to the target = step x S
//
//   N, w     nodes that are paid for; devices in use on them                   [1]
//   P        price of a node                                                   [USD/s]
//   T, t     step, and the part of it in which a device computes, t <= T       [s]
//   p_busy   power of a device that computes                                   [W]
//   p_idle   of one that waits between kernels, at clocks that stay up         [W]
//   p_node   of the rest of a node: processors, memory, fans, network          [W]
//   D, B     samples of the data set, of a step                                [samples]
//   S        steps to the target (model/statistics/noise_scale.h)              [1]
//
// A device draws p_busy while it computes and p_idle while it waits, whatever it waits for:
// communication is taken to cost the device nothing beyond p_idle.
//
// Money and energy have no dimension in data/units; their units are in the names, as in
// data/record/machine.h. p_idle is the power of a device that holds a model and waits, its clocks
// up, not that of one which nobody uses.
//
// Holds for a mean over many steps, p_busy that of the workload in question (a device rarely draws
// its rated power), and nodes rented by the second. Cooling and the network's switches are not
// counted.
//
// Note that price and energy never fall with the step, the powers and the price, that energy never
// falls with the compute time, that idling costs exactly p_idle, and that a step of nothing
// but compute costs w p_busy t and the nodes.
//
// Source: docs/explanation/statistics.md, against measured power; energy is power x time.
#ifndef STEPCAST_MODEL_SPENDING_SPENDING_H_
#define STEPCAST_MODEL_SPENDING_SPENDING_H_

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
struct Power {
  T device_busy_w;
  T device_idle_w;  // at most device_busy_w
  T node_w;         // a node but for its devices
};

template <class T>
T StepPriceUsd(const Duration<T>& step, int nodes, const T& node_price_usd_per_hour) {
  return step.in(kHours) * (node_price_usd_per_hour * static_cast<double>(nodes));
}

template <class T>
T StepEnergyJ(const Duration<T>& compute, const Duration<T>& step, const Power<T>& power,
              int workers, int nodes) {
  const T extra_w = power.device_busy_w - power.device_idle_w;
  const T waiting_w = power.device_idle_w * static_cast<double>(workers) +
                      power.node_w * static_cast<double>(nodes);
  return extra_w * static_cast<double>(workers) * compute.in(kSeconds) +
         waiting_w * step.in(kSeconds);
}

// Steps of an epoch; the last one counts in proportion to its samples.
template <class T>
T StepsPerEpoch(const SampleCount<T>& data_set, const SampleCount<T>& batch) {
  return data_set / batch;
}

// 1 kWh is 3.6e6 J.
template <class T>
T KilowattHours(const T& energy_j) {
  return energy_j / 3.6e6;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_SPENDING_SPENDING_H_
