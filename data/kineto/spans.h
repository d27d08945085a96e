// Spans of time, as their union: what is covered, and how much of something else they cover.
#ifndef STEPCAST_DATA_KINETO_SPANS_H_
#define STEPCAST_DATA_KINETO_SPANS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

struct KinetoSpan {
  std::int64_t begin = 0;  // ns
  std::int64_t end = 0;    // behind it
};

// Any number of spans may be added in any order; memory is that of the union, and of as many again.
// Note that the union of a set with itself is the set, and that what a set covers of [a, c) is what
// it covers of [a, b) and of [b, c).
class KinetoSpans {
 public:
  void Add(std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    spans_.push_back({begin, end});
    if (spans_.size() >= merge_at_) Merge();
  }
  void Add(const KinetoSpans& others) {
    for (const KinetoSpan& span : others.spans_) Add(span.begin, span.end);
  }
  void Clear() { *this = KinetoSpans(); }

  // The union in the order of time, none of which touch. What comes below needs it.
  const std::vector<KinetoSpan>& Merge() {
    std::sort(spans_.begin(), spans_.end(),
              [](const KinetoSpan& a, const KinetoSpan& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (const KinetoSpan& span : spans_) {
      if (kept > 0 && span.begin <= spans_[kept - 1].end) {
        spans_[kept - 1].end = std::max(spans_[kept - 1].end, span.end);
      } else {
        spans_[kept++] = span;
      }
    }
    spans_.resize(kept);
    merge_at_ = std::max(kLeast, 2 * kept);
    before_.assign(kept + 1, 0);
    for (std::size_t i = 0; i < kept; ++i) {
      before_[i + 1] = before_[i] + (spans_[i].end - spans_[i].begin);
    }
    return spans_;
  }

  bool empty() const { return spans_.empty(); }
  // What a merged set covers in all.
  std::int64_t length() const { return before_.back(); }

  // How much of [begin, end) a merged set covers.
  std::int64_t Covered(std::int64_t begin, std::int64_t end) const {
    return end <= begin ? 0 : CoveredBefore(end) - CoveredBefore(begin);
  }
  // How much of [begin, end) two merged sets both cover.
  std::int64_t Shared(const KinetoSpans& other, std::int64_t begin, std::int64_t end) const {
    std::int64_t shared = 0;
    auto it = std::upper_bound(spans_.begin(), spans_.end(), begin, EndsBehind);
    for (; it != spans_.end() && it->begin < end; ++it) {
      shared += other.Covered(std::max(it->begin, begin), std::min(it->end, end));
    }
    return shared;
  }

 private:
  static constexpr std::size_t kLeast = 4096;

  static bool EndsBehind(std::int64_t time, const KinetoSpan& span) { return time < span.end; }

  std::int64_t CoveredBefore(std::int64_t time) const {
    // The first that ends behind it may have begun.
    const auto it = std::upper_bound(spans_.begin(), spans_.end(), time, EndsBehind);
    const std::int64_t whole = before_[static_cast<std::size_t>(it - spans_.begin())];
    return it == spans_.end() ? whole : whole + std::max<std::int64_t>(0, time - it->begin);
  }

  std::vector<KinetoSpan> spans_;
  std::vector<std::int64_t> before_ = {0};  // covered by those before each
  std::size_t merge_at_ = kLeast;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_SPANS_H_
