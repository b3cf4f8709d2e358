#pragma once
/// The code that needs torch, as a shared module that only commands that train or plan load: if it were linked, every
/// `hfta-tune report` would start a quarter of a second later.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/rank_trainer.hpp"
#include "fusion/collectives.hpp"

namespace hfta::engine {

/// The parameters of a fused trainer.
struct TrainerOptions {
  StudyConfig config;
  std::string device;               ///< "cpu", "cuda:0"
  std::string label;                ///< Name among the study's trainers: "cuda:0", or "cpu:1" if several use the CPU.
  int sharers = 1;                  ///< Number of trainers on that CPU, which divide its memory.
  std::filesystem::path data_root;  ///< Folder of the built-in data.
  std::filesystem::path cache;      ///< Folder where measured choices are remembered; "" remembers nothing.
  std::optional<int> threads = {};  ///< Number of CPU threads; unset: the config's, or all, divided by `sharers`.
  std::vector<int> cpus = {};       ///< CPUs that its threads keep to: those of a NUMA node; empty: any.
  /// Ranks that train this trainer's arrays together, as array.divide says; null: it trains them alone.
  std::shared_ptr<fusion::Collectives> group = nullptr;
};

/// The functions that the module exports under the C name `hfta_torch_module`.
struct TorchModule {
  std::string torch_version;
  /// Resolves each of "auto", "cpu", "cpu:3", "cuda", "cuda:1", "all" to devices, in that order; those of the CPU may
  /// occur any number of times. Throws Error{kDevice} if this build or this machine lacks CUDA, saying which and what
  /// to do, or if a GPU is named twice.
  std::vector<std::string> (*devices)(const std::vector<std::string>& wanted);
  /// Loads the data and makes a trainer. Throws Error{kConfig} for data or labels that do not fit the model.
  std::unique_ptr<RankTrainer> (*make_trainer)(const TrainerOptions& options);
};

/// Loads libhfta_torch.so from beside the executable, or from its ../lib. Throws Error{kDevice} with the loader's
/// reason and the remedy. The module stays loaded until the process ends.
[[nodiscard]] const TorchModule& load_torch_module();

}  // namespace hfta::engine
