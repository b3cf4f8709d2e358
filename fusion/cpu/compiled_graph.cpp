#include "fusion/cpu/compiled_graph.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace hfta::fusion::cpu {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Tensor CompiledGraph::gradient(std::size_t weight) const {
  const auto found =
      std::find_if(gradients.begin(), gradients.end(), [&](const WeightGradient& one) { return one.weight == weight; });
  return found == gradients.end() ? Tensor() : found->tensor;
}

void Arena::Free::operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(kPage)); }

std::span<std::byte*> Arena::bind(const CompiledGraph& plan) {
  if (bound_ == &plan) return buffers_;
  kept_.clear();
  kept_.resize(plan.parts.size());
  if (plan.arena_bytes > bytes_) {
    memory_.reset();  // not both at once
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new[](plan.arena_bytes, std::align_val_t(kPage))));
    bytes_ = plan.arena_bytes;
  }
  buffers_.assign(plan.offsets.size(), nullptr);
  for (std::size_t b = 0; b < plan.offsets.size(); ++b) {
    if (plan.offsets[b] != CompiledGraph::kOutside) buffers_[b] = memory_.get() + plan.offsets[b];
  }
  for (const CompiledGraph::Constant& constant : plan.constants) {  // no kernel writes to them
    buffers_[static_cast<std::size_t>(constant.buffer)] = const_cast<std::byte*>(constant.bytes.data());
  }
  bound_ = &plan;
  return buffers_;
}

}  // namespace hfta::fusion::cpu
