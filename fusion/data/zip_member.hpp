#pragma once
/// Reading one member of a zip, for the formats that are zips. Internal to hfta::graph.

#include <zip.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hfta::fusion {

struct DiscardZip {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
/// Closed without writing anything.
using Zip = std::unique_ptr<zip_t, DiscardZip>;

/// The whole member, its checksum verified. `size`: what the directory claims, which the caller has found plausible.
/// Throws Error{kConfig} that begins with `place`.
[[nodiscard]] std::vector<std::byte> read_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size,
                                                     const std::string& place);

}  // namespace hfta::fusion
