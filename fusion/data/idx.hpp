#pragma once
/// Arrays in IDX files, the format of MNIST. Internal to fusion/data.

#include <memory>
#include <string>

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {

/// An IDX file. Nothing is allocated on the word of a header that the file does not bear out.
/// Throws Error{kConfig}, beginning with `place`.
[[nodiscard]] StoredArray parse_idx(std::shared_ptr<const ByteSource> file, Use use, const std::string& place);

}  // namespace hfta::fusion
