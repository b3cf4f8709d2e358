#include "engine/driver/runner.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "engine/driver/holder_file.hpp"

namespace hfta::engine {
namespace {

constexpr double kLivesFor = 10;  // seconds without a heartbeat, where the lock cannot be asked

}  // namespace

std::optional<Runner> runner_of(storage::Store& store, const std::string& study, const std::filesystem::path& folder,
                                const Clock& clock) {
  const std::optional<storage::Lease> lease = store.lease(study);
  if (!lease) return std::nullopt;
  Runner runner{lease->holder, false, std::nullopt};
  if (!names_a_file(lease->token)) return runner;
  const int fd = ::open((folder / holder_file(lease->token)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return runner;
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const double beat = static_cast<double>(status.st_mtim.tv_sec) + 1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
    const double now = std::chrono::duration<double>(clock.utc().time_since_epoch()).count();
    runner.silence = std::max(0.0, now - beat);
    runner.alive = on_this_host(lease->holder) ? !is_let_go(fd) : *runner.silence < kLivesFor;
  }
  ::close(fd);
  return runner;
}

}  // namespace hfta::engine
