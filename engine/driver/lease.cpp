#include "engine/driver/lease.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "engine/driver/holder_file.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using storage::Lease;

constexpr std::string_view kFormerLock = "lock";  // of versions before leases
constexpr int kLooksPerBeat = 10;

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

// What one look at a holder's file shows.
struct Sight {
  std::string text;
  bool dead = false;
};

// nullopt: the file is not there.
std::optional<Sight> look_at(const Folder& folder, const std::string& name, bool same_host) {
  const std::optional<Descriptor> file = folder.file(name, O_RDONLY);
  if (!file) return std::nullopt;
  std::array<char, 1024> text{};
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), 0);
  if (got < 0) fail(folder.path() / name, "read", errno);
  const bool dead = same_host && is_let_go(file->get());
  return Sight{std::string(text.data(), static_cast<std::size_t>(got)), dead};
}

// Returns when the study may be taken from the holder of `lease`; throws if that one lives.
void await_end(const Lease& lease, const Folder& folder, const Clock& clock, const Heartbeat& heartbeat) {
  const std::string name = holder_file(lease.token);
  const bool same_host = on_this_host(lease.holder);
  const double began = clock.seconds();
  const std::optional<Sight> first = look_at(folder, name, same_host);
  std::optional<Sight> now = first;
  for (double looked = began; now && !now->dead; now = look_at(folder, name, same_host)) {
    if (now->text != first->text) {
      throw Error(ErrorKind::kBusy, fmt::format("{}: the study is being run by {}; stop that one first",
                                                folder.path().string(), printable(lease.holder)));
    }
    // Time is taken before each look: however long this process was kept from running, it has looked since.
    if (looked - began >= heartbeat.period * heartbeat.beats) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(heartbeat.period / kLooksPerBeat));
    looked = clock.seconds();
  }
}

std::vector<std::string> lease_files(const Folder& folder) {
  std::vector<std::string> found = folder.files();
  std::erase_if(found, [](const std::string& name) { return !name.starts_with(kHolderPrefix) && name != kFormerLock; });
  return found;
}

}  // namespace

// The file of one attempt: there, locked and beating from construction to destruction.
class StudyLease::Beat {
 public:
  Beat(std::shared_ptr<const Folder> folder, std::string holder, double period)
      : folder_(std::move(folder)), holder_(std::move(holder)) {
    std::tie(name_, lock_) = folder_->new_file(prefix());
    int reason = ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    // Gone already: somebody has just won, and removed the files of those who no longer can.
    if (reason == 0) reason = write();
    if (reason != 0 && reason != ENOENT) {
      folder_->remove(name_);
      fail(folder_->path() / name_, "write", reason);
    }
    thread_ = std::thread([this, period] { loop(period); });
  }

  ~Beat() {
    {
      const std::lock_guard guard(mutex_);
      leaving_ = true;
    }
    changed_.notify_all();
    thread_.join();
    try {
      folder_->remove(name_);  // its name is this attempt's alone
    } catch (const Error&) {   // it stays, unlocked: whoever takes the study next removes it
    }
  }
  Beat(const Beat&) = delete;
  Beat& operator=(const Beat&) = delete;

  void check_held() const {
    if (folder_->has_file(name_)) return;
    throw Error(
        ErrorKind::kStorage,
        fmt::format("{}: is gone, so that another process may have taken the study over; run the same command again",
                    (folder_->path() / name_).string()));
  }

  [[nodiscard]] std::string token() const { return name_.substr(kHolderPrefix.size()); }

 private:
  static std::string prefix() {
    std::string host = host_name();
    std::replace_if(
        host.begin(), host.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
    return fmt::format("{}{}-{}-", kHolderPrefix, host, ::getpid());
  }

  // Opened by name each time: a network file system sends what was written when the file is closed. Once a new holder
  // has removed it, nothing is opened and nothing made.
  // Gives the system's reason where it fails, else 0.
  int write() {
    const std::string text = fmt::format("{}\n{:020}\n", holder_, count_++);
    try {
      const std::optional<Descriptor> file = folder_->file(name_, O_WRONLY);
      return file && ::pwrite(file->get(), text.data(), text.size(), 0) >= 0 ? 0 : errno;
    } catch (const Error&) {
      return EIO;
    }
  }

  // A beat that cannot be written is a missed one: whoever takes the study over then has the fence.
  void loop(double period) {
    std::unique_lock guard(mutex_);
    const std::chrono::duration<double> pause(period);
    while (!changed_.wait_for(guard, pause, [this] { return leaving_; })) (void)write();
  }

  std::shared_ptr<const Folder> folder_;
  std::string holder_;
  std::string name_;
  Descriptor lock_;  // keeps it
  std::uint64_t count_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  std::thread thread_;
};

StudyLease::StudyLease(storage::Store& store, const std::string& study, const fs::path& folder, const Clock& clock,
                       const Heartbeat& heartbeat) {
  const auto states = std::make_shared<const Folder>(Folder::make(store.path().parent_path(), folder));
  const std::string self = fmt::format("process {} on host {}", ::getpid(), host_name());
  for (;;) {
    const std::optional<Lease> seen = store.lease(study);
    if (seen && names_a_file(seen->token)) await_end(*seen, *states, clock, heartbeat);
    // Whoever made one of these files looked at the store before, and so can no longer win once this attempt has. A
    // later attempt has a file of another name.
    const std::vector<std::string> left = lease_files(*states);
    auto beat = std::make_unique<Beat>(states, self, heartbeat.period);
    const std::optional<Lease> taken = store.take_lease(study, seen, beat->token(), self);
    if (!taken) continue;
    store.hold(study, *taken);
    beat_ = std::move(beat);
    for (const std::string& name : left) states->remove(name);
    return;
  }
}

void StudyLease::check_held() const { beat_->check_held(); }

StudyLease::~StudyLease() = default;
StudyLease::StudyLease(StudyLease&&) noexcept = default;
StudyLease& StudyLease::operator=(StudyLease&&) noexcept = default;

}  // namespace hfta::engine
