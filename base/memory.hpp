#pragma once
/// How much memory this process may use.

#include <cstdint>

namespace hfta {

/// Bytes: the machine's, or what its control group or its own limits (RLIMIT_AS, RLIMIT_DATA) leave of it.
[[nodiscard]] std::uint64_t usable_memory();

}  // namespace hfta
