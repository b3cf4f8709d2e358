#include <unordered_set>
#include <utility>

#include "search/sampler.hpp"
#include "search/sampler/sobol_points.hpp"
#include "search/sampler/untried.hpp"
#include "search/space.hpp"

namespace hfta::search {
namespace {

trials::Params params_at(const trials::Space& space, const std::vector<double>& point) {
  trials::Params params;
  for (std::size_t i = 0; i < space.size(); ++i) {
    params.emplace_back(space[i].name, quantile(space[i].distribution, point[i]));
  }
  return params;
}

// For infinitely many configurations, or where repeats are allowed: each draw is its point.
class Sobol final : public Sampler {
 public:
  Sobol(trials::Space space, std::uint64_t seed)
      : space_(std::move(space)), points_(space_.size(), seed, Stream::kSobol) {}

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    std::vector<trials::Params> asked;
    for (const std::vector<double>& point :
         points_.points(static_cast<std::uint64_t>(first), static_cast<std::size_t>(k))) {
      asked.push_back(params_at(space_, point));
    }
    return asked;
  }

 private:
  trials::Space space_;
  SobolPoints points_;
};

// For finite spaces: points that repeat a configuration are passed over until all were tried. All draws are kept.
class DistinctSobol final : public Sampler {
 public:
  DistinctSobol(trials::Space space, std::uint64_t seed)
      : space_(std::move(space)),
        points_(space_.size(), seed, Stream::kSobol),
        random_(make_random(space_, seed)),
        tried_(space_) {}

  std::vector<trials::Params> ask(int first, int k, const History&, const trials::Params&) override {
    const auto from = static_cast<std::ptrdiff_t>(first), to = from + k;
    while (static_cast<std::ptrdiff_t>(drawn_.size()) < to) {
      if (tried_.is_full()) tried_.reset({});
      drawn_.push_back(next());
      tried_.add(drawn_.back());
    }
    return {drawn_.begin() + from, drawn_.begin() + to};
  }

 private:
  trials::Params next() {
    constexpr std::size_t kRun = 64;
    constexpr int kMostRuns = 64;  // then few are left, and random search finds those at once
    for (int run = 0; run < kMostRuns; ++run) {
      const auto points = points_.points(point_, kRun);
      for (std::size_t i = 0; i < kRun; ++i) {
        trials::Params params = params_at(space_, points[i]);
        if (tried_.contains(params)) continue;
        point_ += i + 1;
        return params;
      }
      point_ += kRun;
    }
    return untried(*random_, static_cast<int>(drawn_.size()), tried_);
  }

  trials::Space space_;
  SobolPoints points_;
  std::unique_ptr<Sampler> random_;
  Tried tried_;
  std::uint64_t point_ = 0;  // the next point that was not looked at
  std::vector<trials::Params> drawn_;
};

}  // namespace

std::unique_ptr<Sampler> make_sobol(trials::Space space, std::uint64_t seed, Repeats repeats) {
  if (Tried(space, repeats).is_finite()) return std::make_unique<DistinctSobol>(std::move(space), seed);
  return std::make_unique<Sobol>(std::move(space), seed);
}

}  // namespace hfta::search
