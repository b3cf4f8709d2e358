#include "fusion/eager/class_losses.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "fusion/cuda/loss_kernels.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Classes last and in one piece. Targets: a slot's in one piece, and the same for all slots or one slot's behind the
// other's.
struct Arguments {
  at::Tensor x, targets, smoothing;  // smoothing: [c] float64, or undefined where `one` holds
  std::int64_t ignored = 0;
  double one = 0;
};

template <typename T>
cuda::Logits<T> logits_of(const Arguments& a) {
  const std::int64_t slots = a.x.size(0), classes = a.x.size(-1);
  return {a.x.const_data_ptr<T>(),
          a.targets.const_data_ptr<std::int64_t>(),
          static_cast<std::size_t>(slots > 1 ? a.targets.stride(0) : 0),
          a.ignored,
          static_cast<int>(slots),
          static_cast<std::size_t>(a.targets.numel() / std::max<std::int64_t>(slots, 1)),
          static_cast<std::size_t>(classes),
          numbers_or_null<double>(a.smoothing),
          a.one};
}

// Tensors by position: losses, what backward needs again, and what counts.
struct Positions {
  at::Tensor losses, log_sums, counted;
};

Positions positions_of(const Arguments& a) {
  const at::Tensor losses = at::empty(a.targets.sizes(), a.x.options());
  Positions all{losses, at::empty_like(losses), at::empty_like(losses)};
  typed(a.x, [&](auto number) {
    using T = decltype(number);
    cuda::cross_entropy(logits_of<T>(a), all.losses.data_ptr<T>(), all.log_sums.data_ptr<T>(),
                        all.counted.data_ptr<T>(), native_stream(a.x.device()));
  });
  return all;
}

// `totals`: of a mean; undefined where gradients are by position.
void save(AutogradContext* context, const Arguments& a, const at::Tensor& log_sums, const at::Tensor& totals) {
  context->save_for_backward({a.x, a.targets, a.smoothing, log_sums, totals});
  context->saved_data["ignored"] = a.ignored;
  context->saved_data["one"] = a.one;
}

at::Tensor logits_gradient(AutogradContext* context, const at::Tensor& by) {
  const variable_list saved = context->get_saved_variables();
  const Arguments a{saved[0], saved[1], saved[2], context->saved_data["ignored"].toInt(),
                    context->saved_data["one"].toDouble()};
  const at::Tensor weights = by.contiguous();
  at::Tensor out = at::empty_like(a.x);
  typed(out, [&](auto number) {
    using T = decltype(number);
    cuda::cross_entropy_backward(logits_of<T>(a), saved[3].const_data_ptr<T>(),
                                 {weights.const_data_ptr<T>(), numbers_or_null<T>(saved[4])}, out.data_ptr<T>(),
                                 native_stream(out.device()));
  });
  return out;
}

class ClassLossFunction : public torch::autograd::Function<ClassLossFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Arguments arguments) {
    arguments.x = x;
    const Positions all = positions_of(arguments);
    save(context, arguments, all.log_sums, {});
    return all.losses;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {logits_gradient(context, gradients[0]), at::Tensor()};
  }
};

class ClassMeanFunction : public torch::autograd::Function<ClassMeanFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Arguments arguments) {
    arguments.x = x;
    const Positions all = positions_of(arguments);
    at::Tensor means = at::empty({x.size(0)}, x.options());
    const at::Tensor totals = at::empty_like(means);
    const auto slots = static_cast<int>(x.size(0));
    const auto positions = static_cast<std::size_t>(all.losses.numel() / std::max<std::int64_t>(x.size(0), 1));
    const at::Tensor workspace = at::empty({static_cast<std::int64_t>(cuda::loss_means_workspace(positions, slots))},
                                           x.options().dtype(at::kDouble));
    typed(x, [&](auto number) {
      using T = decltype(number);
      cuda::loss_means(
          cuda::CountedLosses<T>{all.losses.const_data_ptr<T>(), all.counted.const_data_ptr<T>(), slots, positions},
          means.data_ptr<T>(), totals.data_ptr<T>(), workspace.data_ptr<double>(), native_stream(x.device()));
    });
    save(context, arguments, all.log_sums, totals);
    return means;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {logits_gradient(context, gradients[0]), at::Tensor()};
  }
};

bool same_for_all(const at::Tensor& targets) { return slots_share(targets) && targets.select(0, 0).is_contiguous(); }

}  // namespace

at::Tensor class_losses(const at::Tensor& logits, const at::Tensor& targets, std::int64_t ignored,
                        const SlotNumbers& smoothing, std::int64_t reduction) {
  Arguments arguments;
  arguments.targets = targets.to(at::kLong);
  if (!same_for_all(arguments.targets)) arguments.targets = arguments.targets.contiguous();
  arguments.ignored = ignored;
  if (smoothing.is_one()) {
    arguments.one = smoothing.known().front();
  } else {
    arguments.smoothing = smoothing.as(logits.options().dtype(at::kDouble));
  }
  const at::Tensor x = logits.movedim(2, -1).contiguous();
  if (reduction == at::Reduction::Mean) return ClassMeanFunction::apply(x, arguments);
  const at::Tensor losses = ClassLossFunction::apply(x, arguments);
  return reduction == at::Reduction::Sum ? losses.flatten(1).sum(1) : losses;
}

}  // namespace hfta::fusion
