#pragma once
/// The memory and cores that this process may use. `root`: the folder that holds proc/ and sys/.

#include <cstdint>
#include <filesystem>

namespace hfta {

/// Bytes: the machine's memory, or the least that the process's control groups or its own limits (RLIMIT_AS,
/// RLIMIT_DATA) allow.
[[nodiscard]] std::uint64_t usable_memory(const std::filesystem::path& root = "/");

/// Cores, at least 1: those that the process may run on, or as many as its control groups' share of CPU time (a
/// container's --cpus) keeps busy, the last one perhaps in part.
[[nodiscard]] int usable_cores(const std::filesystem::path& root = "/");

}  // namespace hfta
