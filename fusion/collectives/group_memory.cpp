#include "fusion/collectives/group_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace hfta::fusion {
namespace {

constexpr std::uint64_t kMagic = 0x686674615f726e6b;  // "hfta_rnk"

// Mailboxes of a group: one each way between neighbouring ranks, for each lane.
std::size_t mailboxes_of(std::size_t ranks) { return (ranks - 1) * 2 * kLanes; }

std::size_t mailbox_number(int from, int to, int lane) {
  const std::size_t way = static_cast<std::size_t>(std::min(from, to)) * 2 + (from < to ? 0 : 1);
  return way * kLanes + static_cast<std::size_t>(lane % kLanes);
}

std::size_t bytes_for(std::size_t ranks, std::size_t window) {
  const std::size_t mailboxes = mailboxes_of(ranks);
  return sizeof(GroupHeader) + mailboxes * sizeof(Mailbox) + (ranks + 1 + mailboxes) * window;
}

}  // namespace

GroupMemory::GroupMemory(int descriptor, std::size_t bytes) : bytes_(bytes) {
  memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory_ == MAP_FAILED) throw refused_to_ranks("cannot map their shared memory");
}

GroupMemory::~GroupMemory() { ::munmap(memory_, bytes_); }

void GroupMemory::begin(int ranks, std::size_t window) const {
  auto* const header = new (memory_) GroupHeader();
  header->magic = kMagic;
  header->ranks = static_cast<std::uint32_t>(ranks);
  header->window = window;
  for (std::size_t i = 0; i < mailboxes_of(header->ranks); ++i) new (mailboxes() + i) Mailbox();
}

GroupHeader& GroupMemory::header() const { return *std::launder(static_cast<GroupHeader*>(memory_)); }

Mailbox* GroupMemory::mailboxes() const {
  return reinterpret_cast<Mailbox*>(static_cast<std::byte*>(memory_) + sizeof(GroupHeader));
}

std::byte* GroupMemory::windows() const {
  return static_cast<std::byte*>(memory_) + sizeof(GroupHeader) + mailboxes_of(header().ranks) * sizeof(Mailbox);
}

std::byte* GroupMemory::window(std::size_t number) const { return windows() + number * header().window; }

Mailbox& GroupMemory::mailbox(int from, int to, int lane) const {
  return *std::launder(mailboxes() + mailbox_number(from, to, lane));
}

std::byte* GroupMemory::mail(int from, int to, int lane) const {
  return window(header().ranks + 1 + mailbox_number(from, to, lane));
}

Descriptor make_group_memory(int ranks, std::size_t window) {
  if (ranks < 1 || ranks > kMostRanks || window == 0 || window % kLine != 0) {
    throw Error(ErrorKind::kInternal, fmt::format("ranks: found {} with windows of {} bytes, wanted 1 to {}, and a "
                                                  "multiple of {} bytes",
                                                  ranks, window, kMostRanks, kLine));
  }
  Descriptor file(::memfd_create("hfta-ranks", MFD_CLOEXEC));
  if (file.get() < 0) throw refused_to_ranks("cannot make their shared memory");
  const std::size_t bytes = bytes_for(static_cast<std::size_t>(ranks), window);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw refused_to_ranks("cannot make their shared memory");
  }
  GroupMemory(file.get(), bytes).begin(ranks, window);
  return file;
}

std::shared_ptr<const GroupMemory> memory_of_seat(const Descriptor& seat, int rank) {
  struct stat status = {};
  if (::fstat(seat.get(), &status) != 0) throw refused_to_ranks("cannot take a seat");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const Error none(ErrorKind::kDevice, fmt::format("ranks: descriptor {} is no seat of rank {}", seat.get(), rank));
  if (bytes < sizeof(GroupHeader)) throw none;
  auto memory = std::make_shared<const GroupMemory>(seat.get(), bytes);
  const GroupHeader& header = memory->header();
  const bool whole = header.magic == kMagic && header.ranks >= 1 && header.ranks <= kMostRanks &&
                     header.window <= bytes && bytes == bytes_for(header.ranks, header.window);
  if (!whole || rank < 0 || rank >= static_cast<int>(header.ranks)) throw none;
  return memory;
}

Error refused_to_ranks(const char* what) {
  return {ErrorKind::kDevice, fmt::format("ranks: {}: {}", what, std::strerror(errno))};
}

}  // namespace hfta::fusion
