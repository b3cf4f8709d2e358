#include "fusion/eager/linear.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

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
            context->needs_input_grad(1) ? at::bmm(dy.transpose(1, 2), x) : at::Tensor(), dbias, at::Tensor()};
  }
};

}  // namespace

at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu) {
  return LinearFunction::apply(x, weight, bias.contiguous(), relu);
}

}  // namespace hfta::fusion
