#pragma once
/// Integers out of JSON that somebody else may have written.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace hfta {

/// The int that stands in a JSON value. Throws nlohmann's type_error for anything else: its own get<int>() cuts what is
/// too large for an int, and for a large fraction is undefined.
template <typename Json>
[[nodiscard]] int int_from(const Json& json) {
  const auto fits = [](auto number) { return std::in_range<int>(number); };
  const bool is_int = json.is_number_unsigned() ? fits(json.template get<std::uint64_t>())
                                                : json.is_number_integer() && fits(json.template get<std::int64_t>());
  if (!is_int) throw Json::type_error::create(302, "wanted an integer of 32 bits", &json);
  return json.template get<int>();
}

}  // namespace hfta
