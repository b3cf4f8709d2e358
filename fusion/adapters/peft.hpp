#pragma once
/// Adapters as the library PEFT names and stores them (github.com/huggingface/peft, 0.21), in models that it wrapped
/// and in the folders that it loads. Without torch.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/adapters.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A layer's adapter, whichever way it came into the model: names in the state dict that the trial's values have.
struct Adapter {
  std::string module;  ///< The layer's path in the model without adapters, as its user wrote it.
  LoraKind kind = LoraKind::kLinear;
  std::string weight;     ///< The layer's own weight; "": it is quantized, computed from integers.
  std::string a, b;       ///< A and B, with shapes as LoraKind has them, perhaps padded.
  std::string magnitude;  ///< DoRA's (arXiv:2402.09353): one number for each output; "": there is none.
  double scale = 1;
  std::string read_by = {};  ///< Where another call reads the layer's weight, in training or evaluation; "": none does.
  std::string called_by = {};   ///< Where another module makes the layer's call with its weight; "": it does so itself.
  bool pads_apart = false;      ///< A convolution whose module pads its input, and whose A pads by zeros of its own.
  bool prepares_input = false;  ///< A convolution whose module changes its input first, as other padding than zeros.
};

/// The adapters that insert_lora puts into a graph; `graph` is without them.
[[nodiscard]] std::vector<Adapter> own_adapters(const Graph& graph, const Lora& lora);

/// The adapters of a model that PEFT wrapped before its export; Graph::hypers' values are the trial's. Throws
/// Error{kConfig} for a model with several adapters, or one whose adapters do not belong to layers.
[[nodiscard]] std::vector<Adapter> peft_adapters(const Graph& graph);

/// A name of a wrapped model's state dict taken apart.
struct PeftName {
  enum class Part {
    kModel,     ///< An entry of the model itself, such as a layer's own weight.
    kAdapter,   ///< An adapter's parameter.
    kSaved,     ///< An entry of a module's copy that is trained whole (modules_to_save).
    kOriginal,  ///< An entry of the module that such a copy replaces; it is not used.
  };
  Part part = Part::kModel;
  std::string name;     ///< Name in the model without PEFT; kAdapter: "<module>.lora_A.weight", as in PEFT's files.
  std::string module;   ///< kAdapter: the layer's path; kSaved: the module's.
  std::string adapter;  ///< kAdapter and kSaved: the adapter's name, "default".
};
[[nodiscard]] PeftName peft_name(std::string_view name);

/// Whether any name belongs to an adapter.
[[nodiscard]] bool is_peft_model(const std::vector<std::string>& names);

/// What PEFT draws a parameter of an adapter from, by its name in a wrapped model: A uniform as torch.nn.Linear's
/// weight, B zero; an embedding's A zero and B normal. nullopt: it draws none by this name.
[[nodiscard]] std::optional<Init> peft_init(std::string_view name, const Shape& shape);
/// Whether PEFT computes that parameter from frozen weights, so that it is the same in each draw: DoRA's magnitude.
[[nodiscard]] bool is_peft_constant(std::string_view name);

}  // namespace hfta::fusion
