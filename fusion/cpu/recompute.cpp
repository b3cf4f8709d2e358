#include "fusion/cpu/recompute.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace hfta::fusion::cpu {
namespace {

std::size_t at(int buffer) { return static_cast<std::size_t>(buffer); }

// By buffer: whether the steps from `begin` on touch it.
std::vector<bool> touched_from(const Schedule& schedule, std::size_t begin, std::size_t buffers) {
  std::vector<bool> touched(buffers, false);
  for (std::size_t k = begin; k < schedule.steps.size(); ++k) {
    for (const int b : schedule.steps[k].buffers) touched[at(b)] = true;
  }
  return touched;
}

bool is_wanted(RecomputeCost cost, Recompute recompute) {
  switch (cost) {
    case RecomputeCost::kWidening:
      return true;
    case RecomputeCost::kPass:
      return recompute > 0;
    case RecomputeCost::kProduct:
      return recompute > 1;
  }
  return false;
}

// By buffer: what may be encoded. A value that yields may not where that takes the way to one that the backward needs.
std::vector<bool> encodable_of(const Schedule& schedule, std::span<const Recomputation> ways,
                               std::span<const Encoding> encodings, std::size_t buffers, Recompute recompute) {
  std::vector<bool> encodable(buffers, false), yields(buffers, false);
  for (const Encoding& one : encodings) encodable[at(one.buffer)] = true;
  for (const Encoding& one : encodings) yields[at(one.buffer)] = one.yields;
  const std::vector<bool> read_later = touched_from(schedule, schedule.backward, buffers);
  for (const Recomputation& way : ways) {
    const std::size_t own = at(way.buffer);
    if (!read_later[own] || encodable[own] || !is_wanted(way.cost, recompute)) continue;
    for (const int b : way.step.buffers) {
      if (yields[at(b)]) encodable[at(b)] = false;
    }
  }
  return encodable;
}

// By buffer: what the backward does without until it computes it again. `encodable`, by buffer: what is encoded
// otherwise, and then no way to the same bits of anything else.
std::vector<bool> choose(const Schedule& schedule, std::span<const Recomputation> ways,
                         const std::vector<bool>& encodable, const std::vector<bool>& pinned, Recompute recompute) {
  const std::vector<bool> used = touched_from(schedule, 0, pinned.size()),
                          read_later = touched_from(schedule, schedule.backward, pinned.size());
  const int longest = std::max(recompute, 2);
  std::vector<bool> away(pinned.size(), false);
  std::vector<int> row(pinned.size(),
                       0);  // by buffer given away: how many values are computed for it, itself included
  for (const Recomputation& way : ways) {
    const std::size_t own = at(way.buffer);
    bool there = true;
    int before = 0;
    for (const int b : way.step.buffers) {
      const std::size_t i = at(b);
      if (i == own) continue;
      const bool kept = pinned[i] || (read_later[i] && !encodable[i]);
      there = there && (kept || away[i] || !used[i]);  // !used: scratch of its own
      before = std::max(before, row[i]);
    }
    away[own] = there && !pinned[own] && before < longest && is_wanted(way.cost, recompute);
    row[own] = away[own] ? before + 1 : 0;
  }
  return away;
}

// The forward's steps, each value encoded behind the last one that touches it; before that, if that may write where the
// value lies.
std::vector<Step> forward_of(const Schedule& schedule, std::span<const Encoding* const> encodings) {
  std::vector<const Encoding*> open(encodings.begin(), encodings.end());
  std::vector<Step> reversed;
  for (std::size_t k = schedule.backward; k-- > 0;) {
    const Step& step = schedule.steps[k];
    std::vector<Step> before;
    for (const Encoding*& one : open) {
      if (one == nullptr || std::find(step.buffers.begin(), step.buffers.end(), one->buffer) == step.buffers.end())
        continue;
      std::vector<Step>& to = step.in_place.from == one->buffer ? before : reversed;
      to.push_back(std::exchange(one, nullptr)->encode);
    }
    reversed.push_back(step);
    std::move(before.begin(), before.end(), std::back_inserter(reversed));
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

// The backward's steps, each behind those that bring back what it reads.
class Backward {
 public:
  Backward(std::span<const Recomputation> ways, std::span<const Encoding* const> encodings, Recomputing& all)
      : all_(all), missing_(all.given_away.size(), nullptr) {
    for (const Recomputation& way : ways) {
      if (all.given_away[at(way.buffer)]) missing_[at(way.buffer)] = &way.step;
    }
    for (const Encoding* const one : encodings) {
      if (one->instead.empty()) missing_[at(one->buffer)] = &one->decode;
    }
  }

  void add(const Step& step) {
    for (const int b : step.buffers) bring(b);
    all_.schedule.steps.push_back(step);
  }

 private:
  void bring(int buffer) {
    const Step* const step = std::exchange(missing_[at(buffer)], nullptr);
    if (step == nullptr) return;
    add(*step);
    all_.brought.push_back({all_.schedule.steps.size() - 1, buffer});
  }

  Recomputing& all_;
  std::vector<const Step*> missing_;  // by buffer, until it is there again
};

}  // namespace

Recomputing recomputing(const Schedule& schedule, std::span<const Recomputation> ways,
                        std::span<const Encoding> encodings, const std::vector<bool>& pinned, Recompute recompute) {
  const std::vector<bool> none(pinned.size(), false);
  Recomputing all{schedule, none, none, {}};
  if (ways.empty() && encodings.empty()) return all;
  const std::vector<bool> encodable = encodable_of(schedule, ways, encodings, pinned.size(), recompute);
  all.given_away = choose(schedule, ways, encodable, pinned, recompute);
  std::vector<const Encoding*> encoded;
  for (const Encoding& one : encodings) {
    if (encodable[at(one.buffer)] && !all.given_away[at(one.buffer)]) encoded.push_back(&one);
  }
  for (const Encoding* const one : encoded) all.given_away[at(one->buffer)] = all.encoded[at(one->buffer)] = true;
  all.schedule.steps = forward_of(schedule, encoded);
  all.schedule.backward = all.schedule.steps.size();
  std::map<std::size_t, const Step*> instead;  // by position
  for (const Encoding* const one : encoded) {
    for (const Encoding::Instead& other : one->instead) instead[other.position] = &other.step;
  }
  Backward backward(ways, encoded, all);
  for (std::size_t k = schedule.backward; k < schedule.steps.size(); ++k) {
    const auto other = instead.find(k);
    backward.add(other != instead.end() ? *other->second : schedule.steps[k]);
  }
  return all;
}

}  // namespace hfta::fusion::cpu
