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

// Classes last and in one piece.
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
          a.ignored,
          static_cast<int>(slots),
          static_cast<std::size_t>(a.targets.numel() / std::max<std::int64_t>(slots, 1)),
          static_cast<std::size_t>(classes),
          numbers_or_null<double>(a.smoothing),
          a.one};
}

class ClassLossFunction : public torch::autograd::Function<ClassLossFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const Arguments& given) {
    Arguments arguments = given;
    arguments.x = x;
    const at::Tensor loss = at::empty(arguments.targets.sizes(), x.options()), log_sums = at::empty_like(loss),
                     counted = at::empty_like(loss);
    void* const stream = native_stream(x.device());
    typed(x, [&](auto number) {
      using T = decltype(number);
      cuda::cross_entropy(logits_of<T>(arguments), loss.data_ptr<T>(), log_sums.data_ptr<T>(), counted.data_ptr<T>(),
                          stream);
    });
    context->save_for_backward({x, arguments.targets, arguments.smoothing, log_sums});
    context->saved_data["ignored"] = arguments.ignored;
    context->saved_data["one"] = arguments.one;
    context->mark_non_differentiable({counted});
    return {loss, counted};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Arguments arguments{saved[0], saved[1], saved[2], context->saved_data["ignored"].toInt(),
                              context->saved_data["one"].toDouble()};
    const at::Tensor weights = gradients[0].contiguous(), out = at::empty_like(arguments.x);
    void* const stream = native_stream(out.device());
    typed(out, [&](auto number) {
      using T = decltype(number);
      cuda::cross_entropy_backward(logits_of<T>(arguments), saved[3].const_data_ptr<T>(), weights.const_data_ptr<T>(),
                                   out.data_ptr<T>(), stream);
    });
    return {out, at::Tensor()};
  }
};

}  // namespace

ClassLosses class_losses(const at::Tensor& logits, const at::Tensor& targets, std::int64_t ignored,
                         const SlotNumbers& smoothing) {
  Arguments arguments;
  arguments.targets = targets.to(at::kLong).contiguous();
  arguments.ignored = ignored;
  if (smoothing.is_one()) {
    arguments.one = smoothing.known().front();
  } else {
    arguments.smoothing = smoothing.as(logits.options().dtype(at::kDouble));
  }
  const variable_list out = ClassLossFunction::apply(logits.movedim(2, -1).contiguous(), arguments);
  return {out[0], out[1]};
}

}  // namespace hfta::fusion
