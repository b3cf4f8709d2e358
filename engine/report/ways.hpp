#pragma once
/// How a study's arrays ran, and what they held of memory, from its stored arrays.

#include <cstdint>
#include <string>
#include <vector>

#include "storage/records.hpp"

namespace hfta::engine {

/// Arrays that ran alike.
struct WayThatRan {
  std::string lowering;  ///< "compiled, recompute 2, 1 x 2 threads; slots 2:1 over ranks"
  std::string memory;    ///< "auto within 41943040 bytes"; "": no policy and no limit was given.
  int arrays = 0;
  std::int64_t held_bytes = 0, predicted_bytes = 0;  ///< Bytes of the array that held most.
};

/// The ways in the order of their first array. Arrays whose record does not say how they ran are left out.
[[nodiscard]] std::vector<WayThatRan> ways_that_ran(const std::vector<storage::ArrayRecord>& arrays);

/// A line for each; "" where there is none.
[[nodiscard]] std::string ways_text(const std::vector<WayThatRan>& ways);

}  // namespace hfta::engine
