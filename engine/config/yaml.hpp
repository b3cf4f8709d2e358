#pragma once
/// Parses the bytes of a YAML file, a config or a machine's topology, into its tree. Internal to engine/config and
/// engine/topology.

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;
inline constexpr int kMostDepth = 32;
inline constexpr int kMostNodes = 100'000;

/// One YAML document of at most kMostBytes. Refused, by Error{kConfig} "file:line: ...": bytes that are not UTF-8 text,
/// syntax errors, anchors, aliases, tags, duplicate keys, keys that are not words, several documents, collections
/// nested deeper than kMostDepth, more than kMostNodes values. No input aborts or hangs it. An empty text is null.
[[nodiscard]] Node parse_yaml(std::string_view text, const std::string& file);

/// The part of parse_yaml that goes before the YAML parser, which must not see everything: its end-of-file mark is an
/// ordinary byte (0x04), and it queues a whole line of open brackets before it reports the first.
void check_text(std::string_view text, const std::string& file);

}  // namespace hfta::engine::configuration
