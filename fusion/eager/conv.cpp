#include "fusion/eager/conv.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "fusion/cuda/bias_kernels.hpp"
#include "fusion/cuda/columns_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cuda::Extent extent(std::int64_t h, std::int64_t w) { return {static_cast<int>(h), static_cast<int>(w)}; }
cuda::Extent extent(at::IntArrayRef pair) { return extent(pair[0], pair[1]); }

// How many windows fit.
std::int64_t windows_along(int size, int kernel, int stride, int padding, int dilation) {
  const int beyond_first = size + 2 * padding - dilation * (kernel - 1) - 1;
  TORCH_CHECK(beyond_first >= 0, "a convolution's kernel is larger than its padded images");
  return beyond_first / stride + 1;
}

// Some images of some slots.
struct Piece {
  std::int64_t slot, slots, image, images;

  // t: [c, N, ...]
  [[nodiscard]] at::Tensor of(const at::Tensor& t) const { return t.narrow(0, slot, slots).narrow(1, image, images); }
};

// A layer's sizes, and what follows from them: by the sizes of one slot, but for how many slots a piece has.
class Layer {
 public:
  // `x` without the slots that share it, if `shared`.
  Layer(const at::Tensor& x, const at::Tensor& weight, const ConvWindows& by, std::int64_t most, bool shared)
      : shared_(shared), slots_(x.size(0)), images_(x.size(1)), outputs_(weight.size(1)), most_(most) {
    shape_.channels = static_cast<int>(x.size(2));
    shape_.image = extent(x.size(3), x.size(4));
    shape_.kernel = extent(weight.size(3), weight.size(4));
    shape_.stride = extent(by.stride), shape_.padding = extent(by.padding), shape_.dilation = extent(by.dilation);
    const auto along = [&](int cuda::Extent::*d) {
      return windows_along(shape_.image.*d, shape_.kernel.*d, shape_.stride.*d, shape_.padding.*d, shape_.dilation.*d);
    };
    shape_.windows = extent(along(&cuda::Extent::h), along(&cuda::Extent::w));
    // Pixel by pixel, and a row for each channel: x itself is the columns.
    const auto are = [](const cuda::Extent& e, int number) { return e.h == number && e.w == number; };
    x_is_columns_ = are(shape_.kernel, 1) && are(shape_.stride, 1) && are(shape_.padding, 0) &&
                    x.transpose(1, 2)[0].is_contiguous();
  }

  [[nodiscard]] std::int64_t rows() const { return std::int64_t{shape_.channels} * shape_.kernel.h * shape_.kernel.w; }
  [[nodiscard]] std::int64_t windows() const { return std::int64_t{shape_.windows.h} * shape_.windows.w; }
  [[nodiscard]] bool x_is_columns() const { return x_is_columns_; }
  // [c, N, O, OH, OW] for [c, O, N, OH, OW] in memory
  [[nodiscard]] at::Tensor empty_result(std::int64_t c, const at::TensorOptions& options) const {
    const std::int64_t of_image = windows(), of_output = images_ * of_image, of_slot = outputs_ * of_output;
    return at::empty_strided({c, images_, outputs_, shape_.windows.h, shape_.windows.w},
                             {of_slot, of_image, of_output, shape_.windows.w, 1}, options);
  }

  // Whole slots while one slot's columns are few enough, else one slot's images in turn.
  [[nodiscard]] std::vector<Piece> pieces() const {
    if (x_is_columns_) return {{0, slots_, 0, images_}};
    const std::int64_t pixels = std::int64_t{shape_.image.h} * shape_.image.w, of_image = rows() * windows();
    const std::int64_t places = static_cast<std::int64_t>(cuda::kMostPlaces) / std::max(pixels, windows());
    const std::int64_t images = std::clamp<std::int64_t>(std::min(most_ / of_image, places), 1, images_);
    const std::int64_t slots = images < images_ ? 1 : std::clamp<std::int64_t>(most_ / (of_image * images_), 1, slots_);
    std::vector<Piece> all;
    for (std::int64_t b = 0; b < slots_; b += slots) {
      for (std::int64_t n = 0; n < images_; n += images) {
        all.push_back({b, std::min(slots, slots_ - b), n, std::min(images, images_ - n)});
      }
    }
    return all;
  }

  // Parts of `images` images, over which the weights' gradient is summed separately: one sum over all their windows
  // would leave most of a GPU idle where the weights are few.
  [[nodiscard]] std::int64_t parts_of(std::int64_t images) const {
    constexpr std::int64_t kTile = 64, kTiles = 64, kFewestWindows = 256;
    const auto tiles = [](std::int64_t size) { return (size + kTile - 1) / kTile; };
    const std::int64_t most = std::min(kTiles / (tiles(outputs_) * tiles(rows())), images * windows() / kFewestWindows);
    std::int64_t parts = std::clamp<std::int64_t>(most, 1, images);
    while (images % parts != 0) --parts;
    return parts;
  }

