// The values made last, by their keys: bounded, and safe to use from many threads.
#ifndef STEPCAST_PREDICTOR_SERVE_LRU_CACHE_H_
#define STEPCAST_PREDICTOR_SERVE_LRU_CACHE_H_

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace stepcast::serve {

// `Value` is cheap to copy: a shared pointer, or a value that shares what it holds.
template <class Value>
class LruCache {
 public:
  explicit LruCache(std::size_t most) : most_(most) {}

  // The value kept under `key`, or the one that `make()` makes, which is then kept in place of the
  // one unused for longest. `make` runs outside the lock: two threads may make the same at once,
  // and both get the first that is done. If it throws, nothing is kept.
  template <class Make>
  Value GetOr(const std::string& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = index_.find(key); found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->second;
      }
    }
    Value made = make();
    const std::lock_guard lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) return found->second->second;
    entries_.emplace_front(key, std::move(made));
    index_.emplace(entries_.front().first, entries_.begin());
    if (entries_.size() > most_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;

  const std::size_t most_;  // at least 1
  mutable std::mutex mutex_;
  Entries entries_;                                                         // the last used first
  std::unordered_map<std::string_view, typename Entries::iterator> index_;  // keys are in entries_
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_LRU_CACHE_H_
