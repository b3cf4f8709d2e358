#include "fusion/cpu/recompute.hpp"

#include <algorithm>
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

// By buffer: what the backward does without until it computes it again.
std::vector<bool> choose(const Schedule& schedule, std::span<const Recomputation> ways, const std::vector<bool>& pinned,
                         Recompute recompute) {
  const std::vector<bool> used = touched_from(schedule, 0, pinned.size()),
                          read_later = touched_from(schedule, schedule.backward, pinned.size());
  const int longest = std::max(recompute, 2);
  std::vector<bool> away(pinned.size(), false);
  std::vector<int> row(pinned.size(),
                       0);  // by buffer that is given away: how many are computed for it, itself included
  for (const Recomputation& way : ways) {
    const std::size_t own = at(way.buffer);
    bool there = true;
    int before = 0;
    for (const int b : way.step.buffers) {
      const std::size_t i = at(b);
      if (i == own) continue;
      there = there && (pinned[i] || read_later[i] || away[i] || !used[i]);  // !used: scratch of its own
      before = std::max(before, row[i]);
    }
    away[own] = there && !pinned[own] && before < longest && is_wanted(way.cost, recompute);
    row[own] = away[own] ? before + 1 : 0;
  }
  return away;
}

// The backward's steps, each behind those that compute again what it reads.
class Backward {
 public:
  Backward(std::span<const Recomputation> ways, const std::vector<bool>& away, std::vector<Step>& steps)
      : steps_(steps), missing_(away.size(), nullptr) {
    for (const Recomputation& way : ways) {
      if (away[at(way.buffer)]) missing_[at(way.buffer)] = &way;
    }
  }

  void add(const Step& step) {
    for (const int b : step.buffers) compute(b);
    steps_.push_back(step);
  }

 private:
  void compute(int buffer) {
    const Recomputation* const way = std::exchange(missing_[at(buffer)], nullptr);
    if (way != nullptr) add(way->step);
  }

  std::vector<Step>& steps_;
  std::vector<const Recomputation*> missing_;  // by buffer, until it is computed again
};

}  // namespace

Recomputing recomputing(const Schedule& schedule, std::span<const Recomputation> ways, const std::vector<bool>& pinned,
                        Recompute recompute) {
  Recomputing all{schedule, std::vector<bool>(pinned.size(), false)};
  if (ways.empty()) return all;
  all.given_away = choose(schedule, ways, pinned, recompute);
  std::vector<Step>& steps = all.schedule.steps;
  steps.resize(schedule.backward);
  Backward backward(ways, all.given_away, steps);
  for (std::size_t k = schedule.backward; k < schedule.steps.size(); ++k) backward.add(schedule.steps[k]);
  return all;
}

}  // namespace hfta::fusion::cpu
