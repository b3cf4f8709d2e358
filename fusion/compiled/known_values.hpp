#pragma once
/// What LibTorch computes while a graph is compiled.

#include <memory>

#include "fusion/cpu/library.hpp"

namespace hfta::fusion {

[[nodiscard]] std::unique_ptr<cpu::KnownValues> known_values();

}  // namespace hfta::fusion
