// NumPy's archives: an array, or an Error{kConfig}; never more memory than a file of that size may take.

#include <zip.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/array_file.hpp"
#include "in_memory_file.hpp"

extern "C" __attribute__((weak)) std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostMember = 1 << 20;

struct Member {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

std::vector<Member> members_of(const std::uint8_t* data, std::size_t size) {
  zip_source_t* const source = zip_source_buffer_create(data, size, 0, nullptr);
  const std::unique_ptr<zip_t, Discard> archive(zip_open_from_source(source, ZIP_RDONLY, nullptr));
  if (archive == nullptr) zip_source_free(source);  // an archive that was opened owns it
  std::vector<Member> members;
  for (zip_int64_t i = 0; archive != nullptr && i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 || stat.size > kMostMember) continue;
    Member member{stat.name, std::vector<std::uint8_t>(stat.size)};
    zip_file_t* file = zip_fopen_index(archive.get(), static_cast<zip_uint64_t>(i), 0);
    if (file == nullptr) continue;
    (void)zip_fread(file, member.bytes.data(), member.bytes.size());
    zip_fclose(file);
    members.push_back(std::move(member));
  }
  return members;
}

// The archive's bytes; empty if it cannot be made.
std::vector<std::uint8_t> packed(const std::vector<Member>& members, bool deflated) {
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(target);
  zip_t* const archive = zip_open_from_source(target, ZIP_TRUNCATE, nullptr);
  if (archive == nullptr) std::abort();
  for (const Member& member : members) {
    zip_source_t* const source = zip_source_buffer(archive, member.bytes.data(), member.bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.name.c_str(), source, 0);
    if (index < 0) {
      zip_source_free(source);  // two of one name, say
      continue;
    }
    (void)zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                   1);
  }
  std::vector<std::uint8_t> bytes;
  if (zip_close(archive) != 0) {
    zip_discard(archive);
  } else if (zip_stat_t stat; zip_source_stat(target, &stat) == 0 && zip_source_open(target) == 0) {
    bytes.resize(stat.size);
    (void)zip_source_read(target, bytes.data(), bytes.size());
    zip_source_close(target);
  }
  zip_source_free(target);
  return bytes;
}

}  // namespace

// Bytes of a member as often as bytes of the archive, whose checksums would keep nearly every damage out.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<Member> members = members_of(data, size);
  if (members.empty()) return LLVMFuzzerMutate(data, size, most);
  std::vector<std::uint8_t>& bytes = members[seed / 2 % members.size()].bytes;
  const std::size_t before = bytes.size();
  bytes.resize(before + 64);
  bytes.resize(LLVMFuzzerMutate(bytes.data(), before, bytes.size()));
  const std::vector<std::uint8_t> archive = packed(members, seed / 4 % 2 == 0);
  if (archive.empty() || archive.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(archive.begin(), archive.end(), data);
  return archive.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hfta::testing::InMemoryFile file(data, size);
  hfta::fusion::Allowance allowance(size, kMemory);
  using hfta::fusion::Use;
  for (const auto& [name, use] : {std::pair("x", Use::kNumbers), std::pair("y", Use::kLabels)}) {
    for (const std::uint64_t memory : {kMemory, std::uint64_t{1}}) {  // loaded, and read where it lies
      try {
        (void)hfta::fusion::read_npz(file.path(), name, use, hfta::fusion::DataFiles(memory), allowance, "d.npz");
      } catch (const hfta::Error& error) {
        if (error.kind() != hfta::ErrorKind::kConfig) throw;
      }
    }
  }
  return 0;
}
