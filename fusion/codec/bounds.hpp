#pragma once
/// How far saved values may be off: the error that a bound makes in a layer's gradient, the bound that makes a wanted
/// one, and when bounds are found anew.
///
/// A layer's weight gradient is a sum over samples and positions, dW = sum L x, of the loss's gradient L with respect
/// to the layer's output, times the saved input x. If every x that is not 0 is off by an error of its own, uniform in
/// [-bound, bound], whose variance is bound^2 / 3, an element of dW is off by a sum of many such, which is normal with
///
///     sigma = bound sqrt(R / 3 sum L^2)                                                                          (1)
///
/// where R is the share of values that are not 0, and the sum is over the samples and positions of the output's
/// channel. The model, and the rule of 1 % of the gradient's scale, are those of COMET (Jin et al., VLDB 2022,
/// equations 1 to 3 and 11), whose sigma ~ a L sqrt(N) bound has a fitted constant a instead of the sum.
///
/// Errors are not always so. Values behind a relu that lie within the bound all become smaller, with no negative ones
/// to make up for it; where L is much the same at all positions (in front of a mean over them), that adds up. So (1)
/// only says where to begin. The error that coding makes in these very values has a mean m and a mean square v. What a
/// constant error m does is known, m sum L; the rest meets what L is beside its own mean over n positions:
///
///     sigma^2 = m^2 (sum L)^2 + (v - m^2) (sum L^2 - (sum L)^2 / n)                                              (2)
///
/// is what is held below the wanted error. Each channel of the input is a term of its own, with its m and v and the L
/// of the outputs that it has a part in (of all, or of those of its group); sigma^2 is the mean over channels. Sums
/// leave out positions at which a weight meets padding: a wide or dilated kernel on a small image does at many.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hfta::fusion {

/// A layer's saved input, row-major [rows, channels]: samples and positions by channels.
struct SavedInput {
  std::span<const float> values;
  std::size_t channels = 1;
};

/// What one step shows of the L of the outputs that a channel of the input has a part in.
struct OutputSums {
  double squares = 0;        ///< Sum of L^2 over samples and positions; the mean over the outputs' channels.
  double square_of_sum = 0;  ///< Square of the sum of L; the mean likewise.
  double positions = 1;      ///< n: how many L are summed.
};

/// The error x' - x, where x' is the multiple of 2 bound that is nearest to x; 0 for values that have none.
struct CodingError {
  double mean = 0, square = 0;  ///< Means of the error and of its square.
};
/// Coding errors by channel.
[[nodiscard]] std::vector<CodingError> coding_errors(const SavedInput& input, float bound);

// Below, `outputs` has an element for each of equally large groups of channels: from one for all to one for each.

/// sigma by (1), of a bound.
[[nodiscard]] double uniform_error(const SavedInput& input, std::span<const OutputSums> outputs, float bound);
/// sigma by (2), the standard deviation of a weight gradient's elements.
[[nodiscard]] double gradient_error(const SavedInput& input, std::span<const OutputSums> outputs, float bound);

/// A bound whose error by (1) and (2) is at most `sigma`, as large as a few steps find; 0, which keeps everything as it
/// is (codec.hpp), where there is none: a sigma or sums that are 0, negative, infinite or NaN.
[[nodiscard]] float bound_for(const SavedInput& input, std::span<const OutputSums> outputs, double sigma);

/// A bound for a layer of which nothing is known yet but its input: `share` of the gradient's scale, if L has a mean of
/// 0 and nothing to do with x. The elements of dW are then normal with the variance mean x^2 sum L^2, and (1) gives
///
///     bound = share sqrt(6 / pi mean x^2 / R)                                                                    (3)
///
/// in which L does not occur. Gradients are rather larger than that in a net that has something to learn. 0 where there
/// is none.
[[nodiscard]] float first_bound(const SavedInput& input, double share);

/// The scale of a layer's gradient: the mean of its absolute values over an optimizer's state that averages gradients.
/// Told in pieces, in order, it has the bits of all at once.
class GradientScale {
 public:
  void add(std::span<const float> state);
  /// `state_per_gradient`: how large the state is for a constant gradient of 1. That is 1 for Adam's exp_avg, and
  /// 1 / (1 - mu) for SGD's momentum buffer v = mu v + g. 0 if nothing was told.
  [[nodiscard]] double value(double state_per_gradient) const;

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

/// When a slot's bounds are found anew: every `interval` steps, sooner while they move. Plain data, a part of a slot's
/// state: the steps at which bounds change are a function of the slot's own history.
struct BoundCadence {
  std::int64_t interval = 1000;  ///< Steps between two refreshes, at most.
  std::int64_t current = 1;      ///< The interval at present.
  std::int64_t left = 0;         ///< Steps until the next refresh; 0: before the next step.

  /// Whether bounds are to be found before this step. Call it once a step.
  [[nodiscard]] bool due();
  /// Says how the bounds moved at a refresh: `most`, the largest ratio of a layer's new bound to its old one, or of the
  /// old one to the new. Beyond 2 the interval is halved, to no less than 1; otherwise it doubles until it is
  /// `interval`.
  void moved(double most);
};

/// The ratio that moved() takes, at least 1: infinite where one of the two is 0 and the other is not.
[[nodiscard]] double movement(float before, float now);

}  // namespace hfta::fusion
