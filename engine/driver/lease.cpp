#include "engine/driver/lease.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
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
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using storage::Lease;

constexpr std::string_view kPrefix = "lease.";
constexpr std::string_view kFormerLock = "lock";  // of versions before leases
constexpr int kLooksPerBeat = 10;

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// What one look at a holder's file shows.
struct Sight {
  std::string text;
  bool dead = false;
};

// nullopt: the file is not there.
std::optional<Sight> look_at(const fs::path& path, bool same_host) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(path, "open", errno);
  }
  std::array<char, 1024> text{};
  const ssize_t got = ::pread(file.number(), text.data(), text.size(), 0);
  if (got < 0) fail(path, "read", errno);
  // The kernel gives a dead holder's lock back. A shared one is asked for, so that several who look all get it. Of
  // another host's locks this one may know nothing.
  const bool dead = same_host && ::flock(file.number(), LOCK_SH | LOCK_NB) == 0;
  return Sight{std::string(text.data(), static_cast<std::size_t>(got)), dead};
}

// Returns when the study may be taken from the holder of `lease`; throws if that one lives.
void await_end(const Lease& lease, const fs::path& folder, const Clock& clock, const Heartbeat& heartbeat) {
  const fs::path path = folder / (std::string(kPrefix) + lease.token);
  const bool same_host = lease.holder.ends_with(" on host " + host_name());
  const double began = clock.seconds();
  const std::optional<Sight> first = look_at(path, same_host);
  std::optional<Sight> now = first;
  for (double looked = began; now && !now->dead; now = look_at(path, same_host)) {
    if (now->text != first->text) {
      throw Error(ErrorKind::kBusy, fmt::format("{}: the study is being run by {}; stop that one first",
                                                folder.string(), printable(lease.holder)));
    }
    // Time is taken before each look: however long this process was kept from running, it has looked since.
    if (looked - began >= heartbeat.period * heartbeat.beats) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(heartbeat.period / kLooksPerBeat));
    looked = clock.seconds();
  }
}

std::vector<fs::path> lease_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kPrefix) || name == kFormerLock) found.push_back(entry->path());
  }
  return found;
}

}  // namespace

// The file of one attempt: there, locked and beating from construction to destruction.
class StudyLease::Beat {
 public:
  Beat(const fs::path& folder, std::string holder, double period)
      : holder_(std::move(holder)), pattern_(pattern(folder)), file_(::mkostemp(pattern_.data(), O_CLOEXEC)) {
    if (file_.number() < 0) fail(folder, "create a file", errno);
    if (::fchmod(file_.number(), 0644) != 0 || ::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::unlink(pattern_.c_str());
      fail(pattern_, "lock", reason);
    }
    // Gone already: somebody has just won, and removed the files of those who no longer can.
    if (const int reason = write(); reason != 0 && reason != ENOENT) {
      ::unlink(pattern_.c_str());
      fail(pattern_, "write", reason);
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
    ::unlink(pattern_.c_str());  // its name is this attempt's alone
  }
  Beat(const Beat&) = delete;
  Beat& operator=(const Beat&) = delete;

  [[nodiscard]] std::string token() const { return fs::path(pattern_).filename().string().substr(kPrefix.size()); }

 private:
  static std::string pattern(const fs::path& folder) {
    std::string host = host_name();
    std::replace_if(
        host.begin(), host.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
    return (folder / fmt::format("{}{}-{}-XXXXXX", kPrefix, host, ::getpid())).string();
  }

  // Opened by name each time: a network file system sends what was written when the file is closed. Once a new holder
  // has removed it, nothing is opened and nothing made.
  // Gives the system's reason where it fails, else 0.
  int write() {
    const std::string text = fmt::format("{}\n{:020}\n", holder_, count_++);
    const Descriptor file(::open(pattern_.c_str(), O_WRONLY | O_CLOEXEC));
    return file.number() >= 0 && ::pwrite(file.number(), text.data(), text.size(), 0) >= 0 ? 0 : errno;
  }

  // A beat that cannot be written is a missed one: whoever takes the study over then has the fence.
  void loop(double period) {
    std::unique_lock guard(mutex_);
    const std::chrono::duration<double> pause(period);
    while (!changed_.wait_for(guard, pause, [this] { return leaving_; })) (void)write();
  }

  std::string holder_;
  std::string pattern_;  // the path, once the file is made
  Descriptor file_;      // keeps the lock
  std::uint64_t count_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  std::thread thread_;
};

StudyLease::StudyLease(storage::Store& store, const std::string& study, const fs::path& folder, const Clock& clock,
                       const Heartbeat& heartbeat) {
  make_folders(folder);
  std::error_code error;
  const std::string self = fmt::format("process {} on host {}", ::getpid(), host_name());
  for (;;) {
    const std::optional<Lease> seen = store.lease(study);
    if (seen) await_end(*seen, folder, clock, heartbeat);
    // Whoever made one of these files looked at the store before, and so can no longer win once this attempt has. A
    // later attempt has a file of another name.
    const std::vector<fs::path> left = lease_files(folder);
    auto beat = std::make_unique<Beat>(folder, self, heartbeat.period);
    const std::optional<Lease> taken = store.take_lease(study, seen, beat->token(), self);
    if (!taken) continue;
    store.hold(study, *taken);
    beat_ = std::move(beat);
    for (const fs::path& path : left) fs::remove(path, error);
    return;
  }
}

StudyLease::~StudyLease() = default;
StudyLease::StudyLease(StudyLease&&) noexcept = default;
StudyLease& StudyLease::operator=(StudyLease&&) noexcept = default;

}  // namespace hfta::engine
