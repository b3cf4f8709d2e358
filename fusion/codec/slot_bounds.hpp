#pragma once
/// The bounds of a slot's layers as numbers of its state, and what they are found from.
///
/// A step in which statistics are due (BoundCadence) sums up L for each layer in its backward, and behind its optimizer
/// step the error that each layer's gradient may have: `sigma` of the gradient's scale. The next step's forward finds a
/// layer's bound from these and from its input, right before that is encoded; what it needs of the step before is a few
/// numbers, so that no input is kept for it. Until then a layer has first_bound(). All of it is in the slot's row, and
/// is a function of the slot's own history.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fusion/codec/bounds.hpp"

namespace hfta::fusion {

/// Which trained weights have bounds, and where their numbers lie in a row of doubles.
class BoundLayout {
 public:
  /// `outputs`: by weight, the channels of the layer's output; 0 for a weight that has no bound. `below`: for the
  /// weight of each batch norm that has a bound, the layers to whose gradients the norm passes its noise on.
  explicit BoundLayout(std::vector<std::int64_t> outputs, std::map<std::size_t, std::vector<std::size_t>> below = {});

  [[nodiscard]] std::size_t weights() const { return outputs_.size(); }
  [[nodiscard]] bool has(std::size_t weight) const { return outputs_[weight] > 0; }
  [[nodiscard]] std::int64_t outputs(std::size_t weight) const { return outputs_[weight]; }
  [[nodiscard]] std::size_t offset(std::size_t weight) const { return offsets_[weight]; }
  [[nodiscard]] bool is_norm(std::size_t weight) const { return below_.contains(weight); }
  [[nodiscard]] const std::vector<std::size_t>& below(std::size_t norm) const { return below_.at(norm); }
  /// How many norms pass their noise on to the layer.
  [[nodiscard]] std::int64_t norms_above(std::size_t weight) const { return norms_above_[weight]; }
  /// Doubles of a row; 0 where no weight has a bound.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::vector<std::int64_t> outputs_;
  std::vector<std::size_t> offsets_;
  std::map<std::size_t, std::vector<std::size_t>> below_;
  std::vector<std::int64_t> norms_above_;
  std::size_t size_ = 0;
};

/// A row while its slot runs a step. A row of zeros is a slot that has not run yet; numbers that no step wrote (states
/// are files) give bounds of 0, or are as good as any.
class SlotBounds {
 public:
  /// Begins a step. Refers to its arguments.
  SlotBounds(const BoundLayout& layout, std::span<double> row, std::int64_t interval);

  /// Whether this step sums up L.
  [[nodiscard]] bool measures() const { return measures_; }
  /// This step's OutputSums, by output channel. Written by the layer's backward where measures().
  struct Sums {
    std::span<double> squares, square_of_sums;
    double* positions;
  };
  [[nodiscard]] Sums sums(std::size_t weight) const;
  /// Says the mean square of the layer's input; of a norm's, by its channels, coherence_of(), and then noise_gain().
  /// Told in steps that measure.
  void set_input(std::size_t weight, double mean_square) const;
  void set_coherence(std::size_t norm, double coherence) const;
  [[nodiscard]] double coherence(std::size_t norm) const;
  void set_gain(std::size_t norm, double gain) const;

  /// The layer's bound for this input; found anew where the step before summed up L. `groups`: the layer's groups.
  /// `share`: sigma of the config.
  float bound(std::size_t weight, const SavedInput& input, std::int64_t groups, double share);
  /// The bound of a batch norm's input, by its channels' means and deviations; likewise.
  float norm_bound(std::size_t norm, double share);
  /// Ends the step: the error that each layer's gradient may have, in steps that measure, and when the next one does.
  void set_wanted(std::size_t weight, double sigma) const;
  void end();

 private:
  [[nodiscard]] double& number(std::size_t weight, std::size_t k) const { return row_[layout_.offset(weight) + k]; }
  [[nodiscard]] std::vector<OutputSums> sums_by_group(std::size_t weight, std::int64_t groups) const;
  /// The number kBound, which is `now` from this step on.
  float renewed(std::size_t weight, float now);
  [[nodiscard]] float found_norm_bound(std::size_t norm) const;
  [[nodiscard]] float first_norm_bound(std::size_t norm, double share) const;

  const BoundLayout& layout_;
  std::span<double> row_;
  BoundCadence cadence_;
  bool measures_ = false, renews_ = false;
  double most_ = 1;  // movement of a bound in this step
};

}  // namespace hfta::fusion
