#pragma once
// Exported models as text, and archives taken apart and put together again.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fusion/exported.hpp"

namespace hfta::fusion::test {

/// Path of an archive under golden/.
[[nodiscard]] std::string golden(const std::string& name);
[[nodiscard]] std::vector<std::byte> bytes_of(const std::string& path);

/// "%y[N, 3] = aten::linear(input=%x, weight=%head.weight) @head model.py:12", a line each.
[[nodiscard]] std::string text_of(const Graph& graph);
[[nodiscard]] std::string text_of(const Node& node, const Graph& graph);
/// "head.weight [3, 8] float32 trained" and the like, a line each.
[[nodiscard]] std::string weights_text(const Graph& graph);

/// The message, checked to be Error{kConfig} on one line; "(none)".
[[nodiscard]] std::string error_of(std::span<const std::byte> archive);
[[nodiscard]] std::string error_of(const ExportedModel& model, const ImportOptions& options);

struct Member {
  std::string name;
  std::string bytes;
};

/// Members of an archive without their common folder.
[[nodiscard]] std::vector<Member> unpack(std::span<const std::byte> archive);
/// A zip of them below "m/", uncompressed; also of what no zip should hold, such as two members of one name.
[[nodiscard]] std::vector<std::byte> pack(const std::vector<Member>& members, const std::string& root = "m/");

}  // namespace hfta::fusion::test
