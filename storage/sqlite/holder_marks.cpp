#include "storage/sqlite/holder_marks.hpp"

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
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/threads.hpp"
#include "storage/sqlite/holder_file.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormerLock = "lock";  // the lock file of versions before leases
constexpr double kLivesFor = 10;                  // seconds without a beat, where the lock cannot be asked

[[noreturn]] void fail(const fs::path& path, const char* action, int error) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)));
}

// The file of one attempt: it exists, locked and beating, from construction to destruction.
class HolderFile final : public HolderMark {
 public:
  HolderFile(std::shared_ptr<const Folder> folder, double period) : folder_(std::move(folder)) {
    std::tie(name_, lock_) = folder_->new_file(prefix());
    int reason = ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    // ENOENT: another process has just won, and removed the files of those that no longer can.
    if (reason == 0) reason = write();
    if (reason != 0 && reason != ENOENT) {
      folder_->remove(name_);
      fail(folder_->path() / name_, "write", reason);
    }
    thread_ = start_thread([this, period] { loop(period); });
  }

  ~HolderFile() override {
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
  HolderFile(const HolderFile&) = delete;
  HolderFile& operator=(const HolderFile&) = delete;

  [[nodiscard]] std::string token() const override { return name_.substr(kHolderPrefix.size()); }
  [[nodiscard]] std::string holder() const override { return holder_; }

  void check_held() const override {
    if (folder_->has_file(name_)) return;
    throw Error(
        ErrorKind::kStorage,
        fmt::format("{}: is gone, so that another process may have taken the study over; run the same command again",
                    (folder_->path() / name_).string()));
  }

 private:
  static std::string prefix() {
    std::string host = host_name();
    std::replace_if(
        host.begin(), host.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
    return fmt::format("{}{}-{}-", kHolderPrefix, host, ::getpid());
  }

  // Opens the file by name each time: a network file system sends what was written when the file is closed. Once a new
  // holder has removed it, nothing is opened and nothing made.
  // Returns 0, or an errno.
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
  std::string holder_ = fmt::format("process {} on host {}", ::getpid(), host_name());
  std::string name_;
  Descriptor lock_;  // open while this lives, which keeps the lock
  std::uint64_t count_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool leaving_ = false;
  std::thread thread_;
};

class HolderFiles final : public HolderMarks {
 public:
  explicit HolderFiles(const StatesPlace& place)
      : folder_(std::make_shared<const Folder>(Folder::make(place.root, place.folder))) {}

  [[nodiscard]] std::optional<Sight> look(const Lease& lease) override {
    if (!names_a_file(lease.token)) return std::nullopt;
    const std::string name = holder_file(lease.token);
    const std::optional<Descriptor> file = folder_->file(name, O_RDONLY);
    if (!file) return std::nullopt;
    std::array<char, 1024> text{};
    const ssize_t got = ::pread(file->get(), text.data(), text.size(), 0);
    if (got < 0) fail(folder_->path() / name, "read", errno);
    const bool dead = on_this_host(lease.holder) && is_let_go(file->get());
    return Sight{std::string(text.data(), static_cast<std::size_t>(got)), dead};
  }

  [[nodiscard]] std::unique_ptr<HolderMark> leave(double period) override {
    return std::make_unique<HolderFile>(folder_, period);
  }

  [[nodiscard]] std::vector<std::string> names() override {
    std::vector<std::string> found = folder_->files();
    std::erase_if(found,
                  [](const std::string& name) { return !name.starts_with(kHolderPrefix) && name != kFormerLock; });
    return found;
  }

  void remove(const std::string& name) override { folder_->remove(name); }

 private:
  std::shared_ptr<const Folder> folder_;
};

}  // namespace

std::unique_ptr<HolderMarks> make_holder_marks(const StatesPlace& place) {
  return std::make_unique<HolderFiles>(place);
}

std::optional<LifeSign> life_sign_in(const fs::path& folder, const Lease& lease, const Clock& clock) {
  if (!names_a_file(lease.token)) return std::nullopt;
  const Descriptor file(
      ::open((folder / holder_file(lease.token)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const double beat = static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  const double now = std::chrono::duration<double>(clock.utc().time_since_epoch()).count();
  LifeSign sign;
  sign.silence = std::max(0.0, now - beat);
  sign.alive = on_this_host(lease.holder) ? !is_let_go(file.get()) : sign.silence < kLivesFor;
  return sign;
}

}  // namespace hfta::storage
