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
/// is what is held below the wanted error; and no bound is more than the root mean square of x where it is not 0, as
/// the errors of larger ones have little to do with chance. Each channel of the input is a term of its own, with its m
/// and v and the L of the outputs that it has a part in (of all, or of those of its group); sigma^2 is the mean over
/// channels. Sums leave out positions at which a weight meets padding: a wide or dilated kernel on a small image does
/// at many.
///
/// A batch norm's input is another case. What lies encoded of it is xn, the input by its channel's mean and deviation,
/// whose variance is 1 in each channel: one bound suits all. The norm's backward reads it for the gradient of its own
/// weight, sum dy xn, to which (1) applies with dy in the place of L; and for the gradient that it passes on,
///
///     dx = scale (dy - mean dy - xn mean(dy xn)),
///
/// from which the gradients of all layers below are made. An error e in xn makes noise in dx,
///
///     -scale (e mean(dy xn) + xn mean(dy e)).
///
/// The first term is white. The second has but a random factor for each channel, mean(dy e), of variance
/// mean dy^2 bound^2 / 3n; but what it makes of a layer's gradient, sum xn x times that factor, adds up over the n
/// positions where xn and the layer's input x go together. By their mean squared correlation, c, it does as much harm
/// as white noise of the variance c mean dy^2 bound^2 / 3. The share of noise in dx is then, by root mean squares,
///
///     noise = bound gain / sqrt 3,    gain^2 = sum scale^2 (mean(dy xn)^2 + c mean dy^2)
///                                            / sum scale^2 (mean dy^2 - (mean dy)^2 - mean(dy xn)^2)              (4)
///
/// with the sums over channels. The layer's input is gone where c is wanted. But xn is a mixture of what the layer
/// reads, and so are its other channels, by other weights: a channel's mean squared correlation with those is what it
/// would be with the inputs, were the weights drawn. That is taken for c, and 1 where xn may be something else. It is
/// taken, too, that e has to do neither with dy nor with xn, for which the bound has to be small: kMostOfDeviation.
///
/// The noise's share goes down the net with dx. What a layer below can take of it: its gradient may be off by
/// sigma, and pure noise of the energy of its L would make elements of it of sqrt(mean x^2 sum L^2),
///
///     noise <= kPassedOn / sqrt(K) sigma / sqrt(mean x^2 sum L^2)                                                (5)
///
/// where it is taken that norms and layers on the way keep the share as it is. K norms above the layer share that room
/// equally. Their noise adds up to kPassedOn of sigma, which beside the error of the layer's own input is little:
/// sqrt(1 + kPassedOn^2).

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

/// Share of sigma that the noise of all batch norms above a layer may make of its gradient's error.
inline constexpr double kPassedOn = 0.6;

/// Most that the bound of a norm's input is, of its channels' deviations: few bits are saved beyond, and errors then
/// have to do with dy, as a relu behind the norm cuts off what is below 0 of both.
inline constexpr double kMostOfDeviation = 0.0625;

/// One channel of a batch norm in a step: its factor, and means over its n positions.
struct NormChannel {
  double scale = 0;    ///< The norm's weight by the channel's deviation.
  double square = 0;   ///< Of dy^2.
  double mean = 0;     ///< Of dy.
  double product = 0;  ///< Of dy xn.
};
/// The gain of (4); infinite where noise is passed on and nothing else.
[[nodiscard]] double noise_gain(std::span<const NormChannel> channels, double coherence);

/// c of (4) by some rows [rows, channels] of xn: the mean squared correlation of two of its channels, without what so
/// few rows make of none; from kLeastCoherence to 1. 1 for a single channel.
[[nodiscard]] double coherence_of(const SavedInput& rows);
inline constexpr double kLeastCoherence = 1.0 / 64;

/// The right side of (5). `squares`: sum L^2, the mean over the layer's output channels; 0 of it: nothing reaches the
/// layer, which bears any noise (infinity).
[[nodiscard]] double bearable_noise(double sigma, double mean_square_of_x, double squares, std::int64_t norms_above);

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
