#pragma once
/// Roles of the placeholders and outputs of an exported graph.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fusion/pt2/schema.hpp"

namespace hfta::fusion::pt2 {

struct InputSpec {
  enum class Kind { kParameter, kBuffer, kConstant, kUser };
  Kind kind = Kind::kUser;
  std::string placeholder;  ///< The graph's name for it.
  std::string target;       ///< Its name in the model; a user's input has the placeholder's.
  bool persistent = true;   ///< A buffer is in the state dict.
};

struct OutputSpec {
  std::string value;   ///< The graph's name for it.
  Leaf leaf;           ///< Leaf with the user's name: "logits"; "0" where outputs have no names.
  std::string buffer;  ///< Not empty: no output of the model, but the new value of this buffer.
};

struct Signature {
  std::vector<InputSpec> inputs;  ///< Inputs that are tensors; others were fixed by the export.
  std::vector<OutputSpec> outputs;
  std::vector<std::string> modules;  ///< Paths of all modules, in the order of the state dict.
};

/// Throws Error{kConfig}: script objects, tokens, inputs that are numbers or written to, outputs of a training step.
[[nodiscard]] Signature signature_from(const Reader& program);

}  // namespace hfta::fusion::pt2
