#pragma once
/// Internal to fusion/features.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fusion/eager/program.hpp"
#include "fusion/execution/thread_pool.hpp"
#include "fusion/features.hpp"

namespace hfta::fusion {

class FeatureModel::Impl {
 public:
  Impl(std::shared_ptr<const SplitModel> split, int threads);

  /// The features of a block, [block, ...] each, contiguous. `samples`: in the model's order of prefix inputs. Throws
  /// Error{kConfig} if they have other sizes or another type than the graph declares.
  [[nodiscard]] std::vector<at::Tensor> run(const Samples& samples) const;
  /// work(0) to work(n - 1) on the threads, for one caller after the other.
  void for_each(int n, const std::function<void(int)>& work) {
    const std::lock_guard lock(in_use_);
    threads_.run(n, work);
  }

  std::shared_ptr<const SplitModel> split;
  std::vector<at::Tensor> weights;

 private:
  Program program_;
  ThreadPool threads_;
  std::mutex in_use_;
};

}  // namespace hfta::fusion
