#include "engine/driver/runner.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace hfta::engine {
namespace {

constexpr double kLivesFor = 10;  // seconds without a heartbeat, where the lock cannot be asked

// Of another host's locks this one may know nothing.
bool on_this_host(const std::string& holder) {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && holder.ends_with(std::string(" on host ") + name.data());
}

}  // namespace

std::optional<Runner> runner_of(storage::Store& store, const std::string& study, const std::filesystem::path& folder,
                                const Clock& clock) {
  const std::optional<storage::Lease> lease = store.lease(study);
  if (!lease) return std::nullopt;
  Runner runner{lease->holder, false, std::nullopt};
  const int fd = ::open((folder / ("lease." + lease->token)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return runner;
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const double beat = static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
    const double now = std::chrono::duration<double>(clock.utc().time_since_epoch()).count();
    runner.silence = std::max(0.0, now - beat);
    runner.alive = on_this_host(lease->holder) ? ::flock(fd, LOCK_SH | LOCK_NB) != 0 : *runner.silence < kLivesFor;
  }
  ::close(fd);
  return runner;
}

}  // namespace hfta::engine
