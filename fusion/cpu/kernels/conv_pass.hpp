#pragma once
/// Interface of every algorithm for convolutions: two data passes, and the gradient of the weights. A convolution's
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
  /// Elements of the weights as the algorithm reads them.
  [[nodiscard]] virtual std::int64_t turned_size() const = 0;
  /// Elements that a call needs beside them, for a team of so many threads.
  [[nodiscard]] virtual std::int64_t scratch(int threads) const = 0;
  /// Whether a call reads its source before it writes anything: the result may then be the same memory.
  [[nodiscard]] virtual bool copies_source() const = 0;

  struct Call {
    Team* team = nullptr;                ///< Who shares the work; null: the caller alone.
    std::int64_t first = 0, images = 0;  ///< Part of the batch: `first` is a multiple of images_at_once(), `images` at
                                         ///< most as many.
    const T* source = nullptr;           ///< Source of the whole batch.
    const T* weight = nullptr;           ///< [O, C / groups, kernel].
    T* turned = nullptr;                 ///< turned_size() elements.
    T* result = nullptr;                 ///< Result of the whole batch.
    T* scratch = nullptr;                ///< scratch() elements, not shared with another running call.
    const T* bias = nullptr;             ///< May be null.
    bool relu = false;
  };
  /// Makes call.turned of call.weight: once, before the calls of a batch. Some algorithms do nothing here where a batch
  /// has but one call: that turns weights as it reads them.
  virtual void turn(const Call& call) const = 0;
  /// Calls for other images of a batch may run at the same time.
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
  /// Elements of sums as the algorithm keeps them.
  [[nodiscard]] virtual std::int64_t sums_size() const = 0;
  /// Elements that a call needs beside them, for a team of so many threads.
  [[nodiscard]] virtual std::int64_t scratch(int threads) const = 0;

  struct Call {
    Team* team = nullptr;     ///< Who shares the work; null: the caller alone.
    std::int64_t images = 0;  ///< At most images_at_once().
    const T* x = nullptr;     ///< Input of these images.
    const T* dy = nullptr;    ///< Output gradient of these images.
    T* sums = nullptr;        ///< sums_size() elements.
    bool begins = true;       ///< The sums begin at 0: their old contents do not count.
    T* dweight = nullptr;     ///< [O, C / groups, kernel].
    T* scratch = nullptr;     ///< scratch() elements, not shared with another running call.
  };
  /// Adds what these images contribute to the sums. Calls with other sums may run at the same time.
  virtual void operator()(const Call& call) const = 0;
  /// Makes call.dweight of call.sums: once, behind the calls of a batch. Some algorithms do nothing here where a batch
  /// has but one call: that makes each weight's gradient as soon as its sum is complete.
  virtual void finish(const Call& call) const = 0;
};

/// `backward`: the gradient of x. `add`: results are added to what is there. Throws Error{kConfig} where LIBXSMM makes
/// no kernels for this processor.
template <typename T>
[[nodiscard]] std::unique_ptr<const DataPass<T>> data_pass(const ConvShape& shape, bool backward, bool add);
template <typename T>
[[nodiscard]] std::unique_ptr<const WeightPass<T>> weight_pass(const ConvShape& shape, bool add);

}  // namespace hfta::fusion::cpu
