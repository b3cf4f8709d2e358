// The functions that libhfta_torch.so exports: see engine/module.hpp.
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>

#include "base/error.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/module.hpp"
#include "fusion/gpu.hpp"

namespace hfta::engine {
namespace {

std::vector<std::string> cuda_names(int count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("cuda:{}", i));
  return names;
}

// The devices that one word stands for. The machine is asked for GPUs only if that matters.
std::vector<std::string> resolved(const std::string& wanted) {
  if (wanted == "cpu" || cpu_threads(parts_of(wanted).front())) return {wanted};
  std::vector<std::string> found = cuda_names(fusion::cuda_devices());
  if (wanted == "auto") return {found.empty() ? "cpu" : found.front()};
  if (found.empty()) {
    throw Error(ErrorKind::kDevice,
                fmt::format("array.device: found {}, but this machine has no CUDA device that LibTorch "
                            "can use; wanted cpu or auto",
                            wanted));
  }
  if (wanted == "all") return found;
  if (wanted == "cuda") return {found.front()};
  if (std::find(found.begin(), found.end(), wanted) != found.end()) return {wanted};
  throw Error(ErrorKind::kDevice,
              fmt::format("array.device: found {}, wanted cpu, auto, all or cuda:0 to {}", wanted, found.back()));
}

std::vector<std::string> devices(const std::vector<std::string>& wanted) {
  std::vector<std::string> all;
  for (const std::string& word : wanted) {
    for (const std::string& device : resolved(word)) {
      if (!device.starts_with("cpu") && std::find(all.begin(), all.end(), device) != all.end()) {
        throw Error(ErrorKind::kDevice, fmt::format("array.device: found {} twice, wanted each GPU once", device));
      }
      all.push_back(device);
    }
  }
  return all;
}

struct OwnedSeams {
  SystemFiles files;
  SystemClock clock;
};

// A trainer together with the dependencies it uses, which are made before it and outlive it.
class OwningTrainer final : OwnedSeams, public FusedTrainer {
 public:
  explicit OwningTrainer(const TrainerOptions& options) : FusedTrainer(options, files, clock) {}
};

std::unique_ptr<RankTrainer> make_trainer(const TrainerOptions& options) {
  return std::make_unique<OwningTrainer>(options);
}

}  // namespace
}  // namespace hfta::engine

extern "C" __attribute__((visibility("default"))) const hfta::engine::TorchModule* hfta_torch_module() {
  static const hfta::engine::TorchModule module{TORCH_VERSION, &hfta::engine::devices, &hfta::engine::make_trainer};
  return &module;
}
