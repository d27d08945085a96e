// The list of all models: what each one is, where it comes from, where it holds, and a way to
// evaluate it that knows nothing of what it is. Tests loop over it; nothing registers itself.
#ifndef STEPCAST_MODEL_CATALOG_CATALOG_H_
#define STEPCAST_MODEL_CATALOG_CATALOG_H_

#include <functional>
#include <vector>

namespace stepcast {

// How the output answers to a larger input.
enum class Trend { kNeverFalls, kNeverRises, kEither };

struct ModelInput {
  const char* symbol;
  const char* unit;  // SI; empty for a plain number
  // Plausible range, in which the model must be finite, positive and keep its trend.
  double low;
  double high;
  Trend trend;
};

template <class T>
struct Model {
  const char* id = "";
  const char* sentence = "";  // what it says, honestly
  const char* source = "";
  const char* validity = "";
  std::vector<ModelInput> inputs;
  // Seconds, or bytes per second where the id says bandwidth; inputs in SI, in the order above.
  std::function<T(const std::vector<T>&)> evaluate;
};

// For double here; for another scalar include model/catalog/catalog_impl.h.
template <class T>
std::vector<Model<T>> Catalog();

extern template std::vector<Model<double>> Catalog<double>();

}  // namespace stepcast

#endif  // STEPCAST_MODEL_CATALOG_CATALOG_H_
