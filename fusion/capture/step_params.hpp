#pragma once
/// Everything that changes from step to step or from trial to trial, for the slots of one chunk, in one piece of memory
/// on the device. A captured step reads it there, so that these changes never need a new capture.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

class StepParams {
 public:
  /// `type`: that of the weights, float or double. `groups`: how many sets of optimizer numbers a slot has.
  StepParams(OptimizerKind kind, at::ScalarType type, int slots, int groups, int hypers, const at::Device& device);

  /// Sets them all, in order on the current stream; does not wait. `begin`: Samples::begin of the step.
  void set(std::span<const SlotRun> slots, std::int64_t begin);

  [[nodiscard]] int slots() const { return slots_; }
  [[nodiscard]] int groups() const { return groups_; }
  [[nodiscard]] at::ScalarType type() const { return type_; }
  [[nodiscard]] OptimizerKind kind() const { return kind_; }
  /// Views of that memory.
  [[nodiscard]] at::Tensor hyper(int index) const { return hypers_.at(static_cast<std::size_t>(index)); }
  [[nodiscard]] at::Tensor updated() const {  ///< [slots] uint8: SlotStep::updates.
    return bytes_.narrow(0, static_cast<std::int64_t>(updates_), slots_);
  }
  [[nodiscard]] const at::Tensor& weight_limits() const { return limits_; }  ///< [slots]: limits for clamp_weights.
  [[nodiscard]] const at::Tensor& memory() const { return bytes_; }
  /// Addresses in that memory.
  [[nodiscard]] const std::int64_t* begin() const { return at<std::int64_t>(0); }
  [[nodiscard]] const SlotRandom* random() const { return at<SlotRandom>(random_); }
  [[nodiscard]] const double* clip_norms() const { return at<double>(clip_); }  ///< Negative for none.
  [[nodiscard]] const unsigned char* updates() const { return at<unsigned char>(updates_); }
  /// [slots, groups]: the Numbers of kind()'s rule, of type().
  [[nodiscard]] const void* numbers() const { return at<std::byte>(numbers_); }

  // ---- One slot's, on a CPU ----

  /// REQUIRES that T is type().
  template <typename T>
  [[nodiscard]] NumbersView<T> numbers_of(std::size_t slot) const {
    const std::size_t bytes = static_cast<std::size_t>(groups_) * bytes_of_numbers_;
    return {kind_, std::span(at<std::byte>(numbers_ + slot * bytes), bytes)};
  }
  [[nodiscard]] std::optional<double> clip_norm(std::size_t slot) const {
    const double norm = clip_norms()[slot];
    return norm < 0 ? std::nullopt : std::optional(norm);
  }

 private:
  template <typename T>
  [[nodiscard]] const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(bytes_.const_data_ptr()) + offset);
  }

  OptimizerKind kind_;
  at::ScalarType type_;
  int slots_, groups_;
  std::size_t random_ = 0, hyper_ = 0, clip_ = 0, limit_ = 0, updates_ = 0, numbers_ = 0;  // offsets
  std::size_t bytes_of_numbers_;
  at::Tensor bytes_;
  std::vector<at::Tensor> hypers_;  // [slots] float64 each
  at::Tensor limits_;
};

}  // namespace hfta::fusion
