#include "fusion/compiled/torch_library.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "fusion/compiled/known_values.hpp"
#include "fusion/compiled/views.hpp"
#include "fusion/eager/program.hpp"
#include "fusion/eager/run_numbers.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

// The tensors that autograd needs for the backward.
class Recorded final : public cpu::Kept {
 public:
  std::vector<at::Tensor> inputs, outputs;
};

at::Tensor detached(const at::Tensor& t) { return t.detach().resolve_conj().resolve_neg(); }

// What inputs are whose values are not known: numbers of no meaning.
struct Example {
  int index = 0;          // what indices and masks are
  bool definite = false;  // square matrices are symmetric and positive definite, as some algebra wants them
};

// Symmetric, and larger on the diagonal than the rest of a row together, which is of numbers below 1.25.
at::Tensor made_definite(const at::Tensor& matrices) {
  const std::int64_t n = matrices.size(-1);
  return (matrices + matrices.transpose(-2, -1)) / 2 + at::eye(n, matrices.options()) * (1.25 * static_cast<double>(n));
}

// An input to try a part with.
at::Tensor example_of(const cpu::Tensor& tensor, const std::byte* known, const Example& example) {
  if (known != nullptr) return view_of(tensor, const_cast<std::byte*>(known)).clone();
  const at::ScalarType type = scalar_type(tensor.dtype);
  const at::Tensor like = at::empty_strided(tensor.sizes, tensor.strides, type);
  if (!like.is_floating_point() && !like.is_complex()) return like.fill_(example.index);
  // The golden ratio's multiples: no two are alike, and none is zero.
  const at::Tensor numbers = at::arange(1, tensor.numel() + 1, at::kDouble).mul(0.6180339887498949).frac().add(0.25);
  const at::Tensor shaped = numbers.view(tensor.sizes);
  const bool square = example.definite && tensor.dim() >= 2 && tensor.size(-1) == tensor.size(-2);
  return at::empty_like(like).copy_(square ? made_definite(shaped) : shaped);
}

cpu::Part::Output description_of(const at::Tensor& result) {
  const std::optional<DType> dtype = dtype_of(result.scalar_type());
  if (!dtype) throw Error(ErrorKind::kConfig, "its result is of a type that graphs do not have");
  const bool dense = result.is_non_overlapping_and_dense();
  return {result.sizes().vec(), dense ? result.strides().vec() : cpu::row_major(result.sizes().vec()), *dtype, {}, {}};
}

std::vector<at::Tensor> examples_of(const cpu::PartGraph& part, const Example& example) {
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    inputs.push_back(example_of(part.inputs[i], part.known[i], example));
  }
  return inputs;
}

std::vector<double> hypers_of(const Graph& graph) {
  std::vector<double> values;
  for (const Hyper& hyper : graph.hypers) values.push_back(hyper.value);
  return values;
}

Lowering of_one_slot() {
  Lowering lowering;
  lowering.chunk = 1;
  return lowering;
}

// By place: whether autograd reaches the tensor from the result; false for tensors without a gradient or undefined.
std::vector<bool> reached_from(const at::Tensor& result, const std::vector<at::Tensor>& tensors) {
  // A view that was taken under no_grad says that it requires a gradient, and has no history.
  const auto recorded = [](const at::Tensor& t) {
    return t.defined() && t.requires_grad() && (t.grad_fn() != nullptr || !t.is_view());
  };
  std::vector<bool> reached(tensors.size(), false);
  if (!recorded(result)) return reached;
  std::vector<at::Tensor> asked;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(asked), recorded);
  const std::vector<at::Tensor> gradients = torch::autograd::grad(
      {result}, asked, {at::ones_like(result)}, /*retain_graph=*/true, /*create_graph=*/false, /*allow_unused=*/true);
  std::size_t next = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) reached[i] = recorded(tensors[i]) && gradients[next++].defined();
  return reached;
}

class TorchPart final : public cpu::Part {
 public:
  TorchPart(const cpu::PartGraph& part, bool training)
      : records_(training),
        program_({part.graph, part.index}, std::vector<bool>(part.graph.weights.size(), true), of_one_slot(),
                 at::kCPU) {
    for (const Weight& weight : part.graph.weights) wanted_.push_back(training && weight.trained);
    shared_ = program_.share({}, std::vector<at::Tensor>(wanted_.size()));
    const std::vector<double> hypers = hypers_of(part.graph);
    outputs_ = outputs_for_some(part, hypers);
    check_sizes(part, hypers);
    records_ =
        std::any_of(outputs_.begin(), outputs_.end(), [](const Output& output) { return output.has_gradient(); });
  }

  [[nodiscard]] const std::vector<Output>& outputs() const override { return outputs_; }

