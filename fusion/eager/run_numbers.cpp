#include "fusion/eager/run_numbers.hpp"

#include <ATen/ATen.h>

#include "fusion/random/mask_part.hpp"

namespace hfta::fusion {

SlotNumbers HostNumbers::hyper(int index) const {
  std::vector<double> of_slots;
  for (const std::vector<double>& hypers : hypers_) of_slots.push_back(hypers.at(static_cast<std::size_t>(index)));
  return of_slots;
}

std::span<const double> HostNumbers::hypers_of(std::size_t slot) const {
  return hypers_.empty() ? std::span<const double>() : hypers_[slot];
}

// `fill(row, n, slot)` for each slot's part of a tensor on the host.
template <typename Fill>
at::Tensor HostNumbers::filled(at::IntArrayRef sizes, const at::TensorOptions& like, Fill fill) const {
  const at::Tensor host = at::empty(sizes, like.device(at::kCPU));
  const std::size_t n = static_cast<std::size_t>(host.numel()) / random_.size();
  for (std::size_t b = 0; b < random_.size(); ++b) {
    if (host.scalar_type() == at::kDouble) {
      fill(host.data_ptr<double>() + b * n, n, b);
    } else {
      fill(host.data_ptr<float>() + b * n, n, b);
    }
  }
  return host.to(like.device());
}

at::Tensor HostNumbers::dropout_masks(at::IntArrayRef sizes, const SlotNumbers& rates, std::uint32_t node,
                                      const at::TensorOptions& like) const {
  return filled(sizes, like, [&](auto* out, std::size_t n, std::size_t b) {
    fill_dropout_mask_part(out, random_[b].elements_before(n), n, rates.known()[b], random_[b].key, node,
                           random_[b].step);
  });
}

at::Tensor HostNumbers::uniforms(at::IntArrayRef sizes, std::uint32_t node, const at::TensorOptions& like) const {
  return filled(sizes, like, [&](auto* out, std::size_t n, std::size_t b) {
    fill_uniform(out, n, random_[b].key, node, random_[b].step);
  });
}

at::Tensor HostNumbers::normals(at::IntArrayRef sizes, std::uint32_t node, const at::TensorOptions& like) const {
  return filled(sizes, like, [&](auto* out, std::size_t n, std::size_t b) {
    fill_normal(out, n, random_[b].key, node, random_[b].step);
  });
}

}  // namespace hfta::fusion
