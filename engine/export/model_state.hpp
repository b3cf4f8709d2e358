#pragma once
/// A trial's weights under the names of its model's state dict. Internal to engine/export.

#include <memory>
#include <vector>

#include "fusion/data/safetensors.hpp"
#include "fusion/exported.hpp"

namespace hfta::engine {

using Tensors = std::vector<fusion::TensorView>;

/// Tensors, some of which are held here. Views into a slot's state need that for as long.
struct ModelState {
  Tensors tensors;
  std::vector<std::shared_ptr<const fusion::StoredTensor>> held;
};

/// The state in the model's own order: the slot's tensors under every name, else the file's, floats in options.dtype.
[[nodiscard]] ModelState state_of(const fusion::ExportedModel& model, const fusion::ImportOptions& options,
                                  const Tensors& slot);

}  // namespace hfta::engine
