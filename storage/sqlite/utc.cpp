#include "storage/sqlite/utc.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

namespace hfta::storage {
namespace {

using std::chrono::days;
using std::chrono::microseconds;

/// Exactly `digits` digits at the front of `text`, which are taken off; -1 if they are not there.
int take_digits(std::string_view& text, std::size_t digits) {
  int value = -1;
  if (text.size() < digits || text.front() < '0' || text.front() > '9') return -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits) return -1;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<microseconds> fraction_from(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  std::string padded(text);
  padded.resize(6, '0');
  std::string_view rest = padded;
  const int value = take_digits(rest, 6);
  if (value < 0) return std::nullopt;
  return microseconds(value);
}

}  // namespace

std::string utc_text(trials::UtcTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<microseconds> clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::optional<trials::UtcTime> utc_from(std::string_view text) {
  const int year = take_digits(text, 4);
  if (year < 0 || !take(text, '-')) return std::nullopt;
  const int month = take_digits(text, 2);
  if (month < 0 || !take(text, '-')) return std::nullopt;
  const int day = take_digits(text, 2);
  if (day < 0 || !(take(text, ' ') || take(text, 'T'))) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  const int hour = take_digits(text, 2);
  if (!date.ok() || hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const int minute = take_digits(text, 2);
  if (minute < 0 || minute > 59 || !take(text, ':')) return std::nullopt;
  const int second = take_digits(text, 2);
  if (second < 0 || second > 59) return std::nullopt;
  microseconds fraction(0);
  if (take(text, '.')) {
    const auto read = fraction_from(text);
    if (!read) return std::nullopt;
    fraction = *read;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  return trials::UtcTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + fraction;
}

}  // namespace hfta::storage
