#include "predictor/online/plan_text.h"

#include <optional>
#include <type_traits>
#include <vector>

namespace stepcast::internal {
namespace {

class KeyWriter {
 public:
  explicit KeyWriter(std::string* key) : key_(key) {}

  template <class T>
  void operator()(const char* /*name*/, const T& value) const {
    Write(value);
  }

 private:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void Write(const T& value) const {
    key_->append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class D, class T>
  void Write(const Quantity<D, T>& value) const {
    Write(value.si());
  }
  void Write(const std::string& text) const {
    Write(text.size());
    key_->append(text);
  }
  template <class T>
  void Write(const std::vector<T>& values) const {
    Write(values.size());
    for (const T& value : values) Write(value);
  }
  template <class T>
  void Write(const std::optional<T>& value) const {
    Write(value.has_value());
    if (value) Write(*value);
  }

  std::string* key_;
};

}  // namespace

void WriteKey(const Plan& plan, std::string* key) {
  key->clear();
  VisitPlan(plan, KeyWriter(key));
}

}  // namespace stepcast::internal
