#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "engine/simulate/curves.hpp"

namespace hfta::engine {
namespace {

using trials::Distribution;
using trials::DistributionKind;

constexpr double kStartLoss = 2.3;  // ln 10: a guess among ten classes
constexpr double kNoise = 0.01;
constexpr double kDivergingShare = 0.02;

std::optional<double> number_in(const trials::ParamValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

// Whether min and max are values, and the logarithms between them uniform.
bool is_logarithmic_between_values(DistributionKind kind) {
  return kind == DistributionKind::kLogUniformValues || kind == DistributionKind::kQLogUniformValues ||
         kind == DistributionKind::kInvLogUniformValues;
}

// The place of a value in its range, 0 to 1; words count by their place in the list.
double place_of(const Distribution& distribution, const trials::ParamValue& value) {
  if (distribution.kind == DistributionKind::kCategorical) {
    const auto found = std::find(distribution.values.begin(), distribution.values.end(), value);
    const auto last = static_cast<double>(std::max<std::size_t>(distribution.values.size(), 2) - 1);
    return static_cast<double>(found - distribution.values.begin()) / last;
  }
  const double x = number_in(value).value_or(0);
  double low = distribution.min, high = distribution.max;
  if (is_logarithmic_between_values(distribution.kind)) {
    return std::clamp((std::log(x) - std::log(low)) / std::max(1e-12, std::log(high) - std::log(low)), 0.0, 1.0);
  }
  if (distribution.kind == DistributionKind::kLogUniform) low = std::exp(low), high = std::exp(high);
  return std::clamp((x - low) / std::max(1e-12, high - low), 0.0, 1.0);
}

class InventedCurves final : public Curves {
 public:
  explicit InventedCurves(const StudyConfig& config)
      : space_(config.searched()), objectives_(config.objectives), seed_(config.seed) {
    for (std::size_t j = 0; j < objectives_.size(); ++j) {
      std::vector<double>& optimum = optima_.emplace_back();
      for (std::size_t i = 0; i < space_.size(); ++i) {
        optimum.push_back(CountedRandom(seed_, Stream::kSimulation, 0, i + j * space_.size()).uniform());
      }
    }
  }

  [[nodiscard]] std::map<std::string, double> at(int number, const trials::Params& params, int epoch) const override {
    const double distance = distance_of(params, optima_.front());
    CountedRandom trial(seed_, Stream::kSimulation, 1, static_cast<std::uint64_t>(number));
    const double decay = 0.5 + trial.uniform();
    const bool diverges = trial.uniform() < 2 * kDivergingShare * distance;
    const int diverges_at = 1 + static_cast<int>(trial.below(4));
    CountedRandom noise(seed_, Stream::kSimulation, static_cast<std::uint64_t>(number) + 2,
                        static_cast<std::uint64_t>(epoch));
    const double drawn = noise.normal();
    const auto loss = [&](double away) {
      const double level = 0.05 + away;
      return level + (kStartLoss - level) * std::pow(1.0 + epoch, -decay) + kNoise * drawn;
    };
    const bool is_gone = diverges && epoch >= diverges_at;
    const auto shown = [&](double value) { return is_gone ? std::numeric_limits<double>::quiet_NaN() : value; };
    std::map<std::string, double> metrics = {{"train_loss", shown(loss(distance))},
                                             {"val_loss", shown(loss(distance)) + 0.05}};
    for (std::size_t j = 0; j < objectives_.size(); ++j) {
      const double own = shown(loss(distance_of(params, optima_[j])));
      const bool minimize = objectives_[j].goal == trials::Goal::kMinimize;
      metrics.insert_or_assign(objectives_[j].metric, minimize ? own + 0.05 : std::exp(-own));
      if (objectives_[j].metric == kParameterCount) metrics[kParameterCount] = size_of(params);
    }
    return metrics;
  }

 private:
  [[nodiscard]] double distance_of(const trials::Params& params, const std::vector<double>& optimum) const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const trials::ParamValue* value = trials::find_value(params, space_[i].name);
      if (value == nullptr) continue;  // the parameter does not apply
      const double away = place_of(space_[i].distribution, *value) - optimum[i];
      sum += away * away;
      ++count;
    }
    return std::sqrt(sum / std::max(1.0, count));
  }

  // The number of parameters: it is larger towards the end of every range.
  [[nodiscard]] double size_of(const trials::Params& params) const {
    double size = 1000;
    for (const trials::Parameter& parameter : space_) {
      const trials::ParamValue* value = trials::find_value(params, parameter.name);
      if (value != nullptr) size += std::round(1000 * place_of(parameter.distribution, *value));
    }
    return size;
  }

  trials::Space space_;
  trials::Objectives objectives_;
  std::uint64_t seed_;
  std::vector<std::vector<double>> optima_;  // by objective
};

}  // namespace

std::unique_ptr<Curves> make_invented_curves(const StudyConfig& config) {
  return std::make_unique<InventedCurves>(config);
}

}  // namespace hfta::engine
