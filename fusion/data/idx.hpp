#pragma once
/// Arrays in IDX files, the format of MNIST. Internal to fusion/data.

#include <cstddef>
#include <span>
#include <string>

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {

/// An IDX file's bytes. Nothing is allocated on the word of a header that the bytes do not bear out.
/// Throws Error{kConfig}, beginning with `place`.
[[nodiscard]] StoredArray parse_idx(std::span<const std::byte> bytes, Use use, const std::string& place);

}  // namespace hfta::fusion
