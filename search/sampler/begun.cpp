#include "search/sampler/begun.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "search/completion.hpp"

namespace hfta::search {
namespace {

using trials::Params;

class Pointed final : public Sampler {
 public:
  Pointed(std::vector<Params> points, std::unique_ptr<Sampler> inner)
      : points_(std::move(points)), inner_(std::move(inner)) {}

  [[nodiscard]] bool learns() const override { return inner_->learns(); }
  [[nodiscard]] std::optional<std::int64_t> size() const override {
    const auto size = inner_->size();
    return size ? std::optional(*size + static_cast<std::int64_t>(points_.size())) : std::nullopt;
  }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    const int pointed = static_cast<int>(points_.size());
    std::vector<Params> asked;
    History known;
    for (int i = first; i < std::min(pointed, first + k); ++i) asked.push_back(points_[static_cast<std::size_t>(i)]);
    const int left = k - static_cast<int>(asked.size());
    if (left == 0) return asked;
    if (inner_->learns()) {
      known = history;
      for (const Params& params : asked) known.push_back({params});
    }
    for (Params& params : inner_->ask(std::max(first, pointed) - pointed, left, known, given))
      asked.push_back(std::move(params));
    return asked;
  }

 private:
  std::vector<Params> points_;
  std::unique_ptr<Sampler> inner_;
};

class Warm final : public Sampler {
 public:
  Warm(History prior, std::unique_ptr<Sampler> inner) : prior_(std::move(prior)), inner_(std::move(inner)) {}

  [[nodiscard]] bool learns() const override { return inner_->learns(); }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return inner_->size(); }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    History all = prior_;
    all.insert(all.end(), history.begin(), history.end());
    return inner_->ask(first, k, all, given);
  }

 private:
  History prior_;
  std::unique_ptr<Sampler> inner_;
};

}  // namespace

// Numbers below 0 belong to no trial: no point shares its random numbers with an enqueued trial.
Params completed_point(const trials::Space& space, const Params& point, std::uint64_t seed, int index,
                       const std::vector<Constraint>& constraints, std::string& problem) {
  Completion completion = complete(space, point, seed, -1 - index, constraints);
  problem = std::move(completion.problem);
  return std::move(completion.params);
}

std::unique_ptr<Sampler> make_pointed(const trials::Space& space, std::uint64_t seed,
                                      const std::vector<Constraint>& constraints, std::vector<Params> points,
                                      std::unique_ptr<Sampler> inner) {
  if (points.empty()) return inner;
  std::string problem;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i] = completed_point(space, points[i], seed, static_cast<int>(i), constraints, problem);
  }
  return std::make_unique<Pointed>(std::move(points), std::move(inner));
}

std::unique_ptr<Sampler> make_warm(History prior, std::unique_ptr<Sampler> inner) {
  if (prior.empty() || !inner->learns()) return inner;
  return std::make_unique<Warm>(std::move(prior), std::move(inner));
}

}  // namespace hfta::search
