#include "fusion/eager/layer_norm.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "fusion/cuda/norm_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
cuda::NormRows<T> rows_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, std::int64_t features,
                          double eps) {
  const std::int64_t slots = x.size(0), rows = slots * features > 0 ? x.numel() / (slots * features) : 0;
  return {x.const_data_ptr<T>(),
          numbers_or_null<T>(weight),
          numbers_or_null<T>(bias),
          static_cast<int>(slots),
          static_cast<std::size_t>(rows),
          static_cast<std::size_t>(features),
          eps};
}

// x, weight and bias in one piece each; autograd takes no undefined inputs.
class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& own_weight,
                            const std::optional<at::Tensor>& own_bias, std::int64_t features, double eps) {
    const at::Tensor weight = own_weight.value_or(at::Tensor()), bias = own_bias.value_or(at::Tensor());
    at::Tensor y = at::empty_like(x);
    const at::Tensor means = at::empty({features > 0 ? x.numel() / features : 0}, x.options()),
                     rstds = at::empty_like(means);
    typed(x, [&](auto number) {
      using T = decltype(number);
      cuda::layer_norm(rows_of<T>(x, weight, bias, features, eps), y.data_ptr<T>(), means.data_ptr<T>(),
                       rstds.data_ptr<T>(), native_stream(x.device()));
    });
    context->save_for_backward({x, weight, bias, means, rstds});
    context->saved_data["features"] = features;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const at::Tensor dy = gradients[0].contiguous();
    std::size_t inputs = 0;  // number of inputs that are defined, so far
    const auto wanted = [&](const at::Tensor& t) {
      return t.defined() && context->needs_input_grad(inputs++) ? at::empty_like(t) : at::Tensor();
    };
    const at::Tensor dx = wanted(x), dweight = wanted(weight), dbias = wanted(bias);
    typed(x, [&](auto number) {
      using T = decltype(number);
      const auto to = [](const at::Tensor& t) { return t.defined() ? t.data_ptr<T>() : nullptr; };
      const cuda::NormRows<T> rows = rows_of<T>(x, weight, bias, context->saved_data["features"].toInt(), 0);
      const auto numbers = static_cast<std::int64_t>(cuda::layer_norm_workspace(rows.rows, rows.features, rows.slots));
      const at::Tensor workspace = at::empty({numbers}, x.options());
      cuda::layer_norm_backward(rows, dy.const_data_ptr<T>(), saved[3].const_data_ptr<T>(),
                                saved[4].const_data_ptr<T>(), {to(dx), to(dweight), to(dbias)}, to(workspace),
                                native_stream(x.device()));
    });
    return {dx, dweight, dbias, at::Tensor(), at::Tensor()};
  }
};

std::optional<at::Tensor> in_one_piece(const at::Tensor& t) {
  return t.defined() ? std::optional(t.contiguous()) : std::nullopt;
}

}  // namespace

at::Tensor own_layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, std::int64_t features,
                          double eps) {
  return LayerNormFunction::apply(x.contiguous(), in_one_piece(weight), in_one_piece(bias), features, eps);
}

}  // namespace hfta::fusion
