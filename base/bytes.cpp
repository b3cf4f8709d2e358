#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/number_text.hpp"

namespace hfta {
namespace {

struct Unit {
  std::string_view name;  ///< The name in small letters.
  double bytes;
};
constexpr double kKibi = 1024, kKilo = 1000;
constexpr std::array kUnits = {Unit{"", 1},
                               Unit{"b", 1},
                               Unit{"kib", kKibi},
                               Unit{"mib", kKibi* kKibi},
                               Unit{"gib", kKibi* kKibi* kKibi},
                               Unit{"tib", kKibi* kKibi* kKibi* kKibi},
                               Unit{"kb", kKilo},
                               Unit{"mb", kKilo* kKilo},
                               Unit{"gb", kKilo* kKilo* kKilo},
                               Unit{"tb", kKilo* kKilo* kKilo* kKilo}};

}  // namespace

std::optional<std::int64_t> bytes_from(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_number<double>(text.substr(0, digits));
  std::string_view rest = text.substr(digits);
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  std::string name(rest);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto* const unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& one) { return one.name == name; });
  if (!number || unit == kUnits.end()) return std::nullopt;
  const double bytes = std::floor(*number * unit->bytes);
  // 2^63, which the type does not hold, is the nearest double to its largest number.
  if (!(bytes < static_cast<double>(std::numeric_limits<std::int64_t>::max()))) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB"};
  if (std::abs(bytes) < static_cast<std::int64_t>(kKibi)) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / kKibi;
  std::size_t unit = 0;
  for (; std::abs(amount) >= kKibi && unit + 1 < kNames.size(); ++unit) amount /= kKibi;
  return fmt::format("{:.1f} {}", amount, kNames[unit]);
}

}  // namespace hfta
