// Norms, attention, recurrent layers, lookups.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

constexpr RunningStatistics kWritten = {
    .mean = "running_mean", .variance = "running_var", .momentum = "momentum", .over_batch = true};

// Statistics of an op whose outputs from this position on are the new ones.
constexpr RunningStatistics given_at(int output) {
  RunningStatistics statistics = kWritten;
  statistics.first_output = output;
  return statistics;
}

// Norms that use the batch's statistics in training, and the running ones in evaluation.
constexpr OpTraits batch_norm(const RunningStatistics& statistics) {
  return {.kind = OpClass::kNorm,
          .training = "training",
          .evaluation = Evaluation::kFlagOff,
          .statistics = statistics,
          .init = InitRule::kIdentity,
          .arguments = "input weight bias running_mean running_var training momentum eps"};
}

constexpr OpTraits recurrent_cell(int gates) {
  return {.kind = OpClass::kRecurrent, .init = InitRule::kGates, .gates = gates};
}

// Traits of recurrent layers, which drop elements of what they hand on to the next layer.
constexpr OpTraits recurrent(int gates) {
  OpTraits traits = recurrent_cell(gates);
  traits.draws = Draws::kNoise;
  traits.rate = "dropout";
  traits.layers = "num_layers";
  traits.training = "train";
  traits.evaluation = Evaluation::kFlagOff;
  return traits;
}

constexpr OpFamily kFamilies[] = {
    {Forms::kFunctional, "batch_norm native_batch_norm", batch_norm(kWritten)},
    {Forms::kFunctional, "_native_batch_norm_legit_functional", batch_norm(given_at(3))},
    // An op without a flag: evaluation is another op.
    {Forms::kFunctional,
     "_batch_norm_with_update_functional",
     {.kind = OpClass::kNorm,
      .evaluation = Evaluation::kDoubtful,
      .statistics = given_at(4),
      .init = InitRule::kIdentity}},
    {Forms::kFunctional,
     "instance_norm",
     {.kind = OpClass::kNorm,
      .training = "use_input_stats",
      .evaluation = Evaluation::kFlagOff,
      .statistics = {.mean = "running_mean", .variance = "running_var", .momentum = "momentum"},
      .init = InitRule::kIdentity,
      .arguments = "input weight bias running_mean running_var use_input_stats momentum eps"}},
    // Norms by running statistics alone, or by none.
    {Forms::kFunctional,
     "_batch_norm_no_update _fused_rms_norm _native_batch_norm_legit_no_training group_norm layer_norm "
     "native_group_norm native_layer_norm rms_norm",
     {.kind = OpClass::kNorm, .init = InitRule::kIdentity}},

    {Forms::kFunctional,
     "_scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention",
     {.kind = OpClass::kAttention,
      .draws = Draws::kNoise,
      .rate = "dropout_p",
      .evaluation = Evaluation::kRateZero,
      .init = InitRule::kAttention}},

    {Forms::kFunctional, "lstm", recurrent(4)},
    {Forms::kFunctional, "gru", recurrent(3)},
    {Forms::kFunctional, "rnn_relu rnn_tanh", recurrent(1)},
    {Forms::kFunctional, "lstm_cell", recurrent_cell(4)},
    {Forms::kFunctional, "gru_cell", recurrent_cell(3)},
    {Forms::kFunctional, "rnn_relu_cell rnn_tanh_cell", recurrent_cell(1)},

    {Forms::kFunctional,
     "_embedding_bag embedding embedding_bag",
     {.kind = OpClass::kLookup,
      .init = InitRule::kNormal,
      .table = "weight",
      .indices = "indices",
      .arguments = "weight indices"}},
    {Forms::kBoth,
     "embedding_renorm",
     {.kind = OpClass::kLookup, .table = "self", .indices = "indices", .arguments = "self indices"}},
};

}  // namespace

std::span<const OpFamily> layer_families() { return kFamilies; }

}  // namespace hfta::fusion
