#include "fusion/compiled/known_values.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "fusion/eager/boxed.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/slots/first_values.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

class TorchValues final : public cpu::KnownValues {
 public:
  void give(const Weight& weight) override {
    const auto id = static_cast<std::size_t>(weight.value);
    values_.resize(std::max(values_.size(), id + 1));
    values_[id] = stored_values(weight).to(scalar_type(weight.dtype), /*non_blocking=*/false, /*copy=*/true);
  }

  bool run(const Node& node, std::span<const cpu::Tensor> shapes) override {
    values_.resize(shapes.size());
    ValueEnv values = values_;
    for (std::size_t id = 0; id < shapes.size(); ++id) {
      const cpu::Tensor& shape = shapes[id];
      if (shape.defined() && values[id].isNone()) values[id] = at::empty(shape.sizes, scalar_type(shape.dtype));
    }
    try {
      const at::NoGradGuard no_gradients;
      ValueEnv outputs = BoxedOp(node, at::kCPU).call(values);
      for (const c10::IValue& output : outputs) {
        if (!output.isTensor() || !dtype_of(output.toTensor().scalar_type())) return false;
      }
      for (std::size_t o = 0; o < node.outputs.size() && o < outputs.size(); ++o) {
        if (node.outputs[o] != kNoValue) values_[static_cast<std::size_t>(node.outputs[o])] = std::move(outputs[o]);
      }
      return true;
    } catch (const c10::Error& error) {
      if (fault_of(error) == TorchFault::kDevice) throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;
    }
    return false;
  }

  [[nodiscard]] Snapshot snapshot(ValueId id) const override {
    at::Tensor stored = values_[static_cast<std::size_t>(id)].toTensor().resolve_conj().resolve_neg();
    Snapshot snapshot{stored.sizes().vec(), {}, *dtype_of(stored.scalar_type()), {}};
    for (std::int64_t d = 0; d < stored.dim(); ++d) {
      snapshot.repeated.push_back(stored.stride(d) == 0 && stored.size(d) > 1);
      if (snapshot.repeated.back()) stored = stored.narrow(d, 0, 1);
    }
    stored = stored.contiguous();
    snapshot.bytes.resize(stored.nbytes());
    std::memcpy(snapshot.bytes.data(), stored.const_data_ptr(), stored.nbytes());
    return snapshot;
  }

 private:
  ValueEnv values_;  ///< Values by their number in the graph.
};

}  // namespace

std::unique_ptr<cpu::KnownValues> known_values() { return std::make_unique<TorchValues>(); }

}  // namespace hfta::fusion