  // [slots * parts, rows (+1), windows]
  [[nodiscard]] at::Tensor columns(const at::Tensor& x, const Piece& piece, std::int64_t parts, bool ones) const {
    const at::Tensor from = piece.of(x);
    const std::int64_t in_part = piece.images / parts * windows();
    if (x_is_columns_ && parts == 1) return from.transpose(1, 2).flatten(2);
    at::Tensor to = at::empty({piece.slots * parts, rows() + (ones ? 1 : 0), in_part}, x.options());
    typed(x, [&](auto number) {
      using T = decltype(number);
      cuda::columns(shape_of(piece, parts, ones), pixels(from, from.const_data_ptr<T>()), to.data_ptr<T>(),
                    native_stream(x.device()));
    });
    return to;
  }
  // Memory for the gradient by x [c, N, C, H, W], in x's memory order if that leaves nothing out.
  [[nodiscard]] at::Tensor empty_gradient(const at::Tensor& x) const {
    if (!x_is_columns_ && x.is_non_overlapping_and_dense()) {
      return at::empty_strided(x.sizes(), x.strides(), x.options());
    }
    return at::empty({x.size(0), x.size(2), x.size(1), x.size(3), x.size(4)}, x.options()).transpose(1, 2);
  }
  // A piece of that gradient, by weights [c, O, rows] and the piece's by_parts() of dy.
  void gradient_by_x(const at::Tensor& dx, const at::Tensor& weights, const at::Tensor& dy, const Piece& piece,
                     std::int64_t parts) const {
    const at::Tensor of_slots = weights.narrow(0, piece.slot, piece.slots).unsqueeze(1);
    const at::Tensor by = of_slots.expand({-1, parts, -1, -1}).flatten(0, 1).transpose(1, 2);
    const at::Tensor to = piece.of(dx);
    if (x_is_columns_ && parts == 1) {
      at::Tensor columns = to.transpose(1, 2).flatten(2);
      at::bmm_out(columns, by, dy);
      return;
    }
    const at::Tensor columns = at::bmm(by, dy).contiguous();
    typed(dx, [&](auto number) {
      using T = decltype(number);
      cuda::images(shape_of(piece, parts, false), columns.const_data_ptr<T>(), pixels(to, to.data_ptr<T>()),
                   native_stream(dx.device()));
    });
  }
  // t: [c, N, O, OH, OW] -> [slots * parts, O, windows], and [parts, c * O, windows] where slots share x: a copy only
  // if its memory is not as empty_result()'s, or if there are parts of several slots.
  [[nodiscard]] at::Tensor by_parts(const at::Tensor& t, const Piece& piece, std::int64_t parts) const {
    const at::Tensor some = shared_ ? t.narrow(1, piece.image, piece.images) : piece.of(t);
    const at::Tensor divided = some.unflatten(1, {parts, piece.images / parts});  // [c, P, N / P, O, OH, OW]
    const at::Tensor ordered = shared_ ? divided.permute({1, 0, 3, 2, 4, 5}) : divided.permute({0, 1, 3, 2, 4, 5});
    return ordered.reshape({piece.slots * parts, -1, piece.images / parts * windows()});
  }

 private:
  [[nodiscard]] cuda::ColumnShape shape_of(const Piece& piece, std::int64_t parts, bool ones) const {
    cuda::ColumnShape shape = shape_;
    shape.slots = static_cast<int>(piece.slots);
    shape.parts = static_cast<int>(parts);
    shape.images = static_cast<int>(piece.images / parts);
    shape.ones = ones;
    return shape;
  }
  template <typename T>
  [[nodiscard]] static cuda::Pixels<T> pixels(const at::Tensor& t, T* numbers) {
    const auto stride = [&](std::int64_t d) { return static_cast<std::size_t>(t.stride(d)); };
    return {numbers, stride(0), stride(1), stride(2), stride(3), stride(4)};
  }

  bool shared_;
  std::int64_t slots_, images_, outputs_, most_;
  cuda::ColumnShape shape_{};
  bool x_is_columns_ = false;
};

// [c, O, C, kh, kw] and, if defined, [c, O] as the products' left side: [slots, outputs, rows (+1)].
at::Tensor as_rows(const at::Tensor& weight, const at::Tensor& bias, std::int64_t slots) {
  const at::Tensor rows = bias.defined() ? at::cat({weight.flatten(2), bias.unsqueeze(2)}, 2) : weight.flatten(2);
  return rows.reshape({slots, -1, rows.size(2)});
}

