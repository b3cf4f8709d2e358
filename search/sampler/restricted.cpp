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
#include "search/sampler/untried.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr int kBySampler = 32, kAtRandom = 1'000'000;  // draws by a sampler that learns, and then at random
constexpr int kRepeatsBySampler = 6;                   // of these, draws that were made before: each is learnt anew
constexpr int kInARow = 1'000'000;                     // draws by another sampler, none of which meets the constraints
constexpr int kRepeated = 4096;                        // draws that were made before, after which all count as made
constexpr std::int64_t kMostCounted = 1 << 16;         // combinations that are walked to count the configurations
constexpr std::int64_t kLongestGrid = 10'000'000;

Error unsatisfiable(const std::vector<Constraint>& constraints, int draws) {
  std::vector<std::string> texts;
  texts.reserve(constraints.size());
  for (const Constraint& constraint : constraints) texts.push_back("'" + printable(constraint.text()) + "'");
  return {ErrorKind::kConfig,
          fmt::format("constraints: found none among {} configurations that meets {}; wanted a space "
                      "in which these are not so rare",
                      draws, join(texts))};
}

// The draws of a sampler that does not learn, one after another, without those that must not be tried.
class Filtered final : public Sampler {
 public:
  Filtered(trials::Space space, std::vector<Constraint> constraints, std::unique_ptr<Sampler> inner)
      : space_(std::move(space)), constraints_(std::move(constraints)), inner_(std::move(inner)) {
    finite_ = trials::is_conditional(space_) && Tried(space_).is_finite();
    if (const auto size = inner_->size()) count(*size);
  }

