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
/// A zip file that is closed without writing anything.
using Zip = std::unique_ptr<zip_t, DiscardZip>;

struct CloseZipMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using ZipMember = std::unique_ptr<zip_file_t, CloseZipMember>;

/// Opens a member at its first byte. Throws Error{kConfig} that begins with `place`.
[[nodiscard]] ZipMember open_zip_member(zip_t* zip, std::uint64_t index, const std::string& place);

/// Reads all of a member of `size` bytes and verifies its checksum. Throws as read_zip_member.
void check_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size, const std::string& place);

/// The whole member, its checksum verified. `size`: what the directory claims, which the caller has found plausible.
/// Throws Error{kConfig} that begins with `place`.
[[nodiscard]] std::vector<std::byte> read_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size,
                                                     const std::string& place);

}  // namespace hfta::fusion
