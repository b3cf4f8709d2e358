#include "search/scheduler/bracket_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "search/scheduler/bracket.hpp"
#include "search/stopping.hpp"

namespace hfta::search {
namespace {

void check(const HyperbandOptions& o) {
  const auto reject = [](const char* key, int found, const std::string& wanted) {
    throw Error(ErrorKind::kConfig, fmt::format("hyperband: {}: found {}, wanted {}", key, found, wanted));
  };
  if (o.min_epochs < 1) reject("min_epochs", o.min_epochs, "at least 1");
  if (o.max_epochs < o.min_epochs)
    reject("max_epochs", o.max_epochs, fmt::format("at least min_epochs = {}", o.min_epochs));
  if (o.eta < 2) reject("eta", o.eta, "at least 2");
}

}  // namespace

std::vector<std::vector<Rung>> hyperband_brackets(const HyperbandOptions& options) {
  check(options);
  const std::int64_t eta = options.eta;
  std::vector<std::int64_t> powers = {1};  // computed by multiplication: log(243) / log(3) is below 5
  while (options.min_epochs * powers.back() * eta <= options.max_epochs) powers.push_back(powers.back() * eta);

  std::vector<std::vector<Rung>> brackets;
  for (std::size_t s = powers.size(); s-- > 0;) {
    const auto divisor = static_cast<std::int64_t>(s) + 1;
    const std::int64_t n = (static_cast<std::int64_t>(powers.size()) * powers[s] + divisor - 1) / divisor;
    std::vector<Rung>& rungs = brackets.emplace_back();
    for (std::size_t i = 0; i <= s; ++i) {
      rungs.push_back({static_cast<int>(n / powers[i]), static_cast<int>(options.max_epochs / powers[s - i])});
    }
  }
  return brackets;
}

BracketLayout::BracketLayout(const HyperbandOptions& options, std::vector<int> run_caps)
    : eta_(options.eta), kinds_(hyperband_brackets(options)) {
  for (const auto& rungs : kinds_) {
    pass_size_ += rungs.front().trials;
    costs_.push_back(cost_of(rungs));
    pass_cost_ += costs_.back();
  }
  if (run_caps.empty()) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    run_caps.push_back(static_cast<int>(std::min(pass_size_, kMost)));
  }
  Segment next;
  for (const auto& [first, cap] : draws_by_cap(run_caps)) {
    next.end = cap;
    segments_.push_back(next);
    const BracketPosition last = find(next, cap - 1).place;
    next = {cap, cap, (last.kind + 1) % kinds_.size(), last.bracket + 1};
  }
}

BracketLayout::Step BracketLayout::find(const Segment& segment, int draw) const {
  const std::int64_t offset = draw - segment.first;
  Step step;
  step.passes = offset / pass_size_;
  std::int64_t rest = offset % pass_size_;
  std::size_t kind = segment.start;
  while (rest >= kinds_[kind].front().trials) {
    rest -= kinds_[kind].front().trials;
    kind = (kind + 1) % kinds_.size();
    ++step.brackets;
  }
  const int first = draw - static_cast<int>(rest);
  step.place.bracket = segment.brackets + step.passes * static_cast<std::int64_t>(kinds_.size()) +
                       static_cast<std::int64_t>(step.brackets);
  step.place.first = first;
  step.place.size = std::min(kinds_[kind].front().trials, segment.end - first);
  step.place.kind = kind;
  return step;
}

BracketPosition BracketLayout::place(int draw) const {
  if (draw < 0 || draw >= capacity()) {
    throw Error(ErrorKind::kInternal, fmt::format("hyperband: found trial {}, wanted 0 to {}", draw, capacity() - 1));
  }
  const auto segment =
      std::partition_point(segments_.begin(), segments_.end(), [draw](const Segment& s) { return s.end <= draw; });
  return find(*segment, draw).place;
}

std::vector<Rung> BracketLayout::rungs(const BracketPosition& place) const {
  std::vector<Rung> rungs = kinds_[place.kind];
  int trials = place.size;
  for (Rung& rung : rungs) {
    rung.trials = trials;
    trials = std::max(1, trials / eta_);  // floor of floor: the same as floor(size * eta^-i)
  }
  return rungs;
}

std::int64_t BracketLayout::cost(std::int64_t draws) const {
  std::int64_t cost = 0;
  for (const Segment& segment : segments_) {
    if (draws <= segment.first) break;
    const int end = static_cast<int>(std::min<std::int64_t>(draws, segment.end));
    const Step last = find(segment, end - 1);
    cost += last.passes * pass_cost_;
    for (std::size_t i = 0; i < last.brackets; ++i) cost += costs_[(segment.start + i) % kinds_.size()];
    const std::int64_t bracket = cost_of(rungs(last.place));
    const int taken = end - last.place.first;
    cost += taken == last.place.size
                ? bracket
                : static_cast<std::int64_t>(static_cast<double>(bracket) * taken / last.place.size);
  }
  return cost;
}

}  // namespace hfta::search
