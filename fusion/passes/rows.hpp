#pragma once
/// Finds values of a graph that are functions of one sample alone: an analysis that proves it by call, from the table
/// of ops (fusion/op_rows.hpp). What it cannot prove may depend on the whole batch.

#include <optional>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

enum class DependsOn {
  kNothing,  ///< Equal for all batches: known weights, constants and what is made of them.
  kSample,   ///< Has samples along one dimension; each sample's part is the same function of that sample alone.
  kPlaces,   ///< The places of the samples in the batch, 0 to N - 1, along one dimension; of a number: N.
  kMore,     ///< Perhaps all samples, their number, chance, a weight that is not known, or a number that a trial sets.
};

/// Place of samples in a tensor: in dimension `dim`, whose places are `outer` times those of all samples one behind
/// another, `parts` consecutive ones of each. [T * N, F] of T times N samples has `outer` T, [N * T, F] has `parts` T.
struct SampleDim {
  std::size_t dim = 0;
  std::int64_t parts = 1;
  std::int64_t outer = 1;
  bool operator==(const SampleDim&) const = default;
};

/// The dimension as declared, with `outer` 1; nullopt: none, or more than one, depends on the number of samples.
[[nodiscard]] std::optional<SampleDim> sample_dim(const Value& value);

/// By value of a graph of with_complete_arguments. `known`: by weight, whether it has the same values whoever trains.
/// Values that a call writes in place, and all that share their memory, are kMore.
[[nodiscard]] std::vector<DependsOn> dependence_of(const Graph& graph, const std::vector<bool>& known);

/// dependence_of() if calls that draw noise, or take statistics over the batch, did neither.
[[nodiscard]] std::vector<DependsOn> dependence_in_evaluation(const Graph& graph, const std::vector<bool>& known);

/// dependence_of() for training of one slot on a divided batch: all weights and numbers that the trial sets are known,
/// and masks of dropout are functions of the sample and its place in the whole batch (SlotRandom::elements_before),
/// where samples are the first dimension.
[[nodiscard]] std::vector<DependsOn> dependence_in_shares(const Graph& graph);

}  // namespace hfta::fusion
