#pragma once
/// The few ops on numbers that sizes are computed with: Node::op "number::...".

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace hfta::fusion {

using Number = std::variant<std::int64_t, double, bool>;

/// What "number::add" and its like give, as Python would: integers stay integers of 64 bits. Throws Error{kConfig} for
/// an op that is none of them, for a division by zero, and for an integer that leaves 64 bits;
/// "number::size", "number::numel" and "number::stride", which look at tensors, are their callers'.
[[nodiscard]] Number number_of(const std::string& op, std::span<const Number> args);

}  // namespace hfta::fusion
