#include "fusion/samples.hpp"

#include <ATen/ATen.h>

namespace hfta::fusion {

std::int64_t Samples::size() const {
  if (end >= 0) return end - begin;
  return (order.defined() ? order.size(0) : target.size(0)) - begin;
}

at::Tensor Samples::of(const at::Tensor& all) const {
  const std::int64_t n = size();
  if (order.defined()) return all.index_select(0, order.narrow(0, begin, n));
  return n == all.size(0) ? all : all.narrow(0, begin, n);
}

}  // namespace hfta::fusion
