// The calls of a trace that an import tells apart: layers, nodes of the backward pass, updates, and
// the rest; with their times, and with each node at the layer that it belongs to.
#ifndef STEPCAST_DATA_KINETO_CALLS_H_
#define STEPCAST_DATA_KINETO_CALLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/kineto/layers.h"
#include "data/kineto/trace.h"

namespace stepcast {

enum class KinetoRole : std::uint8_t {
  kLayer,
  kNode,      // of the autograd graph
  kFork,      // within a node: the sum of two branches' gradients
  kUpdate,    // Optimizer.step
  kGradient,  // a parameter's gradient is stored or added up
  kOther,
};

struct KinetoUnit {
  std::int64_t start = 0;  // ns
  double time = 0;         // ns, without that of units within; whole, and no sum overflows
  int event = 0;           // index of its outermost event
  // The operator within that tells the work: for a layer the first that computes; for a node the
  // one with its name and the gradient's shape; for a gradient the one with its shape. -1: none
  int inner = -1;
  int parent = -1;   // the unit around it
  int layer = -1;    // of a node: unit of its layer
  int products = 0;  // matrix products within
  int mask = -1;     // of a node: event of convolution_backward
  KinetoRole role = KinetoRole::kOther;
  KinetoLayer kind = KinetoLayer::kNone;
  bool again = false;  // a layer that is computed again for the backward pass
  bool tf32 = false;
};

// Operators that an update ran, by name, with the elements of their first tensors.
struct KinetoUpdate {
  std::map<std::string, std::int64_t, std::less<>> elements;
  std::string type;      // of the tensors
  bool unknown = false;  // a list of tensors has no shapes
  std::string momentum;  // what a fused operator was told
};

struct KinetoCalls {
  std::vector<KinetoUnit> units;  // by their start
  std::map<int, KinetoUpdate> updates;
  bool gpu = false;
  // A number that launches by several operators share, so that what they launched is not known: the
  // traces of several processes in one. -1: none
  std::int64_t ambiguous = -1;
  // On the GPU, launched by no operator of the trace, by why.
  std::map<std::string, double> stray;  // ns
};

KinetoCalls FindKinetoCalls(const KinetoTrace& trace);

// "autograd::engine::evaluate_function: MulBackward0" -> "MulBackward0"; other names stay.
std::string_view KinetoNodeName(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_CALLS_H_
