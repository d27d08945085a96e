#include "data/plan/key.h"

#include <optional>
#include <type_traits>

#include "data/plan/field_list.h"

namespace stepcast {
namespace {

double Number(double n) { return n; }
// Shares of what is kept are at most 1.
double Number(const Compression& c) { return 2 * static_cast<double>(c.method) + c.kept; }
template <class E>
requires std::is_enum_v<E>
double Number(E e) { return static_cast<double>(e); }
template <class D>
double Number(const Quantity<D>& q) {
  return q.si();
}
template <class T>
double Number(const std::optional<T>& value) {
  return value ? Number(*value) : -1;
}

}  // namespace

PlanKey OptionsKey(const Plan& plan, std::optional<DataSize<>> default_bucket) {
  PlanKey key;
  ForEachField([&](const FieldFacts&, auto field) {
    using Field = decltype(field);
    constexpr bool kIsWhere = std::is_same_v<Field, FieldAt<&Plan::placement>> ||
                              std::is_same_v<Field, FieldAt<&Plan::hosts>>;
    if constexpr (std::is_same_v<Field, FieldAt<&Plan::bucket>>) {
      key.push_back(Number(plan.bucket ? plan.bucket : default_bucket));
    } else if constexpr (!kIsWhere && !Field::kIsOfLink) {
      key.push_back(Number(field.Of(plan)));
    }
  });
  return key;
}

PlanKey StatedKey(const Plan& plan) {
  PlanKey key = OptionsKey(plan);
  AppendLink(plan.link, &key);
  AppendLink(plan.server_link, &key);
  return key;
}

void AppendLink(const LinkFacts& link, PlanKey* key) {
  LinkFacts::ForEach([&](const char*, auto fact) { key->push_back(Number(link.*fact)); });
}

}  // namespace stepcast
