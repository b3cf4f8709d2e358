#include "fusion/eager/linear.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "fusion/cuda/bias_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// y and its gradient: [c, M, out].
cuda::BiasShape shape_of(const at::Tensor& y) {
  return {static_cast<int>(y.size(0)), static_cast<std::size_t>(y.size(1)), static_cast<std::size_t>(y.size(2))};
}

// Gradients of what the bias was added to, and of the bias. `y`: what came out of the relu, or undefined without one;
// then the first is `dy` itself.
std::pair<at::Tensor, at::Tensor> through_bias(const at::Tensor& dy, const at::Tensor& y) {
  const cuda::BiasShape shape = shape_of(dy);
  const at::Tensor dx = y.defined() ? at::empty_like(dy) : dy,
                   dbias = at::empty({dy.size(0), dy.size(2)}, dy.options()),
                   workspace = at::empty({static_cast<std::int64_t>(cuda::bias_workspace(shape))}, dy.options());
  typed(dy, [&](auto number) {
    using T = decltype(number);
    cuda::add_bias_backward(shape, dy.const_data_ptr<T>(), numbers_or_null<T>(y),
                            y.defined() ? dx.data_ptr<T>() : nullptr, dbias.data_ptr<T>(), workspace.data_ptr<T>(),
                            native_stream(dy.device()));
  });
  return {dx, dbias};
}

// [c, M, F] as [c * parts, M / parts, F]. A copy, if slots lie inside of rows.
at::Tensor in_parts(const at::Tensor& rows, std::int64_t parts) {
  const std::int64_t slots = rows.size(0), all = rows.size(1);
  return rows.reshape({slots * parts, all / parts, rows.size(2)});
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, bool relu) {
    at::Tensor y = at::bmm(x, weight.transpose(1, 2)).contiguous();
    typed(y, [&](auto number) {
      using T = decltype(number);
      cuda::add_bias(shape_of(y), bias.const_data_ptr<T>(), relu, y.data_ptr<T>(), native_stream(y.device()));
    });
    // An op in place may write the result of a layer, as with LibTorch's, but not that of a relu.
    context->save_for_backward({x, weight, relu ? y : at::Tensor()});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const auto [dy, dbias] = through_bias(gradients[0].contiguous(), saved[2]);
    return {context->needs_input_grad(0) ? at::bmm(dy, weight) : at::Tensor(),
            context->needs_input_grad(1) ? weight_gradient(dy, x) : at::Tensor(), dbias, at::Tensor()};
  }
};

// [c, out, M], so that it is no view, which may not be written in place. Autograd takes no undefined inputs.
class WeightFirstFunction : public torch::autograd::Function<WeightFirstFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["biased"] = bias.has_value();
    const at::Tensor columns = x.transpose(1, 2);
    return bias ? at::baddbmm(bias->unsqueeze(2), weight, columns) : at::bmm(weight, columns);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = gradients[0];
    const auto wanted = [&](std::size_t input) { return context->needs_input_grad(input); };
    const bool biased = context->saved_data["biased"].toBool();
    return {wanted(0) ? at::bmm(weight.transpose(1, 2), dy).transpose(1, 2) : at::Tensor(),
            wanted(1) ? weight_gradient(dy.transpose(1, 2), x) : at::Tensor(),
            biased && wanted(2) ? dy.sum(2) : at::Tensor()};
  }
};

}  // namespace

std::int64_t weight_gradient_parts(std::int64_t rows, std::int64_t out, std::int64_t in) {
  constexpr std::int64_t kTile = 64;        // side of a product's block, about
  constexpr std::int64_t kTiles = 16;       // tiles of a slot, at most
  constexpr std::int64_t kRows = 128;       // rows of a part, at least
  constexpr std::int64_t kWorthTheSum = 4;  // parts
  const std::int64_t tiles = ((out + kTile - 1) / kTile) * ((in + kTile - 1) / kTile);
  std::int64_t parts = 1;
  while (rows % (2 * parts) == 0 && rows / (2 * parts) >= kRows && 2 * parts * tiles <= kTiles) parts *= 2;
  return parts < kWorthTheSum ? 1 : parts;
}

at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x) {
  const std::int64_t slots = x.size(0), out = dy.size(2), in = x.size(2);
  const std::int64_t parts = weight_gradient_parts(x.size(1), out, in);
  if (parts == 1) return at::bmm(dy.transpose(1, 2), x);
  return at::bmm(in_parts(dy, parts).transpose(1, 2), in_parts(x, parts)).view({slots, parts, out, in}).sum(1);
}

at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu) {
  return LinearFunction::apply(x, weight, bias.contiguous(), relu);
}

at::Tensor own_weight_first_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return WeightFirstFunction::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt).transpose(1, 2);
}

}  // namespace hfta::fusion
