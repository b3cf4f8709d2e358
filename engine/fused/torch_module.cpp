// What libhfta_torch.so exports: see engine/module.hpp.
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "base/error.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/module.hpp"

namespace hfta::engine {
namespace {

// libtorch_cuda costs hundreds of megabytes: it is loaded only where the driver says that there is a GPU.
int cuda_devices() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) return 0;
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) return 0;
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::vector<std::string> devices(const std::string& wanted) {
  if (wanted == "cpu") return {"cpu"};
  const int found = cuda_devices();
  if (wanted == "auto") return {found > 0 ? "cuda:0" : "cpu"};
  if (found == 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("array.device: found {}, but this machine has no CUDA device that LibTorch "
                            "can use; wanted cpu or auto",
                            wanted));
  }
  std::vector<std::string> all;
  for (int i = 0; i < found; ++i) all.push_back(fmt::format("cuda:{}", i));
  if (wanted == "all") return all;
  if (wanted == "cuda") return {all.front()};
  for (const std::string& device : all) {
    if (device == wanted) return {device};
  }
  throw Error(ErrorKind::kDevice,
              fmt::format("array.device: found {}, wanted cpu, auto, all or cuda:0 to cuda:{}", wanted, found - 1));
}

// A trainer together with the seams it uses.
class OwningTrainer final : public Trainer {
 public:
  explicit OwningTrainer(const TrainerOptions& options) : trainer_(options, files_, clock_) {}
  void check(const trials::Params& params) override { trainer_.check(params); }
  [[nodiscard]] std::string partition(const trials::Params& params) const override {
    return trainer_.partition(params);
  }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override { return trainer_.plan(params); }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return trainer_.models(); }
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width,
                                                   double expected_epochs) override {
    return trainer_.open(params, width, expected_epochs);
  }

 private:
  SystemFiles files_;
  SystemClock clock_;
  FusedTrainer trainer_;
};

std::unique_ptr<Trainer> make_trainer(const TrainerOptions& options) {
  return std::make_unique<OwningTrainer>(options);
}

}  // namespace
}  // namespace hfta::engine

extern "C" __attribute__((visibility("default"))) const hfta::engine::TorchModule* hfta_torch_module() {
  static const hfta::engine::TorchModule module{TORCH_VERSION, &hfta::engine::devices, &hfta::engine::make_trainer};
  return &module;
}
