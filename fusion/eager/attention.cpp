#include "fusion/eager/attention.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "fusion/cuda/attention_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sizes at which LibTorch's kernel, whose tiles are 64 x 64, was seen to have too little work. Ours take more, but
// nobody has measured them there.
constexpr std::int64_t kMostRows = 64, kMostFeatures = 32;
static_assert(kMostFeatures <= cuda::kMostAttentionFeatures);

// `t` as the kernels read it, [c, N, heads, rows, features]: features side by side.
at::Tensor with_rows(const at::Tensor& t) { return t.size(-1) == 1 || t.stride(-1) == 1 ? t : t.contiguous(); }

// with_rows() of `t` with one dimension of heads.
at::Tensor with_heads(const at::Tensor& t) {
  return with_rows(t.dim() == 4 ? t.unsqueeze(2) : t.flatten(2, t.dim() - 3));
}

// Dense, its dimensions in the order that those of `t` have in memory, but features are always side by side.
at::Tensor empty_as(const at::Tensor& t, at::IntArrayRef sizes) {
  const at::Tensor out = at::empty_strided(sizes, at::infer_dense_strides(sizes, t.strides()), t.options());
  return out.size(-1) == 1 || out.stride(-1) == 1 ? out : at::empty(sizes, t.options());
}

template <typename T>
cuda::AttentionRows<const T> rows_of(const at::Tensor& t) {
  return {t.const_data_ptr<T>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

// data: null if `t` is undefined.
template <typename T>
cuda::AttentionRows<T> rows_to(const at::Tensor& t) {
  if (!t.defined()) return {};
  return {t.data_ptr<T>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

cuda::AttentionShape shape_of(const at::Tensor& query, const at::Tensor& value, double scale, bool causal) {
  const auto size = [](const at::Tensor& t, std::int64_t d) { return static_cast<unsigned>(t.size(d)); };
  return {size(query, 0), size(query, 1), size(query, 2), size(query, 3), size(value, 3),
          size(query, 4), size(value, 4), scale,          causal};
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, double scale, bool causal) {
    std::vector<std::int64_t> sizes = query.sizes().vec();
    sizes.back() = value.size(-1);
    at::Tensor y = empty_as(query, sizes);
    sizes.pop_back();
    const at::Tensor log_sums = at::empty(sizes, query.options());
    typed(query, [&](auto number) {
      using T = decltype(number);
      cuda::attention(shape_of(query, value, scale, causal), {rows_of<T>(query), rows_of<T>(key), rows_of<T>(value)},
                      rows_to<T>(y), log_sums.data_ptr<T>(), native_stream(query.device()));
    });
    context->save_for_backward({query, key, value, y, log_sums});
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2], &y = saved[3], &log_sums = saved[4];
    const at::Tensor dy = with_rows(gradients[0]), workspace = at::empty_like(log_sums);
    const auto wanted = [&](std::size_t i) {
      return context->needs_input_grad(i) ? empty_as(saved[i], saved[i].sizes()) : at::Tensor();
    };
    const at::Tensor by_query = wanted(0), by_key = wanted(1), by_value = wanted(2);
    const cuda::AttentionShape shape =
        shape_of(query, value, context->saved_data["scale"].toDouble(), context->saved_data["causal"].toBool());
    typed(query, [&](auto number) {
      using T = decltype(number);
      cuda::attention_backward(shape, {rows_of<T>(query), rows_of<T>(key), rows_of<T>(value)},
                               {rows_of<T>(y), rows_of<T>(dy), log_sums.const_data_ptr<T>()},
                               {rows_to<T>(by_query), rows_to<T>(by_key), rows_to<T>(by_value)},
                               workspace.data_ptr<T>(), native_stream(query.device()));
    });
    return {by_query, by_key, by_value, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool attention_takes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  if (query.dim() < 4 || key.dim() != query.dim() || value.dim() != query.dim()) return false;
  if (key.scalar_type() != query.scalar_type() || value.scalar_type() != query.scalar_type()) return false;
  std::int64_t all = 1;  // heads
  for (std::int64_t d = 0; d < query.dim() - 2; ++d) {
    if (key.size(d) != query.size(d) || value.size(d) != query.size(d)) return false;
    all *= query.size(d);
  }
  if (all == 0 || all > std::numeric_limits<std::int32_t>::max()) return false;
  const auto fits = [](std::int64_t size, std::int64_t most) { return size > 0 && size <= most; };
  return key.size(-1) == query.size(-1) && key.size(-2) == value.size(-2) && fits(query.size(-2), kMostRows) &&
         fits(key.size(-2), kMostRows) && fits(query.size(-1), kMostFeatures) && fits(value.size(-1), kMostFeatures);
}

at::Tensor own_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                         bool causal) {
  const at::Tensor y = AttentionFunction::apply(with_heads(query), with_heads(key), with_heads(value), scale, causal);
  if (query.dim() == 4) return y.squeeze(2);
  return query.dim() == 5 ? y : y.unflatten(2, query.sizes().slice(2, static_cast<std::size_t>(query.dim()) - 4));
}

}  // namespace hfta::fusion
