#include "fusion/cpu/ops/matrices.hpp"

#include <algorithm>

namespace hfta::fusion::cpu {
namespace {

Product product_of(const Tensor& a, const Tensor& b, const Tensor& c, bool swapped, bool add) {
  if (swapped) return product_of(b.transposed(-1, -2), a.transposed(-1, -2), c.transposed(-1, -2), false, add);
  const MatrixLayout left = *layout_of(a), right = *layout_of(b);
  return {.m = c.size(-2),
          .n = c.size(-1),
          .k = a.size(-1),
          .lda = left.ld,
          .ldb = right.ld,
          .ldc = layout_of(c)->ld,
          .a_transposed = left.transposed,
          .b_transposed = right.transposed,
          .add = add};
}

bool repeats(Dims places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

}  // namespace

Dims places_of(const Tensor& t) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  if (product(t.sizes) / std::max<std::int64_t>(t.size(-1) * t.size(-2), 1) > kMost) {
    throw ShapeError("found a tensor " + to_text(t.sizes) + " of too many matrices");
  }
  Dims places = {0};
  for (std::size_t d = 0; d + 2 < t.sizes.size(); ++d) {
    Dims next;
    for (const std::int64_t place : places) {
      for (std::int64_t i = 0; i < t.sizes[d]; ++i) next.push_back(place + i * t.strides[d]);
    }
    places = std::move(next);
  }
  return places;
}

std::optional<MatrixLayout> layout_of(const Tensor& t) {
  const std::int64_t rows = t.size(-2), columns = t.size(-1);
  const auto lies = [](std::int64_t outer, std::int64_t outer_step, std::int64_t inner, std::int64_t inner_step) {
    return (inner == 1 || inner_step == 1) && (outer == 1 || outer_step >= inner);
  };
  if (lies(rows, t.stride(-2), columns, t.stride(-1))) return MatrixLayout{false, rows == 1 ? columns : t.stride(-2)};
  if (lies(columns, t.stride(-1), rows, t.stride(-2))) return MatrixLayout{true, columns == 1 ? rows : t.stride(-1)};
  return std::nullopt;
}

Tensor as_matrices(Builder& b, const Tensor& t) { return layout_of(t) ? t : b.contiguous(t); }

template <typename T>
BatchedProduct<T>::BatchedProduct(const Tensor& a, const Tensor& b, const Tensor& c, bool add)
    : swapped_(layout_of(c)->transposed), gemm_(product_of(a, b, c, swapped_, add)) {
  const auto in_a = places_of(a), in_b = places_of(b), in_c = places_of(c);
  const bool fits = a.size(-1) == b.size(-2) && a.size(-2) == c.size(-2) && b.size(-1) == c.size(-1) &&
                    in_a.size() == in_c.size() && in_b.size() == in_c.size();
  if (!fits)
    throw ShapeError("found matrices " + to_text(a.sizes) + ", " + to_text(b.sizes) + ", which do not multiply");
  for (std::size_t i = 0; i < in_c.size(); ++i) places_.push_back({in_a[i], in_b[i], in_c[i]});
  const std::int64_t each = product(Dims{a.size(-2), a.size(-1), b.size(-1)});
  at_once_ = repeats(in_c) ? std::max<std::int64_t>(static_cast<std::int64_t>(count()), 1)
                           : stretches_of(1, each, 1, kStretchProducts).length;
}

template class BatchedProduct<float>;
template class BatchedProduct<double>;

// A team shares the matrices where there are several, else the work of the one.
void emit_products(Builder& builder, const Tensor& a, const Tensor& b, const Tensor& c, bool add) {
  typed(builder.dtype(), [&]<typename T>() {
    const auto product = std::make_shared<const BatchedProduct<T>>(a, b, c, add);
    const Stretches stretches = product->stretches();
    const bool by_matrix = stretches.count() > 1;
    const Tensor scratch =
        by_matrix ? builder.scratch(product->scratch()) : builder.fresh({product->scratch(builder.threads())});
    builder.emit({a, b, c, scratch}, [=](const Run& run) {
      share(run.team, stretches, [&](std::int64_t first, std::int64_t count, int thread) {
        for (std::int64_t i = first; i < first + count; ++i) {
          (*product)(static_cast<std::size_t>(i), run.at<T>(a), run.at<T>(b), run.at<T>(c),
                     by_matrix ? run.own<T>(scratch, thread) : run.at<T>(scratch), by_matrix ? nullptr : run.team);
        }
      });
    });
  });
}

}  // namespace hfta::fusion::cpu
