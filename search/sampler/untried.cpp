#include "search/sampler/untried.hpp"

#include <utility>

#include "search/choices.hpp"

namespace hfta::search {
namespace {

constexpr int kMostRandom = 4096;  // random draws that are looked through for one that was not tried

}  // namespace

std::string key_of(const trials::Params& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    const std::string word = trials::to_text(value);
    text += static_cast<char>('0' + value.index());
    text += std::to_string(word.size());
    text += ':';
    text += word;
  }
  return text;
}

Tried::Tried(const trials::Space& space) : size_(1) {
  for (const trials::Parameter& parameter : space) {
    const auto choices = Choices::of(parameter.distribution);
    size_ = choices && size_ ? std::optional(*size_ * static_cast<double>(choices->count())) : std::nullopt;
  }
}

void Tried::reset(const History& history) {
  keys_.clear();
  for (const SeenTrial& trial : history) add(trial.params);
}

void Tried::add(const trials::Params& params) {
  if (size_) keys_.insert(key_of(params));
}

bool Tried::contains(const trials::Params& params) const { return size_ && keys_.contains(key_of(params)); }

trials::Params untried(Sampler& random, int number, const Tried& tried) {
  trials::Params params = std::move(random.ask(number, 1, {}).front());
  if (tried.is_full()) return params;
  for (int i = 0; i < kMostRandom && tried.contains(params); ++i) {
    params = std::move(random.ask(number + 1 + i, 1, {}).front());
  }
  return params;
}

}  // namespace hfta::search
