#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>

#include "search/choices.hpp"
#include "search/sampler.hpp"
#include "search/sampler/untried.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

// Spaces up to this size are shuffled as a whole, 12 bytes for each configuration; in larger ones drawing again where a
// configuration comes twice is cheaper.
constexpr std::int64_t kMostShuffled = 1 << 20;

// Draws of one pass over a shuffled space come from a place that no parameter's index reaches.
constexpr std::uint64_t kShuffle = ~std::uint64_t{0};

// One generator for each parameter: a draw's value depends only on the seed, the draw and the parameter's place.
std::vector<CountedRandom> generators(std::uint64_t seed, int draw, std::size_t count) {
  std::vector<CountedRandom> randoms;
  for (std::size_t i = 0; i < count; ++i)
    randoms.emplace_back(seed, Stream::kSample, static_cast<std::uint64_t>(draw), i);
  return randoms;
}

trials::Params sample_all(const trials::Space& space, std::vector<CountedRandom>& randoms) {
  trials::Params params;
  for (std::size_t i = 0; i < space.size(); ++i) {
    params.emplace_back(space[i].name, sample(space[i].distribution, randoms[i]));
  }
  return params;
}

// Independent draws, for infinitely many configurations or where repeats are allowed.
class Independent final : public Sampler {
 public:
  Independent(trials::Space space, std::uint64_t seed) : space_(std::move(space)), seed_(seed) {}

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    std::vector<trials::Params> asked;
    for (int i = 0; i < k; ++i) {
      auto randoms = generators(seed_, first + i, space_.size());
      asked.push_back(sample_all(space_, randoms));
    }
    return asked;
  }

 private:
  trials::Space space_;
  std::uint64_t seed_;
};

// One parameter of a finite space: its possible values, and the probability of each.
struct Axis {
  Choices choices;
  std::vector<std::int64_t> possible;  ///< Indices with a weight above 0; empty: all of them (weights are equal).
  std::vector<double> log_weights;     ///< Logarithms of the weights of `possible`.

  [[nodiscard]] std::int64_t count() const {
    return possible.empty() ? choices.count() : static_cast<std::int64_t>(possible.size());
  }
  [[nodiscard]] trials::ParamValue value(std::int64_t i) const {
    return choices.value(possible.empty() ? i : possible[static_cast<std::size_t>(i)]);
  }
};

Axis make_axis(Choices choices) {
  Axis axis{std::move(choices), {}, {}};
  // A longer list is not written out: its space is drawn from, not shuffled, and impossible values never come.
  if (axis.choices.count() > kMostShuffled) return axis;
  for (std::int64_t i = 0; i < axis.choices.count(); ++i) {
    const double weight = axis.choices.weight(i);
    if (weight <= 0) continue;
    axis.possible.push_back(i);
    axis.log_weights.push_back(std::log(weight));
  }
  return axis;
}

// A small finite space. Each pass walks all of it in an order drawn anew: weighted sampling without replacement by
// exponential keys (Efraimidis and Spirakis 2006), which is a plain shuffle where weights are equal. Keys are kept as
// logarithms, so that no product of small probabilities becomes 0.
class Shuffled final : public Sampler {
 public:
  Shuffled(trials::Space space, std::vector<Axis> axes, std::int64_t size, std::uint64_t seed)
      : space_(std::move(space)), axes_(std::move(axes)), size_(size), seed_(seed) {}

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    std::vector<trials::Params> asked;
    for (int i = 0; i < k; ++i) {
      const std::int64_t draw = std::int64_t{first} + i;
      shuffle(draw / size_);
      asked.push_back(configuration(order_[static_cast<std::size_t>(draw % size_)]));
    }
    return asked;
  }

 private:
  void shuffle(std::int64_t pass) {
    if (pass == pass_) return;
    CountedRandom random(seed_, Stream::kSample, static_cast<std::uint64_t>(pass), kShuffle);
    std::vector<double> keys(static_cast<std::size_t>(size_));
    for (std::int64_t n = 0; n < size_; ++n) {
      keys[static_cast<std::size_t>(n)] = std::log(-std::log1p(-random.uniform())) - log_weight(n);
    }
    order_.resize(keys.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    pass_ = pass;
  }

  [[nodiscard]] double log_weight(std::int64_t n) const {
    double sum = 0;
    for (const Axis& axis : axes_) {
      if (!axis.log_weights.empty()) sum += axis.log_weights[static_cast<std::size_t>(n % axis.count())];
      n /= axis.count();
    }
    return sum;
  }

  [[nodiscard]] trials::Params configuration(std::int64_t n) const {
    trials::Params params;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      params.emplace_back(space_[i].name, axes_[i].value(n % axes_[i].count()));
      n /= axes_[i].count();
    }
    return params;
  }

  trials::Space space_;
  std::vector<Axis> axes_;
  std::int64_t size_;
  std::uint64_t seed_;
  std::int64_t pass_ = -1;
  std::vector<std::int32_t> order_;  // the order of pass_
};

// A large finite space: draws are made in sequence, each again until it is new, and all of them are kept.
class Distinct final : public Sampler {
 public:
  Distinct(trials::Space space, std::vector<Axis> axes, std::int64_t size, std::uint64_t seed)
      : space_(std::move(space)), axes_(std::move(axes)), size_(size), seed_(seed) {}

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    const auto from = static_cast<std::size_t>(first), to = from + static_cast<std::size_t>(k);
    while (drawn_.size() < to) drawn_.push_back(draw(static_cast<int>(drawn_.size())));
    return {drawn_.begin() + static_cast<std::ptrdiff_t>(from), drawn_.begin() + static_cast<std::ptrdiff_t>(to)};
  }

 private:
  trials::Params draw(int number) {
    // Weights may be so uneven that their draws hardly ever give a new one; then any new one will do.
    constexpr int kWeighted = 64;
    if (static_cast<std::int64_t>(seen_.size()) == size_) seen_.clear();
    auto randoms = generators(seed_, number, space_.size());
    for (int attempt = 0;; ++attempt) {
      trials::Params params = attempt < kWeighted ? sample_all(space_, randoms) : any(randoms);
      if (seen_.insert(key_of(params)).second) return params;
    }
  }

  [[nodiscard]] trials::Params any(std::vector<CountedRandom>& randoms) const {
    trials::Params params;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const std::uint64_t index = randoms[i].below(static_cast<std::uint64_t>(axes_[i].count()));
      params.emplace_back(space_[i].name, axes_[i].value(static_cast<std::int64_t>(index)));
    }
    return params;
  }

  trials::Space space_;
  std::vector<Axis> axes_;
  std::int64_t size_;
  std::uint64_t seed_;
  std::vector<trials::Params> drawn_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::unique_ptr<Sampler> make_random(trials::Space space, std::uint64_t seed, Repeats repeats) {
  if (repeats == Repeats::kAllowed) return std::make_unique<Independent>(std::move(space), seed);
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();
  std::vector<Axis> axes;
  std::int64_t size = 1;
  for (const trials::Parameter& parameter : space) {
    auto choices = Choices::of(parameter.distribution);
    if (!choices) return std::make_unique<Independent>(std::move(space), seed);
    axes.push_back(make_axis(std::move(*choices)));
    size = size > kMany / axes.back().count() ? kMany : size * axes.back().count();
  }
  if (size > kMostShuffled) return std::make_unique<Distinct>(std::move(space), std::move(axes), size, seed);
  return std::make_unique<Shuffled>(std::move(space), std::move(axes), size, seed);
}

}  // namespace hfta::search
