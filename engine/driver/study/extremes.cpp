#include <algorithm>
#include <utility>

#include "engine/driver/study/study.hpp"
#include "search/space.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kMostCombinations = 256;

struct Axis {
  std::size_t at = 0;  // position in the space
  std::vector<trials::ParamValue> values;
};

trials::Params corner(const StudyConfig& config, bool high) {
  trials::Params params;
  for (const trials::Parameter& p : config.space) {
    const std::vector<trials::ParamValue> values = search::extremes(p.distribution);
    params.emplace_back(p.name, high ? values.back() : values.front());
  }
  return params;
}

// Counts through the axes as an odometer does; false after the last combination.
bool advance(std::vector<std::size_t>& digits, const std::vector<Axis>& axes) {
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (++digits[i] < axes[i].values.size()) return true;
    digits[i] = 0;
  }
  return false;
}

// Has the trainer check a trial. `all` may have parameters that do not apply.
void check(const StudyConfig& config, Trainer& trainer, const trials::Params& all) {
  const trials::Params params = trials::applying(config.space, all);
  if (search::broken(config.constraints, params) == nullptr) trainer.check(params);
}

}  // namespace

void check_extremes(const StudyConfig& config, Trainer& trainer) {
  std::vector<Axis> shapes, others;
  for (std::size_t i = 0; i < config.space.size(); ++i) {
    const bool shape = config.shape_changing.contains(config.space[i].name);
    Axis axis{i, search::extremes(config.space[i].distribution)};
    if (!shape || !config.space[i].when.empty()) others.push_back(axis);  // whether it applies depends on the corner
    if (shape) shapes.push_back(std::move(axis));
  }
  const trials::Params low = corner(config, false);
  const trials::Params high = corner(config, true);
  std::vector<std::size_t> digits(shapes.size(), 0);
  for (std::size_t done = 0; done < kMostCombinations; ++done) {
    for (trials::Params params : {low, high}) {
      for (std::size_t i = 0; i < shapes.size(); ++i) params[shapes[i].at].second = shapes[i].values[digits[i]];
      check(config, trainer, params);
    }
    if (!advance(digits, shapes)) break;
  }
  for (const Axis& axis : others) {
    for (const trials::ParamValue& value : axis.values) {
      trials::Params params = low;
      trials::make_apply(config.space, config.space[axis.at].name, params);
      params[axis.at].second = value;
      check(config, trainer, params);
    }
  }
}

}  // namespace hfta::engine
