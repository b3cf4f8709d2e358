#include "fusion/cpu/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hfta::fusion::cpu {
namespace {

bool meet(const Lifetime& a, const Lifetime& b) {
  return !a.empty() && !b.empty() && b.begin < a.end && a.begin < b.end;
}

std::size_t kernels_of(std::span<const Placed> buffers) {
  std::size_t kernels = 1;
  for (const Placed& buffer : buffers) kernels = std::max(kernels, buffer.life.end);
  return kernels;
}

// Buffers that have a place, by the stretches of kernels in which they live. A weight's gradient that is applied piece
// by piece is a hundred thousand buffers that live for a moment each: they must not all be asked for each of them.
class Neighbours {
 public:
  explicit Neighbours(std::span<const Placed> buffers) : buffers_(buffers) {
    const std::size_t kernels = kernels_of(buffers);
    stretch_ = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(kernels))));
    short_.resize(kernels / stretch_ + 1);
  }

  void add(std::size_t id) {
    const Lifetime& life = buffers_[id].life;
    all_.push_back(id);
    if (is_long(life)) {
      long_.push_back(id);
    } else {
      for (std::size_t s = first(life); s <= last(life); ++s) short_[s].push_back(id);
    }
  }

  /// Calls work(id) once for each that lives at some time of `life`.
  template <typename Work>
  void visit(const Lifetime& life, const Work& work) const {
    const auto visit_all = [&](const std::vector<std::size_t>& ids, const auto& counts) {
      for (const std::size_t id : ids) {
        if (meet(life, buffers_[id].life) && counts(buffers_[id].life)) work(id);
      }
    };
    const auto always = [](const Lifetime&) { return true; };
    if (is_long(life)) return visit_all(all_, always);
    visit_all(long_, always);
    for (std::size_t s = first(life); s <= last(life); ++s) {
      // One that lives in several of these stretches counts in the first of them.
      visit_all(short_[s], [&](const Lifetime& other) { return std::max(first(life), first(other)) == s; });
    }
  }

 private:
  static constexpr std::size_t kMostStretches = 4;
  [[nodiscard]] std::size_t first(const Lifetime& life) const { return life.begin / stretch_; }
  [[nodiscard]] std::size_t last(const Lifetime& life) const { return (life.end - 1) / stretch_; }
  [[nodiscard]] bool is_long(const Lifetime& life) const { return last(life) - first(life) >= kMostStretches; }

  std::span<const Placed> buffers_;
  std::size_t stretch_ = 1;
  std::vector<std::size_t> all_, long_;
  std::vector<std::vector<std::size_t>> short_;  // by stretch
};

}  // namespace

Placement place(std::span<const Placed> buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Placement all;
  all.offsets.assign(buffers.size(), Placement::kNowhere);
  Neighbours placed(buffers);
  for (const std::size_t id : order) {
    const Placed& buffer = buffers[id];
    if (buffer.life.empty()) continue;
    std::vector<std::pair<std::size_t, std::size_t>> busy;
    placed.visit(buffer.life, [&](std::size_t other) {
      busy.emplace_back(all.offsets[other], all.offsets[other] + buffers[other].bytes);
    });
    std::sort(busy.begin(), busy.end());
    std::size_t at = 0;
    for (const auto& [begin, end] : busy) {
      if (begin >= at + buffer.bytes) break;
      at = std::max(at, end);
    }
    all.offsets[id] = at;
    all.bytes = std::max(all.bytes, at + buffer.bytes);
    placed.add(id);
  }
  return all;
}

}  // namespace hfta::fusion::cpu
