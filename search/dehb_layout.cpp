#include "search/dehb_layout.hpp"

#include <algorithm>

namespace hfta::search {

DehbLayout::DehbLayout(const HyperbandOptions& options) : brackets_(hyperband_brackets(options)) {
  for (const Rung& rung : brackets_.front()) budgets_.push_back(rung.epochs);
  for (const std::vector<Rung>& rungs : brackets_) {
    first_pass_ += rungs.front().trials;
    for (const Rung& rung : rungs) {
      later_pass_ += rung.trials;
      later_pass_cost_ += std::int64_t{rung.trials} * rung.epochs;
    }
  }
}

DehbPosition DehbLayout::place(int draw) const {
  const bool first = draw < first_pass_;
  std::int64_t rest = first ? draw : (draw - first_pass_) % later_pass_;
  for (std::size_t bracket = 0;; ++bracket) {
    const std::vector<Rung>& rungs = brackets_.at(bracket);
    for (std::size_t i = 0; i < (first ? 1 : rungs.size()); ++i) {
      if (rest < rungs[i].trials) return {first, bracket, i, rungs[i].epochs, rungs[i].trials};
      rest -= rungs[i].trials;
    }
  }
}

int DehbLayout::population(int epochs) const {
  const auto found = std::find_if(brackets_.begin(), brackets_.end(),
                                  [=](const std::vector<Rung>& rungs) { return rungs.front().epochs == epochs; });
  return found == brackets_.end() ? 1 : found->front().trials;
}

std::int64_t DehbLayout::later_cost(std::int64_t draws) const {
  std::int64_t left = std::max<std::int64_t>(0, draws - first_pass_);
  std::int64_t cost = left / later_pass_ * later_pass_cost_;
  left %= later_pass_;
  for (const std::vector<Rung>& rungs : brackets_) {
    for (const Rung& rung : rungs) {
      const std::int64_t taken = std::min<std::int64_t>(left, rung.trials);
      cost += taken * rung.epochs;
      left -= taken;
    }
  }
  return cost;
}

}  // namespace hfta::search
