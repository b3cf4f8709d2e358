#pragma once
/// The file of a study's holder, for code that looks for the holder. holder_marks.hpp writes it.

#include <string>
#include <string_view>

namespace hfta::storage {

/// Prefix of the name of such a file; the lease's token follows.
inline constexpr std::string_view kHolderPrefix = "lease.";

/// The file's name in the study's folder. REQUIRES names_a_file(token).
[[nodiscard]] std::string holder_file(const std::string& token);
/// Whether the token, which any program may have written, is valid as the rest of a file's name.
[[nodiscard]] bool names_a_file(const std::string& token);

/// This machine's name, "unknown" if it does not say.
[[nodiscard]] std::string host_name();
/// Whether the holder, "process 7 on host a", runs on this machine. The locks of another host may be invisible here.
[[nodiscard]] bool on_this_host(const std::string& holder);
/// Whether no process holds the lock of the open file: the kernel releases a dead holder's lock. Tries a shared lock,
/// so that several processes can check at the same time.
[[nodiscard]] bool is_let_go(int descriptor);

}  // namespace hfta::storage
