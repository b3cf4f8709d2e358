#pragma once
/// The rounds of Philox4x32-10 (Salmon et al., SC'11), for one counter. C++17, for CPU and GPU alike.

#include <cstdint>

#include "base/both.hpp"

namespace hfta {

/// Turns `counter` into 128 bits that depend on every bit of it and of the key (k0, k1).
HFTA_BOTH void philox_rounds(std::uint32_t (&counter)[4], std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter[0] = static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0;
    counter[2] = static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1;
    counter[1] = static_cast<std::uint32_t>(p1);
    counter[3] = static_cast<std::uint32_t>(p0);
  }
}

}  // namespace hfta
