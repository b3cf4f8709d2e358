#include "search/sampler/restricted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "search/choices.hpp"
#include "search/sampler/groups.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr int kBySampler = 32, kAtRandom = 10'000;  // draws by a sampler that learns, and then at random
constexpr int kInARow = 1'000'000;                  // of any other, none of which meets the constraints
constexpr int kRepeated = 4096;                     // draws that were made before, after which all count as made
constexpr std::int64_t kLongestGrid = 10'000'000;

Error unsatisfiable(const std::vector<Constraint>& constraints, int draws) {
  std::vector<std::string> texts;
  for (const Constraint& constraint : constraints) texts.push_back("'" + printable(constraint.text()) + "'");
  return {ErrorKind::kConfig,
          fmt::format("constraints: found none among {} configurations that meets {}; wanted a space "
                      "in which these are not so rare",
                      draws, join(texts))};
}

std::string key_of(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    const std::string word = trials::to_text(value);
    text += fmt::format("{}:{}:{}:{}:{}", name.size(), name, value.index(), word.size(), word);
  }
  return text;
}

// The draws of a sampler that does not learn, one after another, less what must not be tried.
class Filtered final : public Sampler {
 public:
  Filtered(trials::Space space, std::vector<Constraint> constraints, std::unique_ptr<Sampler> inner)
      : space_(std::move(space)), constraints_(std::move(constraints)), inner_(std::move(inner)) {
    finite_ = trials::is_conditional(space_) && std::all_of(space_.begin(), space_.end(), [](const auto& parameter) {
                return Choices::of(parameter.distribution).has_value();
              });
    if (const auto size = inner_->size()) count(*size);
  }

  std::vector<Params> ask(int first, int k, const History&) override {
    const auto from = static_cast<std::size_t>(first), to = from + static_cast<std::size_t>(k);
    while (drawn_.size() < to && next()) {
    }
    const std::size_t end = std::min(to, drawn_.size());
    if (from >= end) return {};
    return {drawn_.begin() + static_cast<std::ptrdiff_t>(from), drawn_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  [[nodiscard]] std::optional<std::int64_t> size() const override { return size_; }

 private:
  // A grid is walked once: how many combinations it has decides when the study ends.
  void count(std::int64_t size) {
    if (size > kLongestGrid) {
      throw Error(ErrorKind::kConfig, fmt::format("the grid has {} combinations, wanted at most {} where there are "
                                                  "conditions or constraints",
                                                  size, kLongestGrid));
    }
    while (next()) {
    }
    if (drawn_.empty()) throw unsatisfiable(constraints_, static_cast<int>(size));
    size_ = static_cast<std::int64_t>(drawn_.size());
  }

  // False: there are no more.
  bool next() {
    for (int broken_ones = 0, repeated = 0; broken_ones < kInARow;) {
      std::vector<Params> asked = inner_->ask(at_++, 1, {});
      if (asked.empty()) return false;
      Params params = applying(space_, asked.front());
      if (broken(constraints_, params) != nullptr) {
        ++broken_ones;
      } else if (finite_ && !tried_.insert(key_of(params)).second) {
        if (++repeated == kRepeated && !inner_->size()) tried_.clear();
      } else {
        drawn_.push_back(std::move(params));
        return true;
      }
    }
    throw unsatisfiable(constraints_, kInARow);
  }

  trials::Space space_;
  std::vector<Constraint> constraints_;
  std::unique_ptr<Sampler> inner_;
  bool finite_ = false;
  std::optional<std::int64_t> size_;
  int at_ = 0;  // the inner sampler's next draw
  std::vector<Params> drawn_;
  std::unordered_set<std::string> tried_;
};

// A sampler that learns is asked again under other seeds.
class Retried final : public Sampler {
 public:
  Retried(trials::Space space, std::uint64_t seed, std::vector<Constraint> constraints, SamplerFactory make,
          std::unique_ptr<Sampler> first)
      : space_(std::move(space)), seed_(seed), constraints_(std::move(constraints)), make_(std::move(make)) {
    samplers_.push_back(std::move(first));
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history) override {
    History known = history;
    std::vector<Params> asked;
    for (int number = first; number < first + k; ++number) {
      asked.push_back(draw(number, known));
      known.push_back({asked.back(), {}, std::nullopt, std::nullopt});
    }
    return asked;
  }

 private:
  [[nodiscard]] Params draw(int number, const History& history) {
    for (std::size_t attempt = 0; attempt < kBySampler; ++attempt) {
      if (attempt == samplers_.size()) samplers_.push_back(make_(space_, seed_of_group(seed_, attempt)));
      Params params = std::move(samplers_[attempt]->ask(number, 1, history).at(0));
      if (broken(constraints_, params) == nullptr) return params;
    }
    for (std::uint64_t attempt = 0; attempt < kAtRandom; ++attempt) {
      Params params = at_random(number, attempt);
      if (broken(constraints_, params) == nullptr) return params;
    }
    throw unsatisfiable(constraints_, kBySampler + kAtRandom);
  }

  [[nodiscard]] Params at_random(int number, std::uint64_t attempt) const {
    Params all;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      CountedRandom random(seed_, Stream::kSample, static_cast<std::uint64_t>(number), ((attempt + 1) << 32) + i);
      all.emplace_back(space_[i].name, sample(space_[i].distribution, random));
    }
    return applying(space_, all);
  }

  trials::Space space_;
  std::uint64_t seed_;
  std::vector<Constraint> constraints_;
  SamplerFactory make_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  // by attempt
};

}  // namespace

std::unique_ptr<Sampler> make_restricted(trials::Space space, std::uint64_t seed, std::vector<Constraint> constraints,
                                         SamplerFactory make, Conditions conditions) {
  const auto of_groups = [make, conditions](const trials::Space& all,
                                            std::uint64_t by_seed) -> std::unique_ptr<Sampler> {
    if (!trials::is_conditional(all) || conditions == Conditions::kBySampler) return make(all, by_seed);
    trials::Space plain = all;
    for (trials::Parameter& parameter : plain) parameter.when.clear();
    std::unique_ptr<Sampler> whole = make(plain, by_seed);
    return whole->size() ? std::move(whole) : make_grouped(all, by_seed, make);
  };
  std::unique_ptr<Sampler> inner = of_groups(space, seed);
  const bool conditional = trials::is_conditional(space);
  if (!conditional && constraints.empty()) return inner;
  if (!inner->learns()) return std::make_unique<Filtered>(std::move(space), std::move(constraints), std::move(inner));
  if (constraints.empty()) return inner;
  return std::make_unique<Retried>(std::move(space), seed, std::move(constraints), of_groups, std::move(inner));
}

}  // namespace hfta::search
