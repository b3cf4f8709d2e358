#pragma once
/// The file of a study's holder, as everybody who looks for the holder finds it. See holder_marks.hpp, which writes it.

#include <string>
#include <string_view>

namespace hfta::storage {

/// What the name of such a file begins with; the lease's token follows.
inline constexpr std::string_view kHolderPrefix = "lease.";

/// The name in the study's folder. REQUIRES names_a_file(token).
[[nodiscard]] std::string holder_file(const std::string& token);
/// What a token may be, whoever wrote it: the rest of a file's name.
[[nodiscard]] bool names_a_file(const std::string& token);

/// This machine's name, "unknown" if it does not say.
[[nodiscard]] std::string host_name();
/// Whether the holder, "process 7 on host a", runs on this machine. Of another host's locks this one may know nothing.
[[nodiscard]] bool on_this_host(const std::string& holder);
/// Whether nobody holds the lock of the open file: the kernel gives a dead holder's lock back. A shared one is asked
/// for, so that several who look all get it.
[[nodiscard]] bool is_let_go(int descriptor);

}  // namespace hfta::storage
