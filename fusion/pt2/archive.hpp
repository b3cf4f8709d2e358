#pragma once
/// The zip around an exported model. Nothing in it is trusted: members are read by name into memory that is bounded by
/// the archive's size, and never written anywhere.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fusion/data/zip_member.hpp"

namespace hfta::fusion::pt2 {

/// Throws Error{kConfig}: "`place`: `what`", on one line.
[[noreturn]] void fail(const std::string& place, const std::string& what);

class Archive {
 public:
  /// `file` must stay as it is while the archive is read.
  static Archive open(const std::filesystem::path& file);
  /// `bytes` must outlive the archive; `name` stands in messages.
  static Archive view(std::span<const std::byte> bytes, const std::string& name);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Bytes of the whole archive.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Names of the members, without the folder that all of them lie in, in alphabetical order.
  [[nodiscard]] std::vector<std::string> members() const;
  [[nodiscard]] bool has(const std::string& member) const { return members_.contains(member); }
  /// The member's bytes and checksum, as the directory has them.
  [[nodiscard]] std::uint64_t size_of(const std::string& member) const;
  [[nodiscard]] std::uint32_t checksum_of(const std::string& member) const;
  /// The whole member, its checksum verified.
  [[nodiscard]] std::vector<std::byte> read(const std::string& member) const;

 private:
  struct Member {
    std::uint64_t index = 0;
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
  };
  Archive(Zip zip, std::string name, std::uint64_t size);
  [[nodiscard]] const Member& member(const std::string& name) const;
  void add_member(std::uint64_t index, const std::string& root);

  Zip zip_;
  std::string name_;
  std::uint64_t size_ = 0;
  std::map<std::string, Member> members_;
};

}  // namespace hfta::fusion::pt2