  void forward(const cpu::Run& run, std::span<const cpu::Tensor> inputs, std::span<const cpu::Tensor> outputs,
               std::unique_ptr<cpu::Kept>& kept) const override {
    auto recorded = std::make_unique<Recorded>();
    for (const cpu::Tensor& input : inputs) recorded->inputs.push_back(view_of(input, run.buffers));
    recorded->outputs = results(recorded->inputs, run.random, run.hypers);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const at::Tensor result = detached(recorded->outputs[o]);
      if (result.sizes() != at::IntArrayRef(outputs[o].sizes)) {
        throw Error(ErrorKind::kConfig,
                    fmt::format("model: found a result of the sizes {}, wanted {} as when it was compiled: its sizes "
                                "depend on the data",
                                cpu::to_text(result.sizes()), cpu::to_text(outputs[o].sizes)));
      }
      view_of(outputs[o], run.buffers).copy_(result);
    }
    kept.reset();
    if (records_) kept = std::move(recorded);
  }

  void backward(const cpu::Run& run, std::span<const Gradient> outputs, std::span<const Gradient> inputs,
                std::unique_ptr<cpu::Kept>& kept) const override {
    const std::unique_ptr<cpu::Kept> taken = std::move(kept);
    const auto& recorded = static_cast<const Recorded&>(*taken);
    std::vector<at::Tensor> reached, given, asked;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].tensor.defined()) continue;
      reached.push_back(recorded.outputs[o]);
      given.push_back(view_of(outputs[o].tensor, run.buffers));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].tensor.defined()) asked.push_back(recorded.inputs[i]);
    }
    const at::AutoGradMode record(true);
    const std::vector<at::Tensor> gradients =
        torch::autograd::grad(reached, asked, given, /*retain_graph=*/false, /*create_graph=*/false,
                              /*allow_unused=*/true);
    const at::NoGradGuard no_gradients;
    std::size_t next = 0;
    for (const Gradient& to : inputs) {
      if (to.tensor.defined()) put(gradients[next++], view_of(to.tensor, run.buffers), to.add);
    }
  }

 private:
  // Elements of `to` that share memory, as an expanded value's do, get the sum of their gradients.
  static void put(at::Tensor gradient, at::Tensor to, bool add) {
    for (std::int64_t d = 0; d < to.dim(); ++d) {
      if (to.stride(d) != 0 || to.size(d) <= 1) continue;
      to = to.narrow(d, 0, 1);
      if (gradient.defined()) gradient = gradient.sum(d, /*keepdim=*/true);
    }
    if (!gradient.defined()) {
      if (!add) to.zero_();
    } else if (add) {
      to.add_(gradient);
    } else {
      to.copy_(gradient);
    }
  }

  std::vector<at::Tensor> results(std::vector<at::Tensor>& inputs, const SlotRandom& random,
                                  std::span<const double> hypers) const {
    const at::AutoGradMode record(records_);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (wanted_[i]) inputs[i].requires_grad_(true);
    }
    const std::vector<std::vector<double>> of_slot = {{hypers.begin(), hypers.end()}};
    const HostNumbers numbers({&random, 1}, of_slot);
    const ValueEnv* const shared = &shared_;
    return program_.run({&shared, 1}, inputs, RunContext{0, numbers, at::kCPU});
  }

  [[nodiscard]] std::vector<Output> outputs_for(std::vector<at::Tensor> inputs, std::span<const double> hypers) const {
    const std::vector<at::Tensor> given = results(inputs, SlotRandom{}, hypers);
    const auto count = static_cast<std::ptrdiff_t>(inputs.size());
    std::vector<at::Tensor> sources;  // inputs, then outputs
    for (std::size_t i = 0; i < inputs.size(); ++i) sources.push_back(wanted_[i] ? inputs[i] : at::Tensor());
    sources.insert(sources.end(), given.begin(), given.end());
    std::vector<Output> outputs;
    for (const at::Tensor& result : given) {
      outputs.push_back(description_of(result));
      const std::vector<bool> reached = reached_from(result, sources);
      outputs.back().reaches.assign(reached.begin(), reached.begin() + count);
      outputs.back().reaches_output.assign(reached.begin() + count, reached.end());
    }
    return outputs;
  }

  // Not every made-up value is one that the part can meet: where masks are of zeros, their count less one is below 0.
  [[nodiscard]] std::vector<Output> outputs_for_some(const cpu::PartGraph& part, std::span<const double> hypers) const {
    for (const Example& example : {Example{0, false}, Example{1, false}}) {
      try {
        return outputs_for(examples_of(part, example), hypers);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kConfig) throw;
      }
    }
    return outputs_for(examples_of(part, {0, true}), hypers);
  }

  // Tries the part with other indices and masks; where these are not possible, forward() will check.
  void check_sizes(const cpu::PartGraph& part, std::span<const double> hypers) const {
    std::vector<Output> others;
    try {
      others = outputs_for(examples_of(part, {1, false}), hypers);
    } catch (const Error&) {
      return;
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (others[o].sizes == outputs_[o].sizes) continue;
      throw Error(ErrorKind::kConfig, "the sizes of its result depend on the data");
    }
  }

  bool records_;  ///< Whether it keeps what backward() needs.
  Program program_;
  ValueEnv shared_;
  std::vector<bool> wanted_;  ///< By input: whether it needs a gradient.
  std::vector<Output> outputs_;
};

class TorchLibrary final : public cpu::Library {
 public:
  [[nodiscard]] std::unique_ptr<const cpu::Part> part(const cpu::PartGraph& part, bool training) const override {
    try {
      return std::make_unique<const TorchPart>(part, training);
    } catch (const c10::Error& error) {
      if (fault_of(error) == TorchFault::kDevice) throw;
      throw Error(ErrorKind::kConfig, first_line(error));
    }
  }
  [[nodiscard]] std::unique_ptr<cpu::KnownValues> known_values() const override { return fusion::known_values(); }
};

}  // namespace

std::unique_ptr<const cpu::Library> torch_library() { return std::make_unique<TorchLibrary>(); }

}  // namespace hfta::fusion
