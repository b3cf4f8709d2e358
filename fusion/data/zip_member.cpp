#include "fusion/data/zip_member.hpp"

#include <algorithm>
#include <span>

#include "fusion/data/file_bytes.hpp"

namespace hfta::fusion {
namespace {

// Fills `out`; false: the member ends before.
bool fill(zip_file_t* member, std::span<std::byte> out) {
  while (!out.empty()) {
    const zip_int64_t read = zip_fread(member, out.data(), out.size());
    if (read <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(read));
  }
  return true;
}

// Checks the checksum, which zip_fread() does when reading goes past the end.
void check_end(zip_file_t* member, bool whole, const std::string& place) {
  std::byte beyond{};
  if (whole && zip_fread(member, &beyond, 1) == 0) return;
  fail_at(place, std::string("found a damaged member: ") + zip_file_strerror(member));
}

}  // namespace

ZipMember open_zip_member(zip_t* zip, std::uint64_t index, const std::string& place) {
  ZipMember member(zip_fopen_index(zip, index, 0));
  if (member == nullptr) fail_at(place, std::string("cannot read it: ") + zip_strerror(zip));
  return member;
}

void check_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size, const std::string& place) {
  constexpr std::uint64_t kBlock = 1 << 20;
  const ZipMember member = open_zip_member(zip, index, place);
  std::vector<std::byte> block(std::min(size, kBlock));
  bool whole = true;
  for (std::uint64_t done = 0; whole && done < size; done += block.size()) {
    whole = fill(member.get(), std::span(block).first(std::min(kBlock, size - done)));
  }
  check_end(member.get(), whole, place);
}

std::vector<std::byte> read_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size, const std::string& place) {
  const ZipMember member = open_zip_member(zip, index, place);
  std::vector<std::byte> bytes(size);
  check_end(member.get(), fill(member.get(), bytes), place);
  return bytes;
}

}  // namespace hfta::fusion
