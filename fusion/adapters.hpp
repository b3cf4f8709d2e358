#pragma once
/// Low-rank adapters that are put into a model's graph: LoRA (Hu et al. 2021, arXiv:2106.09685, section 4.1). Without
/// torch.
///
/// A layer y = f(x, W) becomes y + scale * B(A(dropout(x))), as the forward of PEFT's layers has it: two layers of the
/// same kind without biases, A from the input to `rank` numbers and B from these to the output; dropout is not applied
/// to an embedding's input. The layer's own weights are frozen, as all others but those of Lora::train.
///
/// Slots of one array may have different ranks. Their A and B have `largest_rank` rows and columns, of which a slot
/// uses `rank` (Padding); the rest are zero in both. Then the gradients of the rest are zero, too, so that they stay
/// zero under every optimizer that leaves a zero weight with a zero gradient alone (keeps_zeros, fusion/optimizer.hpp),
/// and neither sums over them nor the gradient's norm are changed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

enum class LoraScale {
  kStandard,        ///< alpha / rank
  kRankStabilized,  ///< alpha / sqrt(rank): rsLoRA (Kalajdzievski 2023, arXiv:2312.03732, equation 4)
};

[[nodiscard]] const char* name_of(LoraScale scale);  ///< "standard", "rslora"

/// The word of Lora::targets that stands for every linear layer but the last, which makes the outputs.
inline constexpr const char* kAllLinear = "all-linear";

struct Lora {
  /// Module paths, or their ends from a dot on, `*` matching anything: "q_proj" means "layers.0.q_proj". Or
  /// kAllLinear alone.
  std::vector<std::string> targets = {};
  std::int64_t rank = 8;               ///< This trial's rank; 1 to largest_rank.
  std::int64_t largest_rank = 8;       ///< Largest rank of any trial of the study; A and B are allocated for it.
  double alpha = 8;                    ///< This trial's alpha.
  std::optional<double> dropout = {};  ///< This trial's rate; none: there is no dropout in the graph.
  LoraScale scale = LoraScale::kStandard;
  std::vector<std::string> train = {};  ///< Parameters that are trained beside the adapters; as ImportOptions::freeze.
  std::string where = {};               ///< "bert.yaml:7: model.adapters", for messages.
};

/// How a layer's weight lies, and so the adapters'.
enum class LoraKind {
  kLinear,      ///< [out, in]; A [r, in], B [out, r].
  kTransposed,  ///< addmm's, [in, out] (GPT-2); A and B as of kLinear.
  kConv,        ///< [out, in, k, ...]; A [r, in, k, ...] with the layer's stride and padding, B [out, r, 1, ...].
  kEmbedding,   ///< [rows, out]; A [r, rows], B [out, r].
};

/// A layer that is adapted.
struct LoraTarget {
  std::string module = {};  ///< "bert.encoder.layer.0.attention.self.query"
  LoraKind kind = LoraKind::kLinear;
  bool quantized = false;  ///< Its weight is computed from integers that the module holds.
  Shape shape = {};        ///< The weight's shape.
  DType dtype = DType::kFloat32;
};

/// Names of its adapters' weights: "<module>.lora_A.weight"; of an embedding "<module>.lora_embedding_A".
[[nodiscard]] std::string lora_a_name(const LoraTarget& target);
[[nodiscard]] std::string lora_b_name(const LoraTarget& target);

/// The factor on B(A(x)), as lora.scale says: alpha / rank, or alpha / sqrt(rank).
[[nodiscard]] double lora_scale(const Lora& lora);

/// The layers of a model's graph that are adapted, in the order of its calls. Throws Error{kConfig} that begins with
/// lora.where: a target that matches no layer that can be adapted (the nearest are named), or one of grouped or
/// dilated convolutions.
[[nodiscard]] std::vector<LoraTarget> lora_targets(const Graph& graph, const Lora& lora);

/// Only parameters that lora.train means stay trained, whether they were frozen in the file or not. `parameters`: names
/// of all that the model has. `frozen`: patterns of those that stay as they are. Throws Error{kConfig} for a pattern
/// that means none of them, and for a parameter that is to be trained and frozen.
void freeze_base(Graph& graph, const Lora& lora, const std::vector<std::string>& parameters,
                 const std::vector<std::string>& frozen = {});

/// Puts the adapters in, into the graph for evaluation as well if there is one (without dropout). A starts as
/// torch.nn.Linear's weight does, uniform in +-1/sqrt(fan in), and B at zero; an embedding's A at zero and B normal.
/// Adds lora_hypers() behind Graph::hypers. Throws Error{kConfig} as lora_targets, and for a parameter that is adapted
/// and trained itself.
void insert_lora(Graph& graph, const Lora& lora);

/// The hypers that insert_lora adds to Graph::hypers, with this trial's values.
[[nodiscard]] std::vector<Hyper> lora_hypers(const Lora& lora);

}  // namespace hfta::fusion
