#include "fusion/eager/embedding.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "fusion/cuda/embedding_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// int64 in one piece: of every slot, or of one where slots share theirs.
struct Indices {
  at::Tensor of;
  bool shared;
  std::int64_t padding;
};

cuda::Lookup lookup_of(const Indices& indices, at::IntArrayRef tables) {
  const std::int64_t slots = tables[0], positions = indices.of.numel() / (indices.shared ? 1 : slots);
  return {indices.of.const_data_ptr<std::int64_t>(),
          static_cast<std::size_t>(indices.shared ? 0 : positions),
          indices.padding,
          static_cast<int>(slots),
          static_cast<std::size_t>(positions),
          static_cast<std::size_t>(tables[1]),
          static_cast<std::size_t>(tables[2])};
}

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  // y: [c, positions, F]
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tables, const Indices& indices) {
    const cuda::Lookup lookup = lookup_of(indices, tables.sizes());
    at::Tensor y =
        at::empty({tables.size(0), static_cast<std::int64_t>(lookup.positions), tables.size(2)}, tables.options());
    typed(y, [&](auto number) {
      using T = decltype(number);
      cuda::embedding(lookup, tables.const_data_ptr<T>(), y.data_ptr<T>(), native_stream(y.device()));
    });
    context->save_for_backward({indices.of});
    context->saved_data["tables"] = tables.sizes();
    context->saved_data["shared"] = indices.shared;
    context->saved_data["padding"] = indices.padding;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Indices indices{context->get_saved_variables()[0], context->saved_data["shared"].toBool(),
                          context->saved_data["padding"].toInt()};
    const at::Tensor dy = gradients[0].contiguous(),
                     dtables = at::empty(context->saved_data["tables"].toIntVector(), dy.options());
    typed(dy, [&](auto number) {
      using T = decltype(number);
      cuda::embedding_backward(lookup_of(indices, dtables.sizes()), dy.const_data_ptr<T>(), dtables.data_ptr<T>(),
                               native_stream(dy.device()));
    });
    return {dtables, at::Tensor()};
  }
};

}  // namespace

at::Tensor own_embedding(const at::Tensor& tables, const at::Tensor& indices, std::int64_t padding) {
  const bool shared = slots_share(indices);
  const at::Tensor own = shared ? indices.select(0, 0) : indices;
  std::vector<std::int64_t> sizes = indices.sizes().vec();
  sizes.push_back(tables.size(2));
  return EmbeddingFunction::apply(tables.contiguous(), Indices{own.to(at::kLong).contiguous(), shared, padding})
      .view(sizes);
}

bool own_embedding_suits(std::int64_t positions, std::int64_t rows, std::int64_t features) {
  // By arithmetic, for an H100: to look at 1024 indices for each tile costs no more than to write the gradient.
  // Small tables bear more; but of a row that all positions want, a block reads only 64 positions at a time.
  constexpr std::int64_t kAlways = 1024, kMost = 8192, kMostLooks = std::int64_t{1} << 21;
  const std::int64_t tiles = (rows + 31) / 32 * ((features + 31) / 32);
  return positions <= kAlways || (positions <= kMost && positions * tiles <= kMostLooks);
}

}  // namespace hfta::fusion
