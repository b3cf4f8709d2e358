#include "fusion/eager/batch_norm.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "fusion/cuda/batch_norm_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The distance from a row, which is a sample's pixel, to the next; nothing if they are not all as far apart.
std::optional<std::int64_t> row_stride(const at::Tensor& x) {
  if (x.dim() < 3 || x.numel() == 0 || (x.size(2) > 1 && x.stride(2) != 1)) return std::nullopt;
  std::optional<std::int64_t> stride;
  std::int64_t rows = 1;  // so far, from the last dimension on
  for (std::int64_t d = x.dim() - 1; d > 0; --d) {
    if (d == 2 || x.size(d) == 1) continue;
    if (!stride) stride = x.stride(d);
    if (x.stride(d) != rows * *stride) return std::nullopt;
    rows *= x.size(d);
  }
  return stride.value_or(x.size(2));
}

template <typename T>
cuda::BatchNormRows<T> rows_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu) {
  const std::int64_t slots = x.size(0), features = x.size(2);
  return {x.const_data_ptr<T>(),
          static_cast<std::size_t>(x.stride(0)),
          static_cast<std::size_t>(row_stride(x).value_or(0)),
          static_cast<int>(slots),
          static_cast<std::size_t>(x.numel() / (slots * features)),
          static_cast<std::size_t>(features),
          numbers_or_null<T>(weight),
          numbers_or_null<T>(bias),
          relu};
}

template <typename T>
at::Tensor workspace_for(const cuda::BatchNormRows<T>& in, const at::TensorOptions& options) {
  return at::empty({static_cast<std::int64_t>(cuda::batch_norm_workspace(in.rows, in.features, in.slots))}, options);
}

// `means` and `rstds`: [c, C] each.
template <typename T>
void find_statistics(const at::Tensor& x, const OwnBatchNorm& norm, const at::Tensor& means, const at::Tensor& rstds) {
  const auto to = [](const at::Tensor& t) { return t.defined() ? t.data_ptr<T>() : nullptr; };
  const cuda::BatchNormRows<T> in = rows_of<T>(x, {}, {}, false);
  cuda::batch_norm_statistics(in, norm.eps, {to(means), to(rstds)},
                              {to(norm.running_mean), to(norm.running_variance), norm.momentum},
                              to(workspace_for(in, x.options())), native_stream(x.device()));
}

// x as batch_norm_reads() it, weight and bias in one piece each; autograd takes no undefined inputs.
class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& own_weight,
                            const std::optional<at::Tensor>& own_bias, const OwnBatchNorm& norm) {
    const at::Tensor weight = own_weight.value_or(at::Tensor()), bias = own_bias.value_or(at::Tensor());
    at::Tensor y = at::empty_strided(x.sizes(), x.strides(), x.options()), means, rstds;
    if (norm.training) {
      means = at::empty({x.size(0), x.size(2)}, x.options());
      rstds = at::empty_like(means);
    } else {
      means = norm.running_mean.clone(at::MemoryFormat::Contiguous);
      rstds = at::rsqrt(norm.running_variance + norm.eps).contiguous();
    }
    typed(x, [&](auto number) {
      using T = decltype(number);
      if (norm.training) find_statistics<T>(x, norm, means, rstds);
      cuda::batch_norm(rows_of<T>(x, weight, bias, norm.relu), {means.data_ptr<T>(), rstds.data_ptr<T>()},
                       y.data_ptr<T>(), native_stream(x.device()));
    });
    context->save_for_backward({x, weight, bias, means, rstds});
    context->saved_data["training"] = norm.training;
    context->saved_data["relu"] = norm.relu;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &means = saved[3], &rstds = saved[4];
    at::Tensor dy = gradients[0];
    if (dy.strides() != x.strides()) dy = at::empty_strided(x.sizes(), x.strides(), x.options()).copy_(dy);
    std::size_t inputs = 0;  // number of inputs that are defined, so far
    const auto wanted = [&](const at::Tensor& t) {
      return t.defined() && context->needs_input_grad(inputs++) ? at::empty_strided(t.sizes(), t.strides(), t.options())
                                                                : at::Tensor();
    };
    const at::Tensor dx = wanted(x), dweight = wanted(weight), dbias = wanted(bias);
    typed(x, [&](auto number) {
      using T = decltype(number);
      const auto to = [](const at::Tensor& t) { return t.defined() ? t.data_ptr<T>() : nullptr; };
      const cuda::BatchNormRows<T> in = rows_of<T>(x, weight, bias, context->saved_data["relu"].toBool());
      cuda::batch_norm_backward(in, {to(means), to(rstds)}, context->saved_data["training"].toBool(),
                                dy.const_data_ptr<T>(), {to(dx), to(dweight), to(dbias)},
                                to(workspace_for(in, x.options())), native_stream(x.device()));
    });
    return {dx, dweight, dbias, at::Tensor()};
  }
};

std::optional<at::Tensor> in_one_piece(const at::Tensor& t) {
  return t.defined() ? std::optional(t.contiguous()) : std::nullopt;
}

}  // namespace

bool batch_norm_reads(const at::Tensor& x, const OwnBatchNorm& norm) {
  if (!row_stride(x) || !x.is_non_overlapping_and_dense()) return false;
  if (!norm.training && (!norm.running_mean.defined() || !norm.running_variance.defined())) return false;
  for (const at::Tensor* t : {&norm.weight, &norm.bias, &norm.running_mean, &norm.running_variance}) {
    if (t->defined() && t->scalar_type() != x.scalar_type()) return false;
  }
  for (const at::Tensor* t : {&norm.running_mean, &norm.running_variance}) {
    if (norm.training && t->defined() && !t->is_contiguous()) return false;  // cannot be moved in place
  }
  return true;
}

at::Tensor own_batch_norm(const at::Tensor& x, const OwnBatchNorm& norm) {
  return BatchNormFunction::apply(x, in_one_piece(norm.weight), in_one_piece(norm.bias), norm);
}

}  // namespace hfta::fusion
