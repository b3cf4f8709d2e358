#pragma once
/// A number that an option gives, within bounds.

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "engine/cli/arguments.hpp"

namespace hfta::engine {

/// The option's number, or `fallback` if it was not given. Throws Error{kConfig} "--queues: found 0, wanted 1 to 9".
template <typename Number>
[[nodiscard]] Number number_option(const Arguments& arguments, const std::string& option, Number fallback, Number least,
                                   Number most) {
  const Number value = arguments.get<Number>(option).value_or(fallback);
  if (value >= least && value <= most) return value;
  throw Error(ErrorKind::kConfig, fmt::format("--{}: found {}, wanted {} to {}", option, value, least, most));
}

}  // namespace hfta::engine
