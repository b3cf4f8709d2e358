#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "base/checked.hpp"
#include "fusion/features/feature_model.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

std::int64_t blocks_of(std::int64_t samples, std::int64_t block) { return (samples + block - 1) / block; }

}  // namespace

std::int64_t kept_bytes(const SplitModel& split, std::int64_t samples) {
  return checked_mul(samples, split.bytes_per_sample).value_or(std::numeric_limits<std::int64_t>::max());
}

class FeatureSet::Impl {
 public:
  Impl(std::shared_ptr<FeatureModel> model, std::span<const SampleArray> inputs, std::int64_t size, std::int64_t room)
      : model_(std::move(model)), size_(size) {
    const SplitModel& split = model_->split();
    for (const std::size_t input : split.prefix_inputs) samples_.inputs.push_back(inputs[input]);
    const std::int64_t fit = room / std::max<std::int64_t>(1, split.bytes_per_sample);
    // Whole blocks are kept, so that none is computed for a part of it; the last one may be short.
    kept_ = fit >= size ? size : fit / split.block * split.block;
    done_.resize(static_cast<std::size_t>(blocks_of(kept_, split.block)), false);
    missing_ = static_cast<std::int64_t>(done_.size());
    for (std::size_t f = 0; f < split.prefix.outputs.size(); ++f) {
      std::vector<std::int64_t> sizes = sample_sizes(f);
      sizes.front() = kept_;
      columns_.push_back(at::empty(sizes, type(f)));
    }
    complete_ = kept_ == size && missing_ == 0;
  }

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] at::ScalarType type(std::size_t column) const { return scalar_type(declared(column).dtype); }
  [[nodiscard]] std::int64_t stride(std::size_t column) const { return elements_of(declared(column).shape, 1); }

  std::vector<at::Tensor> rows(const at::Tensor& index) {
    const auto* const which = index.const_data_ptr<std::int64_t>();
    const std::int64_t n = index.size(0);
    const std::lock_guard lock(mutex_);
    const Blocks passing = compute(missing_of(which, n));
    std::vector<at::Tensor> all;
    for (std::size_t f = 0; f < columns_.size(); ++f) {
      std::vector<std::int64_t> sizes = sample_sizes(f);
      sizes.front() = n;
      all.push_back(at::empty(sizes, type(f)));
      copy(f, which, n, passing, static_cast<std::byte*>(all.back().data_ptr()));
    }
    return all;
  }

  [[nodiscard]] at::Tensor all(std::size_t column) const { return complete_ ? columns_[column] : at::Tensor(); }

  [[nodiscard]] FeatureCounts counts() const {
    return {size_, kept_, computed_.load(), kept_bytes(model_->split(), kept_)};
  }

 private:
  using Blocks = std::map<std::int64_t, std::vector<at::Tensor>>;

  [[nodiscard]] const Value& declared(std::size_t column) const {
    const Graph& prefix = model_->split().prefix;
    return prefix.values[static_cast<std::size_t>(prefix.outputs[column])];
  }
  [[nodiscard]] std::vector<std::int64_t> sample_sizes(std::size_t column) const {
    return {declared(column).shape.begin(), declared(column).shape.end()};
  }
  [[nodiscard]] std::size_t row_bytes(std::size_t column) const {
    return static_cast<std::size_t>(stride(column)) * c10::elementSize(type(column));
  }

  [[nodiscard]] std::vector<std::int64_t> missing_of(const std::int64_t* which, std::int64_t n) const {
    std::vector<std::int64_t> blocks;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t block = which[i] / model_->split().block;
      const bool there = which[i] < kept_ && done_[static_cast<std::size_t>(block)];
      if (!there) blocks.push_back(block);
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    return blocks;
  }

  // Keeps what there is room for, and returns the rest.
  Blocks compute(const std::vector<std::int64_t>& blocks) {
    Blocks passing;
    if (blocks.empty()) return passing;
    std::vector<std::vector<at::Tensor>> results(blocks.size());
    model_->impl_->for_each(static_cast<int>(blocks.size()), [&](int i) {
      results[static_cast<std::size_t>(i)] = model_->impl_->run(samples_of(blocks[static_cast<std::size_t>(i)]));
    });
    const std::int64_t block = model_->split().block;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::int64_t first = blocks[i] * block, count = std::min(block, size_ - first);
      computed_ += count;
      if (first >= kept_) {
        passing.emplace(blocks[i], std::move(results[i]));
        continue;
      }
      for (std::size_t f = 0; f < columns_.size(); ++f) {
        auto* const to =
            static_cast<std::byte*>(columns_[f].data_ptr()) + static_cast<std::size_t>(first) * row_bytes(f);
        std::memcpy(to, results[i][f].const_data_ptr(), static_cast<std::size_t>(count) * row_bytes(f));
      }
      done_[static_cast<std::size_t>(blocks[i])] = true;
      --missing_;
    }
    if (kept_ == size_ && missing_ == 0) complete_ = true;
    return passing;
  }

  [[nodiscard]] Samples samples_of(std::int64_t block) const {
    const std::int64_t n = model_->split().block, first = block * n;
    Samples samples = samples_;
    samples.order = at::arange(first, first + n, at::kLong).clamp_max_(size_ - 1);
    return samples;
  }

  void copy(std::size_t column, const std::int64_t* which, std::int64_t n, const Blocks& passing,
            std::byte* out) const {
    const std::size_t bytes = row_bytes(column);
    const std::int64_t block = model_->split().block;
    for (std::int64_t i = 0; i < n; ++i, out += bytes) {
      const bool kept = which[i] < kept_;
      const at::Tensor& from = kept ? columns_[column] : passing.at(which[i] / block)[column];
      const auto row = static_cast<std::size_t>(kept ? which[i] : which[i] % block);
      std::memcpy(out, static_cast<const std::byte*>(from.const_data_ptr()) + row * bytes, bytes);
    }
  }

  std::shared_ptr<FeatureModel> model_;
  Samples samples_;  // the prefix's inputs
  std::int64_t size_, kept_ = 0, missing_ = 0;
  std::vector<at::Tensor> columns_;  // [kept, ...] each
  std::vector<bool> done_;           // by kept block
  std::atomic<std::int64_t> computed_ = 0;
  std::atomic<bool> complete_ = false;
  std::mutex mutex_;
};

FeatureSet::FeatureSet(std::shared_ptr<FeatureModel> model, std::span<const SampleArray> inputs, std::int64_t size,
                       std::int64_t room)
    : impl_(std::make_unique<Impl>(std::move(model), inputs, size, room)) {}
FeatureSet::~FeatureSet() = default;

std::int64_t FeatureSet::size() const { return impl_->size(); }
std::int64_t FeatureSet::stride(std::size_t column) const { return impl_->stride(column); }
at::ScalarType FeatureSet::type(std::size_t column) const { return impl_->type(column); }
std::vector<at::Tensor> FeatureSet::rows(const at::Tensor& index) const { return impl_->rows(index); }
at::Tensor FeatureSet::all(std::size_t column) const { return impl_->all(column); }
FeatureCounts FeatureSet::counts() const { return impl_->counts(); }

std::vector<SampleArray> rest_inputs(const SplitModel& split, std::span<const SampleArray> inputs,
                                     const std::shared_ptr<const FeatureSet>& features) {
  std::vector<SampleArray> all;
  for (std::size_t f = 0; f < split.prefix.outputs.size(); ++f) all.emplace_back(features, f);
  for (const std::size_t input : split.rest_inputs) all.push_back(inputs[input]);
  return all;
}

}  // namespace hfta::fusion
