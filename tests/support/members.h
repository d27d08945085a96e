// How many members an aggregate has, as far as a test of a list of members needs to know.
#ifndef STEPCAST_TESTS_SUPPORT_MEMBERS_H_
#define STEPCAST_TESTS_SUPPORT_MEMBERS_H_

#include <cstddef>
#include <optional>
#include <utility>

namespace stepcast {
namespace internal {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Becomes any member; an optional one by its value.
struct AnyMember {
  template <class T>
  requires(!kIsOptional<T>) operator T() const;  // NOLINT(google-explicit-constructor): see above
};

template <class Aggregate, std::size_t... Index>
constexpr bool HasMembers(std::index_sequence<Index...> /*each*/) {
  return requires { Aggregate{((void)Index, AnyMember())...}; };
}

}  // namespace internal

template <class Aggregate, std::size_t kMost = 64>
constexpr std::size_t CountMembers() {
  if constexpr (internal::HasMembers<Aggregate>(std::make_index_sequence<kMost>())) {
    return kMost;
  } else {
    return CountMembers<Aggregate, kMost - 1>();
  }
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_MEMBERS_H_
