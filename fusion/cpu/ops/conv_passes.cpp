#include "fusion/cpu/ops/conv_passes.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "fusion/cpu/kernels/conv_pass.hpp"
#include "fusion/cpu/kernels/image_sets.hpp"
#include "fusion/cpu/kernels/output_sums.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

// Whether `to`, which is made of `from`, may take its place: an image of it is made of that image alone, which is
// copied first.
template <typename T>
bool in_place(const Tensor& from, const Tensor& to, const DataPass<T>& product) {
  return from.lies_like(to) && from.offset == 0 && product.copies_source();
}

// A pass over a batch, and its memory: turned weights, then scratch.
template <typename T>
struct BatchPass {
  std::shared_ptr<const DataPass<T>> pass;  // null: nobody wants what it computes
  Tensor memory;

  /// The whole batch's: weights are turned.
  [[nodiscard]] typename DataPass<T>::Call begin(const Run& run, typename DataPass<T>::Call call) const {
    call.team = run.team;
    call.turned = run.at<T>(memory);
    call.scratch = call.turned + pass->turned_size();
    pass->turn(call);
    return call;
  }
  void run(const SomeImages& some, typename DataPass<T>::Call call) const {
    call.team = some.team;
    call.first = some.first;
    call.images = some.images;
    call.scratch += place_of_call(*pass, some);
    (*pass)(call);
  }
};

template <typename T>
BatchPass<T> planned(Builder& b, const std::shared_ptr<const DataPass<T>>& pass) {
  return {pass, b.fresh({pass->turned_size() + scratch_of_calls(*pass, b.threads())})};
}

template <typename T>
Kernel forward_kernel(const Conv& c, const BatchPass<T>& product) {
  return [=, sets = ImageSets(c.shape)](const Run& run) {
    const auto call = product.begin(run, {.source = run.at<T>(c.x),
                                          .weight = run.at<T>(c.weight),
                                          .result = run.at<T>(c.y),
                                          .bias = c.bias.defined() ? run.at<T>(c.bias) : nullptr,
                                          .relu = c.relu});
    sets.for_each(run.team, true, [&](const SomeImages& some) { product.run(some, call); });
  };
}

template <typename T>
void forward(Builder& b, const Conv& c) {
  const std::shared_ptr<const DataPass<T>> pass = data_pass<T>(c.shape, c.transposed, false);
  const BatchPass<T> product = planned(b, pass), again = planned(b, pass);
  b.emit({c.x, c.weight, c.bias, c.y, product.memory}, forward_kernel<T>(c, product));
  b.names_algorithm(pass->name());
  if (in_place(c.x, c.y, *pass)) b.writes_in_place(c.x, c.y);
  b.recomputable(c.y, {c.x, c.weight, c.bias, c.y, again.memory}, forward_kernel<T>(c, again), RecomputeCost::kProduct);
}

// emit_output_sums() for a convolution.
void emit_conv_sums(Builder& b, const Conv& c, const Tensor& dy) {
  const auto place = b.bounded(c.weight);
  if (!place) return;
  const Tensor scratch = b.fresh({2 * c.shape.o}, DType::kFloat64);
  b.emit({dy, scratch}, [=, shape = c.shape, place = *place](const Run& run) {
    if (const SlotBounds* const bounds = run.coding->measured()) {
      sum_output(shape, run.at<float>(dy), run.at<double>(scratch), bounds->sums(place));
    }
  });
}

// Arguments of the backward. Tensors that nobody wants are undefined.
template <typename T>
struct Gradients {
  Conv c;
  Tensor dy;
  Builder::Part db, dw, dx;
  std::shared_ptr<const WeightPass<T>> weight_pass;  // computes dw
  BatchPass<T> product;                              // computes dx
  ImageSets sets;
  Tensor sums, bias_sums;  // sums of each set
  Tensor scratch;          // the weight pass's
  bool masks = false;

  [[nodiscard]] std::int64_t x_image() const { return c.x.numel() / c.shape.n; }  // elements
  [[nodiscard]] std::string algorithm() const {
    const std::string weight = weight_pass != nullptr ? weight_pass->name() : "";
    const std::string x = product.pass != nullptr ? product.pass->name() : weight;
    return weight.empty() || weight == x ? x : "weight " + weight + ", input " + x;
  }
};

// `x`: of these images.
template <typename T>
void add_to_sums(const Gradients<T>& g, const Run& run, const SomeImages& some, const T* x, const T* dy) {
  (*g.weight_pass)({.team = some.team,
                    .images = some.images,
                    .x = g.c.transposed ? dy : x,
                    .dy = g.c.transposed ? x : dy,
                    .sums = run.at<T>(g.sums) + some.set * g.weight_pass->sums_size(),
                    .begins = some.begins,
                    .dweight = run.at<T>(g.dw.tensor),
                    .scratch = run.at<T>(g.scratch) + place_of_call(*g.weight_pass, some)});
}

// Gradients of parameters, of the sums of all sets.
template <typename T>
void finish_sums(const Gradients<T>& g, const Run& run) {
  if (g.bias_sums.defined()) {
    const std::int64_t channels = g.c.channels();
    T* const sums = run.at<T>(g.bias_sums);
    T* const db = run.at<T>(g.db.tensor);
    add_sets(nullptr, sums, channels, g.sets.count());
    for (std::int64_t o = 0; o < channels; ++o) db[o] = g.db.add ? db[o] + sums[o] : sums[o];
  }
  if (g.weight_pass != nullptr) {
    T* const sums = run.at<T>(g.sums);
    add_sets(run.team, sums, g.weight_pass->sums_size(), g.sets.count());
    g.weight_pass->finish(
        {.team = run.team, .sums = sums, .dweight = run.at<T>(g.dw.tensor), .scratch = run.at<T>(g.scratch)});
  }
}

