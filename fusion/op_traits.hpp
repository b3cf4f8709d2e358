#pragma once
/// Which of ATen's ops a model may use, and the properties of each: one table, which passes, importers and checks
/// query. Without torch. How an executor runs an op (its batching rule, its compiler) belongs to the executor.
///
/// Ops are admitted by their properties: functions of their tensors alone, their views, and the forms that overwrite
/// their first argument. An op that reads or writes files, takes another tensor's storage, prints, communicates with
/// other processes, or belongs to another library is in no class. Neither is any op that a later LibTorch adds.
///
/// A row names arguments as the op's schema does; an entry does not apply to an overload that has no such argument.
/// tests/fusion/eager/admitted_ops_test.cpp compares every row with LibTorch's schemas and tags.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

enum class OpClass {
  kPointwise,      ///< Element by element: mul, relu, where; also copies and changes of dtype.
  kReduction,      ///< Computed along dimensions: sum, softmax, cumsum, sort.
  kView,           ///< A view of the same memory with other sizes: reshape, slice.
  kRearrangement,  ///< Elements put elsewhere: cat, pad, gather, scatter, index.
  kProduct,        ///< Products of matrices and tensors: linear, einsum, cdist.
  kAlgebra,        ///< Matrix algebra: inverse, qr, solve.
  kTransform,      ///< Fourier transforms: fft_rfft2, stft.
  kConvolution,    ///< Convolutions, their transposes, im2col.
  kPool,           ///< Pooling and resampling: max_pool2d, upsample_bilinear2d, grid_sampler.
  kNorm,           ///< batch_norm, layer_norm.
  kAttention,      ///< scaled_dot_product_attention.
  kRecurrent,      ///< Layers and cells: lstm, gru_cell.
  kLookup,         ///< embedding, embedding_bag.
  kLoss,           ///< Losses within a model.
  kRandom,         ///< dropout, rand, bernoulli.
  kFactory,        ///< Tensors of numbers and sizes alone: zeros, arange.
};

/// What a call draws at random.
enum class Draws {
  kNothing,
  /// What a layer does to its input in training only: elements or channels dropped, slopes drawn.
  kNoise,
  kBernoulli,  ///< Zeros and ones: a one with probability `p`, or with the probability that the input's element gives.
  kUniform,    ///< Numbers from `from` to `to`, or from 0 to 1.
  kNormal,     ///< Normal numbers of mean `mean`, or 0.
  kExponential,  ///< Exponential numbers of rate `lambd`.
  kOther,        ///< Another distribution, whose mean is not used: randint, multinomial, cauchy.
};

/// What evaluation replaces a call by.
enum class Evaluation {
  kSame,      ///< The same call as in training.
  kFlagOff,   ///< The op with OpTraits::training false. A norm that keeps no running statistics stays as it is.
  kRateZero,  ///< The op with OpTraits::rate 0.
  kMean,      ///< The mean of what OpTraits::draws says, in every element.
  kDoubtful,  ///< Unknown: evaluation by a training graph is refused unless the config requests it.
};

/// How torch.nn's modules draw the first values of the parameters that the op reads; init_of() in graph/init_rules.hpp.
enum class InitRule {
  kUnknown,
  kFanIn,       ///< Uniform by the weight's fan: linear layers, convolutions.
  kSecondSize,  ///< Uniform by the weight's second size: bilinear.
  kGates,       ///< Uniform by the hidden size: recurrent layers.
  kNormal,      ///< N(0, 1): tables of embeddings.
  kIdentity,    ///< Scales are one, shifts zero; running variances one, means zero: norms.
  kAttention,   ///< Drawn as torch.nn.MultiheadAttention does.
};

/// What is known about the elements of a call's result.
enum class Elements {
  kComputed,
  kMoved,     ///< Elements of its first argument, elsewhere or of another type: permute, reshape, to.
  kRepeated,  ///< Elements of its first argument, some of them more than once: expand, tile.
};

/// How a norm updates its running statistics by those of the batch.
struct RunningStatistics {
  std::string_view mean, variance;  ///< Arguments: the buffers, or None; "": the op keeps none.
  std::string_view momentum;        ///< Argument: the share of the batch's statistics in the new ones.
  bool over_batch = false;          ///< One mean for all samples of a batch; false: for each sample.
  /// Position of the outputs that are the new mean and, next to it, variance; -1: the op writes its arguments, where
  /// OpTraits::training is true, though its schema does not say so.
  int first_output = -1;
};

struct OpTraits {
  OpClass kind = OpClass::kPointwise;
  bool in_place = false;  ///< Overwrites its first argument: "aten::relu_", "aten::add_.Tensor".

  Draws draws = Draws::kNothing;
  std::string_view rate = {};      ///< Argument: a probability, 0 to 1. Noise of rate 0 draws nothing.
  std::string_view layers = {};    ///< Argument: a number of layers, between which noise is drawn.
  std::string_view training = {};  ///< Argument: the flag of training. Where it is false nothing is drawn or written.
  Evaluation evaluation = Evaluation::kSame;
  RunningStatistics statistics = {};

  InitRule init = InitRule::kUnknown;
  int gates = 1;  ///< InitRule::kGates: gates whose weights are stacked in one tensor.

  Elements elements = Elements::kComputed;
  std::optional<double> constant = {};  ///< Every element that it gives is this number,
  std::string_view constant_of = {};    ///< or this argument.
  bool default_type = false;            ///< It gives torch's default type, unless the argument `dtype` says another.

  std::string_view table = {}, indices = {};  ///< Arguments of a lookup: the rows, and the integers that choose rows.
  std::string_view classes = {};  ///< Argument of a loss: classes, of which those of `ignore_index` are left out.
  std::string_view whole = {};    ///< Argument: an integer, though it has the name of a factor.

  /// The first arguments of every overload, in order, for rooms that have no schemas; "": nobody there asks.
  std::string_view arguments = {};
};

/// Traits of an op, by schema name and overload ("aten::add_.Tensor"); null if a model may not use it. Never freed.
[[nodiscard]] const OpTraits* op_traits(const std::string& op);

/// Why op_traits() has no entry, as a message for the user.
[[nodiscard]] std::string why_not_admitted(const std::string& op);

/// "add" of "aten::add_.Tensor": the name that an op and its form in place share.
[[nodiscard]] std::string_view base_name(std::string_view op);
/// "aten::add.Tensor" of "aten::add_.Tensor"; others are themselves, also those that have no such form.
[[nodiscard]] std::string out_of_place(const std::string& op);

/// A call's argument by the name that the schema gives it: found by Node::names, else by OpTraits::arguments. Null: the
/// call leaves it out, or neither knows the name.
[[nodiscard]] const Arg* argument(const Node& node, std::string_view name);

/// Whether the argument is a rate or factor, which may differ between slots, even where a model writes it as an
/// integer; any other integer may be a size. Numbers that are written as fractions may all differ.
[[nodiscard]] bool is_factor(const std::string& op, std::string_view argument);

/// A number that a call may leave out, and what it is then.
struct DefaultNumber {
  std::string_view argument;
  double value = 0;
};

/// Those of an op that may differ between slots: exports leave out what equals the schema's default.
[[nodiscard]] std::vector<DefaultNumber> default_numbers(std::string_view op);

}  // namespace hfta::fusion
