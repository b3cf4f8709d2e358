#pragma once
/// Exports the result of a trial that trained adapters: a folder that PEFT loads, or the model with the adapters
/// merged into it. Internal to engine/export.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/export/export.hpp"
#include "engine/export/model_state.hpp"

namespace hfta::engine {

/// The adapters of a trained model. `state` and `slot`: as state_of has them; both have to outlive it. Throws
/// Error{kConfig} if the model has no adapters.
class TrainedAdapters {
 public:
  TrainedAdapters(const fusion::ExportedModel& model, const fusion::ImportOptions& options, const ModelState& state,
                  const Tensors& slot);
  ~TrainedAdapters();
  TrainedAdapters(const TrainedAdapters&) = delete;
  TrainedAdapters& operator=(const TrainedAdapters&) = delete;

  /// adapter_config.json and adapter_model.safetensors, as PEFT 0.21 writes them: what PeftModel.from_pretrained takes
  /// beside the model that was adapted. Adapters have their true rank. Throws Error{kConfig} for what such a folder has
  /// no place for: a trained parameter of a tied tensor, statistics that training changed.
  [[nodiscard]] std::vector<ExportedFile> peft_folder(const std::map<std::string, std::string>& metadata) const;

  /// The state dict of the model without adapters, their products added to the layers' weights, in float64. Throws
  /// Error{kConfig} where a layer's weight is another layer's, too.
  [[nodiscard]] std::vector<std::byte> merged(const std::map<std::string, std::string>& metadata) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::engine
