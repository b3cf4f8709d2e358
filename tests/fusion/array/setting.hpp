#pragma once
/// A model with random data to train and validate it on.

#include <utility>

#include "fusion/epochs.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {

struct Setting {
  Model model;
  DeviceData train, validation;
};

struct SettingSize {
  std::int64_t samples;  ///< Of each set.
  int epochs;            ///< Recipe::epochs
  std::uint64_t seed;    ///< Of four numbers in a row that key the data.
};

inline Setting random_setting(Model model, std::int64_t classes, const Shape& input, const SettingSize& size) {
  Shape shape = input;
  shape.insert(shape.begin(), size.samples);
  const DType dtype = model.recipe.dtype;
  model.recipe.epochs = size.epochs;
  const auto data = [&](std::uint64_t seed) {
    return DeviceData{
        {counted_normal(shape, dtype, seed)}, counted_labels(size.samples, classes, seed + 1), size.samples};
  };
  return {std::move(model), data(size.seed), data(size.seed + 2)};
}

}  // namespace hfta::fusion::testing
