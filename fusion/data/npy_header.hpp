#pragma once
/// The header of a .npy file. Internal to fusion/data.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fusion/data/array_file.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

struct NpyHeader {
  char kind = 'f';        ///< NumPy's letter: b boolean, i and u integers, f floats.
  std::size_t width = 4;  ///< Bytes of a number.
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::size_t elements = 0;  ///< Product of shape; elements * width does not overflow.
  std::size_t size = 0;      ///< Bytes of the header: where the numbers begin.
};

/// Throws Error{kConfig} for what is not a .npy header, and for types other than plain numbers.
[[nodiscard]] NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& place);

/// What the array's numbers take once they are read (see Use).
[[nodiscard]] std::uint64_t bytes_in_memory(const NpyHeader& header, Use use);

}  // namespace hfta::fusion
