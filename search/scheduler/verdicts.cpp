#include "search/scheduler/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hfta::search {

std::vector<Verdict> take_due(std::vector<Verdict>& due, const std::function<bool(int)>& failed) {
  std::vector<Verdict> taken = std::exchange(due, {});
  std::erase_if(taken, [&](const Verdict& v) { return failed(v.trial); });
  std::stable_sort(taken.begin(), taken.end(), [](const Verdict& a, const Verdict& b) { return a.trial < b.trial; });
  return taken;
}

void require_trial(int trial) {
  if (trial < 0) throw Error(ErrorKind::kInternal, fmt::format("found trial {}, wanted 0 or more", trial));
}

void require_report(int trial, int epoch, int most) {
  require_trial(trial);
  if (epoch >= 1 && epoch <= most) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("trial {}: found a report of epoch {}, wanted 1 to {}", trial, epoch, most));
}

void require_same(int trial, int epoch, double known, double value) {
  if (known == value) return;
  throw Error(ErrorKind::kInternal, fmt::format("trial {}: found epoch {} reported as {} and as {}, wanted one value",
                                                trial, epoch, known, value));
}

}  // namespace hfta::search
