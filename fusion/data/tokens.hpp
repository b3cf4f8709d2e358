#pragma once
/// Files of raw tokens, as nanoGPT writes them: numbers one behind another, little-endian, without a header. Internal
/// to fusion/data.

#include <memory>
#include <string>

#include "fusion/data/arrays.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// Windows over the tokens of `file`, by source.window, source.stride and source.dtype: sample i has the tokens from
/// stride * i on as x, [window], and those one behind them as y. Throws Error{kConfig}, beginning with `place`, for no
/// window, an unknown dtype, bytes that are no whole tokens, and fewer tokens than one sample takes.
[[nodiscard]] Dataset token_windows(const std::shared_ptr<const ByteSource>& file, const DataSource& source,
                                    const Uses& uses, const std::string& place);

}  // namespace hfta::fusion
