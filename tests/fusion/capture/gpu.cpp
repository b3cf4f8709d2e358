#define CATCH_CONFIG_EXTERNAL_INTERFACES  // a listener
#include "gpu.hpp"

#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/gpu.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::testing {
namespace {

int found = -1;

struct GpusFirst : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo& /*run*/) override { found = cuda_devices(); }
};
CATCH_REGISTER_LISTENER(GpusFirst)

}  // namespace

int gpus_at_start() { return found; }

bool gpu_is_there() {
  if (cuda::built() && found > 0) return true;
  WARN("no GPU, or a build without kernels: nothing was compared");
  return false;
}

Batch on_device(Batch batch, const at::Device& device) {
  for (Samples& part : batch.parts) {
    for (SampleArray& input : part.inputs) input = input.stored().to(device);
    part.target = part.target.stored().to(device);
  }
  return batch;
}

DeviceData on_device(DeviceData data, const at::Device& device) {
  for (SampleArray& input : data.inputs) input = input.stored().to(device);
  data.target = data.target.stored().to(device);
  return data;
}

}  // namespace hfta::fusion::testing
