#include "storage/state_file.hpp"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <charconv>

namespace hfta::storage {
namespace {

constexpr std::string_view kEnding = ".safetensors";

bool take(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename Integer>
bool take_number(std::string_view& text, Integer& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || value < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string StateFile::name() const {
  return fmt::format("trial-{}.epoch-{}.{}.{:016x}{}", trial, epoch, size, checksum, kEnding);
}

std::optional<StateFile> state_file_from(std::string_view name) {
  StateFile file;
  std::string_view rest = name;
  const bool read = take(rest, "trial-") && take_number(rest, file.trial) && take(rest, ".epoch-") &&
                    take_number(rest, file.epoch) && take(rest, ".") && take_number(rest, file.size) &&
                    take(rest, ".") && take_number(rest, file.checksum, 16) && rest == kEnding;
  if (!read || file.name() != name) return std::nullopt;  // only names that we write
  return file;
}

bool is_temporary_state(const std::string& name) {
  return name.rfind("trial-", 0) == 0 && name.find(std::string(kEnding) + ".tmp.") != std::string::npos;
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693ULL, 0xFFFFFFFFFFFFFFFFULL, 0xFFFFFFFFFFFFFFFFULL, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace hfta::storage
