#include "child.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace hfta::engine::testing {
namespace {

int run(const std::function<int(const Child&)>& body, const Child& child) {
  try {
    return body(child);
  } catch (...) {
    return 99;
  }
}

}  // namespace

Child::Child(const std::function<int(const Child&)>& body) {
  if (::pipe(words_) != 0 || ::pipe(go_) != 0) throw std::runtime_error("pipe failed");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(words_[0]);
    ::_exit(run(body, *this));
  }
  ::close(words_[1]);
}

Child::~Child() {
  if (!reaped_) {
    signal(SIGKILL);
    (void)wait();
  }
  for (const int end : {words_[0], go_[0], go_[1]}) ::close(end);
}

void Child::tell(char word) const { (void)!::write(words_[1], &word, 1); }

void Child::wait_for_go() const {
  char word = 0;
  (void)!::read(go_[0], &word, 1);
}

char Child::hear() const {
  pollfd end = {words_[0], POLLIN, 0};
  char word = 0;
  return ::poll(&end, 1, 60'000) == 1 && ::read(words_[0], &word, 1) == 1 ? word : '\0';
}

void Child::let_go() const { (void)!::write(go_[1], "g", 1); }

void Child::signal(int number) const { ::kill(pid_, number); }

bool Child::wait_stopped() {
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
  reaped_ = !WIFSTOPPED(status);
  return !reaped_;
}

int Child::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  reaped_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace hfta::engine::testing
