// Rows of a table, chosen by indices.
#include <algorithm>
#include <limits>

#include "fusion/cpu/ops.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Embedding {
  Tensor weight, indices, y;  // weight [rows, width]
  std::int64_t rows = 0, width = 0, count = 0, padding = -1;
};

// An index that is none gives a row of NaN: the loss says that something is wrong, and no other slot is harmed.
template <typename T>
void gather(Team* team, const Embedding& e, const T* weight, const std::int64_t* indices, T* y) {
  share(team, stretches_of(e.count, e.width), [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t row = indices[i];
      if (row >= 0 && row < e.rows) {
        std::copy_n(weight + row * e.width, e.width, y + i * e.width);
      } else {
        std::fill_n(y + i * e.width, e.width, std::numeric_limits<T>::quiet_NaN());
      }
    }
  });
}

// Each row of the table has one owner, who adds to it in the order of the indices.
template <typename T>
void scatter(Team* team, const Embedding& e, const T* dy, const std::int64_t* indices, T* dw, bool add) {
  constexpr std::int64_t kParts = 8;  // each of which looks at all indices
  const std::int64_t part = std::max((e.rows + kParts - 1) / kParts, stretches_of(e.rows, e.width).length);
  share(team, Stretches{e.rows, part}, [&](std::int64_t first, std::int64_t rows, int) {
    if (!add) std::fill_n(dw + first * e.width, rows * e.width, T{0});
    for (std::int64_t i = 0; i < e.count; ++i) {
      const std::int64_t row = indices[i];
      if (row < first || row >= first + rows || row == e.padding) continue;
      const T* __restrict const from = dy + i * e.width;
      T* __restrict const to = dw + row * e.width;
      for (std::int64_t c = 0; c < e.width; ++c) to[c] += from[c];
    }
  });
}

// Schema: weight, indices, padding_idx, scale_grad_by_freq, sparse.
void embedding(LoweringContext& site) {
  Builder& b = site.b;
  Embedding e{b.contiguous(site.tensor(0)), b.contiguous(site.tensor(1)), {}};
  if (e.weight.dim() != 2 || e.weight.dtype != b.dtype())
    site.fail("its weight is no matrix of floating-point numbers");
  if (e.indices.dtype != DType::kInt64) site.fail("its indices are not int64");
  if (site.flag(3)) site.fail("gradients scaled by frequency");
  if (site.flag(4)) site.fail("sparse gradients");
  e.rows = e.weight.size(0);
  e.width = e.weight.size(1);
  e.count = e.indices.numel();
  e.padding = site.integer(2);
  Dims sizes = e.indices.sizes;
  sizes.push_back(e.width);
  e.y = b.fresh(sizes);
  typed(b.dtype(), [&]<typename T>() {
    b.emit({e.weight, e.indices, e.y}, [e](const Run& run) {
      gather(run.team, e, run.at<T>(e.weight), run.at<std::int64_t>(e.indices), run.at<T>(e.y));
    });
    b.differentiable({e.weight}, {e.y}, [&b, e] {
      const auto dy = b.gradient(e.y);
      if (!dy) return;
      const Builder::Part dw = b.contribute(e.weight);
      b.emit({*dy, e.indices, dw.tensor}, [=, dy = *dy](const Run& run) {
        scatter(run.team, e, run.at<T>(dy), run.at<std::int64_t>(e.indices), run.at<T>(dw.tensor), dw.add);
      });
    });
  });
  site.bind(e.y);
}

}  // namespace

std::vector<NamedCompiler> embedding_ops() { return {{"aten::embedding", embedding}}; }

}  // namespace hfta::fusion::cpu