// All of an image's gradients at once, while it is in the cache. `images_of_x`: x of some images; called if dw is
// wanted, for several sets at the same time if `apart`.
template <typename T, typename ImagesOfX>
void run_backward(const Gradients<T>& g, const Run& run, bool apart, const ImagesOfX& images_of_x) {
  const Conv& c = g.c;
  const std::int64_t channels = c.channels(), pixels = c.pixels();
  T* const dy = run.at<T>(g.dy);
  typename DataPass<T>::Call to_dx;
  if (g.product.pass != nullptr) {
    to_dx = g.product.begin(run, {.source = dy, .weight = run.at<T>(c.weight), .result = run.at<T>(g.dx.tensor)});
  }
  g.sets.for_each(run.team, apart, [&](const SomeImages& some) {
    const std::int64_t at = some.first * pixels * channels;
    if (g.bias_sums.defined() || g.masks) {
      mask_and_sum(some.team, dy + at, g.masks ? run.at<T>(c.y) + at : nullptr, channels, some.images * pixels,
                   channels, g.bias_sums.defined() ? run.at<T>(g.bias_sums) + some.set * channels : nullptr,
                   !some.begins);
    }
    if (g.weight_pass != nullptr) add_to_sums<T>(g, run, some, images_of_x(some), dy + at);
    if (g.product.pass != nullptr) g.product.run(some, to_dx);
  });
  finish_sums(g, run);
}

// The backward where x lies encoded: some images are decoded at a time.
Builder::Pieces by_images(Builder& b, const Gradients<float>& g, std::vector<Tensor> touched) {
  const std::int64_t image = g.x_image(), piece = images_at_once(g.c.shape) * image;
  const Tensor memory = b.fresh({piece});
  touched.front() = memory;
  return {piece, std::move(touched), [=](std::size_t i) -> Kernel {
            return [=](const Run& run) {
              run_backward<float>(g, run, false, [&](const SomeImages& some) {
                auto* const x = run.at<float>(memory);
                run.coding->decode(run, i, some.first * image, some.images * image, x, some.team);
                return x;
              });
            };
          }};
}

template <typename T>
void emit_backward(Builder& b, const Gradients<T>& g, bool bounded) {
  const Conv& c = g.c;
  const std::vector<Tensor> touched = {g.weight_pass != nullptr ? c.x : Tensor{},
                                       c.weight,
                                       g.masks ? c.y : Tensor{},
                                       g.dy,
                                       g.db.tensor,
                                       g.dw.tensor,
                                       g.dx.tensor,
                                       g.sums,
                                       g.bias_sums,
                                       g.scratch,
                                       g.product.memory};
  b.emit(touched, [=](const Run& run) {
    run_backward<T>(g, run, true, [&](const SomeImages& some) { return run.at<T>(g.c.x) + some.first * g.x_image(); });
  });
  b.names_algorithm(g.algorithm());
  if constexpr (std::is_same_v<T, float>) {
    if (b.bounded(c.weight) && bounded)
      b.reads_for_gradient(c.x, c.weight, c.shape.c, c.shape.groups, by_images(b, g, touched));
  }
}

// Memory of what is summed over images.
template <typename T>
void plan_sums(Builder& b, Gradients<T>& g) {
  const std::int64_t of_weight = g.weight_pass != nullptr ? g.weight_pass->sums_size() : 0;
  const std::int64_t of_bias = g.db.tensor.defined() ? g.c.channels() : 0;
  g.sets = ImageSets(g.c.shape, of_weight + of_bias);
  if (of_bias > 0) g.bias_sums = b.fresh({g.sets.count() * of_bias});
  if (of_weight == 0) return;
  g.sums = b.fresh({g.sets.count() * of_weight});
  g.scratch = b.fresh({scratch_of_calls(*g.weight_pass, b.threads())});
}

// `signs`: of y, where its relu does not read y itself.
template <typename T>
void backward(Builder& b, const Conv& c, const Tensor& signs) {
  const auto given = b.gradient(c.y);
  if (!given) return;
  const bool wants_weight = b.wants_gradient(c.weight), wants_x = b.wants_gradient(c.x);
  const bool replaces = wants_x && b.encodes() && !b.has_gradient(c.x) &&
                        in_place(*given, c.x, *data_pass<T>(c.shape, !c.transposed, false));
  Gradients<T> g;
  g.c = c;
  g.dy = *given;
  g.masks = c.relu && !signs.defined();
  g.db = b.contribute_if_wanted(c.bias);
  g.dw = b.contribute_if_wanted(c.weight);
  g.dx = replaces ? Builder::Part{*given, false} : b.contribute_if_wanted(c.x);
  if (wants_weight) g.weight_pass = weight_pass<T>(c.shape, g.dw.add);
  plan_sums(b, g);
  if (wants_x) g.product = planned<T>(b, data_pass<T>(c.shape, !c.transposed, g.dx.add));
  const bool bounded = wants_weight && !c.transposed;
  if (signs.defined()) emit_mask(b, *given, signs);
  if (bounded) emit_conv_sums(b, c, *given);
  emit_backward<T>(b, g, bounded);
  if (replaces) b.hand_over_gradient(c.y, c.x);
}

}  // namespace

void emit_conv(Builder& b, const Conv& conv) {
  typed(b.dtype(), [&]<typename T>() {
    if (!conv.transposed) emit_input_square(b, conv.weight, conv.x);
    forward<T>(b, conv);
    const Tensor signs = conv.relu ? kept_signs(b, conv.y) : Tensor{};
    b.differentiable({conv.x, conv.weight, conv.bias}, {conv.y}, [&b, conv, signs] { backward<T>(b, conv, signs); });
  });
}

}  // namespace hfta::fusion::cpu
