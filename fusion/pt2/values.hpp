#pragma once
/// A stored tensor of floats, number by number; complex numbers are two each, the real part first.

#include <cstdint>

#include "fusion/graph.hpp"

namespace hfta::fusion::pt2 {

/// The tensor has to outlive it.
class Values {
 public:
  explicit Values(const StoredTensor& tensor) : tensor_(tensor) {}
  [[nodiscard]] std::int64_t size() const {
    return elements_of(tensor_.shape, 1) * (is_complex(tensor_.dtype) ? 2 : 1);
  }
  /// Number i as float64, from any type of floats; 0 for other types.
  [[nodiscard]] double operator[](std::int64_t i) const;

 private:
  const StoredTensor& tensor_;
};

}  // namespace hfta::fusion::pt2
