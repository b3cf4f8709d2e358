#include "engine/fused/lent_ways.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/fused/memory.hpp"

namespace hfta::engine {

LentWays::LentWays(const fusion::WayQuestion& question, fusion::Lowering own, std::int64_t data, std::int64_t room)
    : graph_(question.graph),
      recipe_(question.recipe),
      question_{graph_,           recipe_,         question.device, question.width,
                question.threads, question.graphs, question.policy, question.evaluation_batch},
      own_(std::move(own)),
      data_(data),
      room_(room) {}

bool LentWays::any() const {
  return !fusion::on_threads(own_, question_.threads, question_.device, question_.graphs).empty();
}

std::vector<WayNeed> LentWays::needs(int lent) const {
  const std::vector<fusion::Lowering> ways =
      fusion::on_threads(own_, question_.threads + lent, question_.device, question_.graphs);
  const std::vector<fusion::WayMemory> memory = fusion::memory_of(question_, ways);
  std::vector<WayNeed> found;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    found.push_back({ways[i], memory_need(graph_, recipe_, memory[i], data_),
                     fusion::slots_at_work(ways[i], std::numeric_limits<int>::max(), question_.device)});
  }
  return found;
}

fusion::Lowering LentWays::with(int lent, int width) {
  if (lent == 0) return own_;
  const auto known = by_lent_.find(lent);
  const std::vector<WayNeed>& ways = known != by_lent_.end() ? known->second : by_lent_[lent] = needs(lent);
  const auto fits = [&](const WayNeed& way) { return way.total(width) <= room_; };
  const auto first = std::find_if(ways.begin(), ways.end(), fits);
  return first == ways.end() ? own_ : first->lowering;
}

}  // namespace hfta::engine
