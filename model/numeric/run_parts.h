// Work in parts that know nothing of each other, on threads that end with it.
#ifndef STEPCAST_MODEL_NUMERIC_RUN_PARTS_H_
#define STEPCAST_MODEL_NUMERIC_RUN_PARTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <future>

namespace stepcast {

inline constexpr std::size_t kMostThreads = 64;

// Calls work(0) to work(parts - 1), each once, on up to `threads` threads and kMostThreads: the
// caller's is one of them, and the only one where it is told less than 2. Where the system gives
// fewer threads, those that are there do all. Throws what a part throws, once all have ended.
template <class Work>
void RunParts(std::size_t parts, int threads, const Work& work) {
  const std::size_t wanted = threads > 1 ? static_cast<std::size_t>(threads) : 1;
  const std::size_t used = std::min({wanted, parts, kMostThreads});
  const auto run_every = [&](std::size_t first) {
    for (std::size_t part = first; part < parts; part += used) work(part);
  };
  std::array<std::future<void>, kMostThreads> others;
  std::size_t started = 1;
  try {
    for (; started < used; ++started) {
      others[started] = std::async(std::launch::async, run_every, started);
    }
  } catch (const std::exception&) {
    // There are no more threads.
  }
  for (std::size_t mine = 0; mine < used; mine = mine == 0 ? started : mine + 1) run_every(mine);
  for (std::size_t i = 1; i < started; ++i) others[i].get();
}

// Into how many parts of at least `least` things `size` of them go: at least 1, and at most `most`
// and kMostThreads.
inline std::size_t PartCount(std::size_t size, std::size_t least, int most) {
  const std::size_t limit = most > 1 ? static_cast<std::size_t>(most) : 1;
  return std::clamp<std::size_t>(size / least, 1, std::min(limit, kMostThreads));
}

// Calls work(part, begin, end) for parts that follow each other from 0 to size, as even as can be.
template <class Work>
void ShareOut(std::size_t size, std::size_t parts, int threads, const Work& work) {
  const auto begin_of = [&](std::size_t part) {
    return size / parts * part + std::min(part, size % parts);
  };
  RunParts(parts, threads,
           [&](std::size_t part) { work(part, begin_of(part), begin_of(part + 1)); });
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NUMERIC_RUN_PARTS_H_
