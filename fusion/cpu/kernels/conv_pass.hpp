#pragma once
/// What every algorithm for convolutions offers: the two data passes, and the gradient of the weights. A convolution's
/// shape alone says which algorithm computes it, so that its result is the same bits on every run.

#include <memory>

#include "fusion/cpu/kernels/conv_geometry.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// y from x, or the gradient of x from that of y. T: float, double. Immutable; many threads may call one.
template <typename T>
class DataPass {
 public:
  DataPass() = default;
  virtual ~DataPass() = default;
  DataPass(const DataPass&) = delete;
  DataPass& operator=(const DataPass&) = delete;

  /// The algorithm's name, for profiles.
  [[nodiscard]] virtual const char* name() const = 0;
  /// Elements, for a team of so many threads.
  [[nodiscard]] virtual std::int64_t scratch(int threads) const = 0;
  /// Whether a call reads its source before it writes anything: the result may then be the same memory.
  [[nodiscard]] virtual bool copies_source() const = 0;

  struct Call {
    Team* team = nullptr;  ///< Who shares the work; null: the caller alone.
    std::int64_t first = 0,
                 images = 0;    ///< Of the batch; steps of images_at_once(), from 0 on: weights are turned then.
    const T* source = nullptr;  ///< The whole batch's.
    const T* weight = nullptr;  ///< [O, C / groups, kernel].
    T* result = nullptr;        ///< The whole batch's.
    T* scratch = nullptr;       ///< The same in all calls of a batch.
    const T* bias = nullptr;    ///< May be null.
    bool relu = false;
  };
  virtual void operator()(const Call& call) const = 0;
};

/// The gradient of the weights. T: float, double. Immutable; many threads may call one.
template <typename T>
class WeightPass {
 public:
  WeightPass() = default;
  virtual ~WeightPass() = default;
  WeightPass(const WeightPass&) = delete;
  WeightPass& operator=(const WeightPass&) = delete;

  [[nodiscard]] virtual const char* name() const = 0;
  /// Elements, for a team of so many threads.
  [[nodiscard]] virtual std::int64_t scratch(int threads) const = 0;

  struct Call {
    Team* team = nullptr;                ///< Who shares the work; null: the caller alone.
    std::int64_t first = 0, images = 0;  ///< Of the batch; steps of images_at_once(), from 0 to the end.
    const T* x = nullptr;                ///< Of these images.
    const T* dy = nullptr;               ///< Likewise.
    T* dweight = nullptr;                ///< [O, C / groups, kernel]; written by the last call.
    T* scratch = nullptr;                ///< The same in all calls of a batch.
  };
  virtual void operator()(const Call& call) const = 0;
};

/// `backward`: the gradient of x. `add`: results are added to what is there. Throws Error{kConfig} where LIBXSMM makes
/// no kernels for this processor.
template <typename T>
[[nodiscard]] std::unique_ptr<const DataPass<T>> data_pass(const ConvShape& shape, bool backward, bool add);
template <typename T>
[[nodiscard]] std::unique_ptr<const WeightPass<T>> weight_pass(const ConvShape& shape, bool add);

}  // namespace hfta::fusion::cpu