// [slots * parts, ...] -> [slots, ...], in one order whatever the number of slots.
at::Tensor sum_of_parts(const at::Tensor& products, std::int64_t parts) {
  if (parts == 1) return products;
  const std::int64_t slots = products.size(0) / parts;
  const at::Tensor all = products.contiguous();
  at::Tensor sum = at::empty({slots, all.size(1), all.size(2)}, all.options());
  const cuda::BiasShape shape{static_cast<int>(slots), static_cast<std::size_t>(parts),
                              static_cast<std::size_t>(all.size(1) * all.size(2))};
  const at::Tensor workspace = at::empty({static_cast<std::int64_t>(cuda::bias_workspace(shape))}, all.options());
  typed(all, [&](auto number) {
    using T = decltype(number);
    cuda::add_bias_backward(shape, all.const_data_ptr<T>(), nullptr, nullptr, sum.data_ptr<T>(),
                            workspace.data_ptr<T>(), native_stream(all.device()));
  });
  return sum;
}

// An x without the slots that share it.
at::Tensor once(const at::Tensor& x, bool shared) { return shared ? x.narrow(0, 0, 1) : x; }

class ConvFunction : public torch::autograd::Function<ConvFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const ConvWindows& windows, std::int64_t most) {
    const bool shared = slots_share(x) && !x.requires_grad();
    const at::Tensor from = once(x, shared);
    const Layer layer(from, weight, windows, most, shared);
    // A row of ones spares the result a pass over memory, and its gradient another. TF32 would round the bias.
    const bool ones = bias && !layer.x_is_columns() && !at::globalContext().allowTF32CuBLAS();
    const at::Tensor rows = as_rows(weight, ones ? *bias : at::Tensor(), from.size(0));
    at::Tensor y = layer.empty_result(x.size(0), x.options());
    const std::int64_t of_image = layer.windows();
    const at::Tensor all = y.transpose(1, 2).view({from.size(0), -1, x.size(1) * of_image});
    for (const Piece& piece : layer.pieces()) {
      at::Tensor to = all.narrow(0, piece.slot, piece.slots).narrow(2, piece.image * of_image, piece.images * of_image);
      at::bmm_out(to, rows.narrow(0, piece.slot, piece.slots), layer.columns(from, piece, 1, ones));
    }
    if (bias && !ones) y.add_(bias->unsqueeze(1).unsqueeze(3).unsqueeze(4));
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = windows.stride;
    context->saved_data["padding"] = windows.padding;
    context->saved_data["dilation"] = windows.dilation;
    context->saved_data["most"] = most;
    context->saved_data["shared"] = shared;
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["ones"] = ones;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = gradients[0];
    const auto flag = [&](const char* name) { return context->saved_data[name].toBool(); };
    const auto ints = [&](const char* name) { return context->saved_data[name].toIntVector(); };
    const bool by_x = context->needs_input_grad(0), by_weight = context->needs_input_grad(1),
               by_bias = flag("bias") && context->needs_input_grad(2), ones = flag("ones") && by_weight && by_bias;
    const at::Tensor from = once(x, flag("shared")), weights = weight.flatten(2);
    const Layer layer(from, weight, {ints("stride"), ints("padding"), ints("dilation")},
                      context->saved_data["most"].toInt(), flag("shared"));
    const at::Tensor dx = by_x ? layer.empty_gradient(x) : at::Tensor();
    std::vector<at::Tensor> drows;  // slots after slots
    for (const Piece& piece : layer.pieces()) {
      if (!by_x && !by_weight) break;
      const std::int64_t parts = layer.parts_of(piece.images);
      const at::Tensor some = layer.by_parts(dy, piece, parts);
      if (by_weight) {
        const at::Tensor columns = layer.columns(from, piece, parts, ones);
        const at::Tensor sum = sum_of_parts(at::bmm(some, columns.transpose(1, 2)), parts);
        if (piece.image == 0) {
          drows.push_back(sum);
        } else {
          drows.back().add_(sum);
        }
      }
      if (by_x) layer.gradient_by_x(dx, weights, some, piece, parts);
    }
    at::Tensor dweight, dbias;
    if (by_weight) {
      const at::Tensor joined = drows.size() == 1 ? drows.front() : at::cat(drows);
      const at::Tensor all = joined.view({weight.size(0), weight.size(1), -1});
      dweight = all.narrow(2, 0, layer.rows()).unflatten(2, weight.sizes().slice(2));
      if (ones) dbias = all.select(2, layer.rows());
    }
    // LibTorch sums in an order of its own, which may depend on the number of slots.
    if (by_bias && !ones) dbias = dy.sum({1, 3, 4});
    return {dx, dweight, dbias, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor own_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ConvWindows& windows,
                      std::int64_t most) {
  return ConvFunction::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, windows, most);
}

}  // namespace hfta::fusion
