#include "fusion/data/zip_member.hpp"

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {
namespace {

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

}  // namespace

std::vector<std::byte> read_zip_member(zip_t* zip, std::uint64_t index, std::uint64_t size, const std::string& place) {
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(zip, index, 0));
  if (member == nullptr) fail_at(place, std::string("cannot read it: ") + zip_strerror(zip));
  std::vector<std::byte> bytes(size);
  std::uint64_t done = 0;
  while (done < size) {
    const zip_int64_t read = zip_fread(member.get(), bytes.data() + done, size - done);
    if (read <= 0) break;
    done += static_cast<std::uint64_t>(read);
  }
  // The checksum is looked at when reading goes past the end.
  std::byte beyond{};
  const bool whole = done == size && zip_fread(member.get(), &beyond, 1) == 0;
  if (!whole) fail_at(place, std::string("found a damaged member: ") + zip_file_strerror(member.get()));
  return bytes;
}

}  // namespace hfta::fusion
