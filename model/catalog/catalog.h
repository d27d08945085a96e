// The list of all models: what each one is, where it comes from, where it holds, and a way to
// evaluate it that knows nothing of what it is. Tests loop over it, `stepcast models` and the
// reference print it; nothing registers itself.
#ifndef STEPCAST_MODEL_CATALOG_CATALOG_H_
#define STEPCAST_MODEL_CATALOG_CATALOG_H_

#include <functional>
#include <vector>

namespace stepcast {

// How the output answers to a larger input.
enum class Trend { kNeverFalls, kNeverRises, kEither };

struct ModelInput {
  const char* symbol = "";
  const char* unit = "";  // SI: "s", "B", "B/s", "s/B", "FLOP/s", ...; empty for a plain number
  // Plausible range, in which the model must be finite, not negative, and keep its trend.
  double low = 0;
  double high = 0;
  Trend trend = Trend::kEither;
  const char* meaning = "";
};

// A case with a known answer: an extreme where a term vanishes, or a number worked out by hand.
struct KnownCase {
  const char* says;
  std::vector<double> inputs;  // SI, in the order of the entry's inputs
  double expected;             // SI
};

// Paths in the repository.
struct Files {
  const char* header = "";  // states the physics and declares what computes it
  const char* page = "";    // derives it
  const char* test = "";
};

// Where a formula stands.
struct Home {
  Files files = {};
  const char* function = "";  // of the header, or its class
  const char* section = "";   // of the page, as the anchor of its heading: "2-loss"
};

template <class T>
struct Model {
  const char* id = "";
  const char* sentence = "";  // what it says, honestly
  const char* formula = "";   // in the symbols of the inputs, one line
  const char* source = "";
  const char* validity = "";
  const char* output = "s";  // unit, as those of the inputs
  // Constants with a dimension inside the formula ("M = 1448 B"); without any, the value scales
  // with the units of its inputs, which a test checks.
  const char* constants = "";
  std::vector<ModelInput> inputs = {};
  std::function<T(const std::vector<T>&)> evaluate = {};
  std::vector<KnownCase> known = {};
  Home home = {};
};

// For double here; for another scalar include model/catalog/catalog_impl.h.
template <class T>
std::vector<Model<T>> Catalog();

extern template std::vector<Model<double>> Catalog<double>();

}  // namespace stepcast

#endif  // STEPCAST_MODEL_CATALOG_CATALOG_H_
