#pragma once
/// One number of every slot: known on the host, or read from the device when the step runs.

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hfta::fusion {

class SlotNumbers {
 public:
  SlotNumbers(std::vector<double> known) : known_(std::move(known)) {}
  /// [slots] float64; the host must not look at them.
  explicit SlotNumbers(at::Tensor on_device) : on_device_(std::move(on_device)) {}

  [[nodiscard]] bool is_known() const { return !on_device_.defined(); }
  [[nodiscard]] const std::vector<double>& known() const { return known_; }
  /// Whether the numbers are known and equal for all slots.
  [[nodiscard]] bool is_one() const {
    return is_known() && std::equal(known_.begin() + (known_.empty() ? 0 : 1), known_.end(), known_.begin());
  }
  /// Whether the numbers are known and `is` holds for each.
  template <typename Is>
  [[nodiscard]] bool all(Is is) const {
    return is_known() && std::all_of(known_.begin(), known_.end(), is);
  }
  /// [slots], of `like`'s dtype and device. Where one number is known nothing is copied from the host.
  [[nodiscard]] at::Tensor as(const at::TensorOptions& like) const {
    if (!is_known()) return on_device_.to(like.dtype().toScalarType());
    const auto count = static_cast<std::int64_t>(known_.size());
    if (is_one()) return at::full({count}, known_.front(), like);
    const at::Tensor host = at::empty({count}, at::kDouble);
    std::copy(known_.begin(), known_.end(), host.data_ptr<double>());
    return host.to(like.device(), like.dtype());
  }
  /// The numbers mapped by `of`, which works on a double and on a tensor of them.
  template <typename Of>
  [[nodiscard]] SlotNumbers map(Of of) const {
    if (!is_known()) return SlotNumbers(of(on_device_));
    std::vector<double> mapped;
    for (const double number : known_) mapped.push_back(of(number));
    return mapped;
  }

 private:
  std::vector<double> known_;
  at::Tensor on_device_;
};

}  // namespace hfta::fusion
