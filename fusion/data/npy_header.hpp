#pragma once
/// The header of a .npy file. Internal to fusion/data.

#include <cstddef>
#include <span>
#include <string>

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {

struct NpyHeader : NumberLayout {
  std::size_t size = 0;  ///< Bytes of the header: where the numbers begin.
};

/// Throws Error{kConfig} for what is not a .npy header, and for types other than plain numbers.
[[nodiscard]] NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& place);

}  // namespace hfta::fusion