  std::vector<Params> ask(int first, int k, const History&, const Params&) override {
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

  // Takes the next draw that may be tried; false if there are no more.
  bool next() {
    const bool has_end = inner_->size().has_value();
    for (int broken_ones = 0, repeated = 0; has_end || broken_ones < kInARow;) {
      std::vector<Params> asked = inner_->ask(at_++, 1, {});
      if (asked.empty()) return false;
      Params params = applying(space_, asked.front());
      if (broken(constraints_, params) != nullptr) {
        ++broken_ones;
      } else if (finite_ && !tried_.insert(key_of(params)).second) {
        if (++repeated == kRepeated && !has_end) tried_.clear();
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

// The keys of all configurations of a finite space; empty: they are too many to be walked.
std::unordered_set<std::string> all_keys(trials::Space space, const std::vector<Constraint>& constraints) {
  std::int64_t size = 1;
  for (trials::Parameter& parameter : space) {
    parameter.distribution.values = possible_values(parameter.distribution);  // a grid has those of probability 0, too
    parameter.distribution.probabilities.clear();
    const std::int64_t count = Choices::of(parameter.distribution)->count();
    if (count > kMostCounted / size) return {};
    size *= count;
  }
  trials::Space plain = without_conditions(space);
  Filtered grid(std::move(space), constraints, make_grid(std::move(plain)));
  std::unordered_set<std::string> keys;
  for (const Params& params : grid.ask(0, static_cast<int>(size), {}, {})) keys.insert(key_of(params));
  return keys;
}

// A sampler that learns is asked again under other seeds.
class Retried final : public Sampler {
 public:
  // `compares`: a draw that was made before does not count either.
  Retried(trials::Space space, std::uint64_t seed, std::vector<Constraint> constraints, SamplerFactory make,
          bool compares)
      : space_(std::move(space)),
        seed_(seed),
        constraints_(std::move(constraints)),
        make_(std::move(make)),
        tried_(space_, compares ? Repeats::kAvoided : Repeats::kAllowed) {}

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    History known = history;
    tried_.reset(history);
    return in_turn(k, tried_, [&](int i) {
      const std::size_t seen = known.size();
      Params params = draw(first + i, known, given);
      known.resize(seen);
      known.push_back({params});
      return params;
    });
  }

 private:
  // Adds repeated draws to `known`: a sampler keeps away from those that it sees as running. Once all are tried, the
  // first draw is returned.
  [[nodiscard]] Params draw(int number, History& known, const Params& given) {
    std::optional<Params> repeated;
    int repeats = 0;
    for (std::size_t attempt = 0; attempt < kBySampler && repeats < kRepeatsBySampler; ++attempt) {
      Params params = std::move(sampler(attempt).ask(number, 1, known, given).at(0));
      if (broken(constraints_, params) != nullptr) continue;
      if (!tried_.contains(params) || (!repeated && is_full())) return params;
      known.push_back({params});
      ++repeats;
      if (!repeated) repeated = std::move(params);
    }
    return drawn_at_random(number, std::move(repeated));
  }

  // A random draw that was not tried; if none is found, `repeated` or else the first draw that was.
  [[nodiscard]] Params drawn_at_random(int number, std::optional<Params> repeated) {
    int repeats = 0;
    for (std::uint64_t attempt = 0; attempt < kAtRandom && repeats < kRepeated; ++attempt) {
      Params params = at_random(number, attempt);
      if (broken(constraints_, params) != nullptr) continue;
      if (!tried_.contains(params) || (!repeated && is_full())) return params;
      ++repeats;
      if (!repeated) repeated = std::move(params);
    }
    if (!repeated) throw unsatisfiable(constraints_, kBySampler + kAtRandom);
    return std::move(*repeated);
  }

  [[nodiscard]] Params at_random(int number, std::uint64_t attempt) const {
    Params all;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      CountedRandom random(seed_, Stream::kSample, static_cast<std::uint64_t>(number), ((attempt + 1) << 32) + i);
      all.emplace_back(space_[i].name, sample(space_[i].distribution, random));
    }
    return applying(space_, all);
  }

  [[nodiscard]] Sampler& sampler(std::size_t attempt) {
    if (attempt == samplers_.size())
      samplers_.push_back(make_(space_, seed_of_group(seed_, attempt), Repeats::kAvoided));
    return *samplers_[attempt];
  }

  // Whether no new configuration is left.
  [[nodiscard]] bool is_full() {
    if (!tried_.is_finite()) return false;
    if (!all_) all_ = all_keys(space_, constraints_);
    return !all_->empty() &&
           std::all_of(all_->begin(), all_->end(), [&](const std::string& key) { return tried_.contains_key(key); });
  }

  trials::Space space_;
  std::uint64_t seed_;
  std::vector<Constraint> constraints_;
  SamplerFactory make_;
  Tried tried_;
  // Keys of all configurations, empty where they are too many; unset until a draw is made again.
  std::optional<std::unordered_set<std::string>> all_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  // indexed by attempt
};

}  // namespace

std::unique_ptr<Sampler> make_restricted(trials::Space space, std::uint64_t seed, std::vector<Constraint> constraints,
                                         SamplerFactory make, Conditions conditions) {
  const bool conditional = trials::is_conditional(space), by_sampler = conditions == Conditions::kBySampler;
  const auto of_groups = [make = std::move(make), by_sampler](const trials::Space& all, std::uint64_t by_seed,
                                                              Repeats repeats) -> std::unique_ptr<Sampler> {
    if (!trials::is_conditional(all) || by_sampler) return make(all, by_seed, repeats);
    std::unique_ptr<Sampler> whole = make(without_conditions(all), by_seed, repeats);
    return whole->learns() ? make_grouped(all, by_seed, make) : std::move(whole);
  };
  std::unique_ptr<Sampler> inner = of_groups(space, seed, Repeats::kAvoided);
  if (!conditional && constraints.empty()) return inner;
  if (!inner->learns()) return std::make_unique<Filtered>(std::move(space), std::move(constraints), std::move(inner));
  const bool compares = !by_sampler;
  if (constraints.empty() && !compares) return inner;
  return std::make_unique<Retried>(std::move(space), seed, std::move(constraints), of_groups, compares);
}

std::optional<std::int64_t> grid_size(const trials::Space& space, const std::vector<Constraint>& constraints) {
  double product = 1;
  for (const trials::Parameter& parameter : space) {
    const std::optional<Choices> choices = Choices::of(parameter.distribution);
    if (!choices || choices->possible_count() < choices->count()) return std::nullopt;
    product *= static_cast<double>(choices->count());
  }
  if (product >= 0x1p53) return std::nullopt;
  if (constraints.empty() && !trials::is_conditional(space)) return static_cast<std::int64_t>(product);
  if (product > kMostCounted) return std::nullopt;
  return Filtered(space, constraints, make_grid(without_conditions(space))).size();
}

}  // namespace hfta::search
