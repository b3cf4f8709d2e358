#include "search/sampler/untried.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "search/choices.hpp"
#include "search/sampler/given.hpp"

namespace hfta::search {
namespace {

constexpr int kMostRandom = 4096;  // random draws that are looked through for one that was not tried

}  // namespace

std::string key_of(const trials::Params& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    const std::string word = trials::to_text(value);
    text += fmt::format("{}:{}:{}:{}:{}", name.size(), name, value.index(), word.size(), word);
  }
  return text;
}

Tried::Tried(const trials::Space& space, Repeats repeats) : keeps_(repeats == Repeats::kAvoided), size_(1) {
  if (repeats == Repeats::kAllowed) size_.reset();
  for (const trials::Parameter& parameter : space) {
    const auto choices = Choices::of(parameter.distribution);
    size_ = choices && size_ ? std::optional(*size_ * static_cast<double>(choices->possible_count())) : std::nullopt;
  }
}

void Tried::reset(const History& history) {
  if (!keeps_) return;
  const bool begins =
      added_.size() <= history.size() &&
      std::equal(added_.begin(), added_.end(), history.begin(),
                 [](const trials::Params& added, const SeenTrial& trial) { return added == trial.params; });
  if (!begins) {
    added_.clear();
    keys_.clear();
  }
  for (std::size_t i = added_.size(); i < history.size(); ++i) add(history[i].params);
}

void Tried::add(const trials::Params& params) {
  if (!keeps_) return;
  keys_.insert(key_of(params));
  added_.push_back(params);
}

trials::Params untried(Sampler& random, int number, const Tried& tried, const trials::Params& given) {
  trials::Params first = std::move(random.ask(number, 1, {}).front());
  if (tried.is_full()) return first;
  trials::Params params = with_given(first, given);
  for (int i = 0; i < kMostRandom && tried.contains(params); ++i) {
    params = with_given(std::move(random.ask(number + 1 + i, 1, {}).front()), given);
  }
  if (!given.empty() && tried.contains(params)) return untried(random, number, tried);
  return params;
}

}  // namespace hfta::search
