#pragma once
/// A model in two parts: in front what is the same function of one sample for every trial and in training as in
/// evaluation, whose results (features) can be kept; behind it the rest, a model of features.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

struct SplitModel {
  /// The graph from samples to features: its outputs, [N, ...] each. All its weights are frozen.
  Graph prefix;
  std::vector<std::size_t> prefix_inputs = {};  ///< By Graph::inputs of `prefix`: the model's input.
  /// The graph from features, and other inputs of the model that it reads, to the model's outputs. It has the model's
  /// weights and hypers; those that only the prefix reads are read by nothing.
  Graph rest;
  std::vector<std::size_t> rest_inputs = {};  ///< By Graph::inputs of `rest` behind the features: the model's input.
  /// Samples that the prefix runs with at a time: the fewest that the model was exported for.
  std::int64_t block = 1;
  std::int64_t bytes_per_sample = 0;  ///< Bytes of one sample's features.
  double multiplies_per_sample = 0;   ///< Multiplications of the prefix, about.
  /// Equal for two prefixes exactly if they compute the same of the same samples.
  std::string key = {};
};

/// The frozen prefix of a model, or the reason why there is none.
struct FrozenPrefix {
  std::shared_ptr<const SplitModel> split = {};  ///< Null: there is none, or keeping its results would not pay.
  /// Why frozen layers are not part of it, or there is none though layers are frozen; what to write instead. "":
  /// nothing prevents it.
  std::string prevented = {};
};

/// Splits a model (without its loss). A value belongs to the prefix if it depends on data and frozen weights alone,
/// nothing of it is drawn at random, and each sample's part is proved to depend on that sample alone
/// (passes/rows.hpp). It is cut where features take the fewest bytes behind its last product. Keeping pays if
/// they cost at least 16 multiplications per byte. A model with an evaluation of its own has the same prefix there, or
/// none. The model's Graph::fixed_batch has to be 0. Throws Error{kConfig} as with_complete_arguments.
[[nodiscard]] FrozenPrefix frozen_prefix_of(const Graph& model);

}  // namespace hfta::fusion
