// Structs of the C interface, which begin with their size so that they can grow.
//
// A struct grows by fields behind its last one, and never into its padding. A caller's may be older
// and shorter than ours, or newer and longer: what it lacks keeps our default, and what we do not
// know must be zero, so that nothing that it asks for is passed over in silence.
#ifndef STEPCAST_PREDICTOR_CAPI_STRUCT_SIZE_H_
#define STEPCAST_PREDICTOR_CAPI_STRUCT_SIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace stepcast::capi {

// The size that a struct had when it was published: it is specialised once the struct grows.
template <class T>
inline constexpr std::size_t kFirstSize = sizeof(T);

// A longer tail is taken for a size that nobody has set.
inline constexpr std::size_t kLongestTail = 1024;

template <class T>
bool IsSizePossible(const T* given) {
  return given != nullptr && given->struct_size >= kFirstSize<T> &&
         given->struct_size <= sizeof(T) + kLongestTail;
}

// Reads a caller's struct over `taken`, which holds the defaults. False, with `taken` as it was,
// for NULL, a size that cannot be, or something set that we do not know.
template <class T>
bool TakeStruct(const T* given, T* taken) {
  if (!IsSizePossible(given)) return false;
  const std::size_t size = given->struct_size;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(T) &&
      std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char byte) { return byte != 0; })) {
    return false;
  }
  std::memcpy(taken, given, std::min(size, sizeof(T)));
  taken->struct_size = sizeof(T);
  return true;
}

// Fills a caller's struct, but for its struct_size: as much of it as there is of ours, and zeros
// beyond. False, with nothing written, for NULL and for a size that cannot be.
template <class T>
bool GiveStruct(const T& ours, T* given) {
  if (!IsSizePossible(given)) return false;
  const std::size_t size = given->struct_size;
  std::memcpy(given, &ours, std::min(size, sizeof(T)));
  if (size > sizeof(T)) {
    std::memset(reinterpret_cast<unsigned char*>(given) + sizeof(T), 0, size - sizeof(T));
  }
  given->struct_size = size;
  return true;
}

}  // namespace stepcast::capi

#endif  // STEPCAST_PREDICTOR_CAPI_STRUCT_SIZE_H_
