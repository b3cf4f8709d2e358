#pragma once
/// FNV-1a (64 bits), to spread names and to notice that a file has changed; no defence against deliberate collisions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hfta {

class Fnv1a {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace hfta
