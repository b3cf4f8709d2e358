#pragma once
/// Processes of their own, for tests of what several do to one study.

#include <sys/types.h>

#include <functional>

namespace hfta::engine::testing {

/// A fork of the test that runs `body` and exits with what it returns (99: it threw). It dies with the test.
class Child {
 public:
  explicit Child(const std::function<int(const Child&)>& body);
  /// Kills it if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// In the child: a word to the test, and waiting for let_go().
  void tell(char word) const;
  void wait_for_go() const;

  /// In the test: the next word; '\0' if the child ends, or 60 s pass, without one.
  [[nodiscard]] char hear() const;
  void let_go() const;
  void signal(int number) const;
  /// Returns when a signal has stopped it; false if it has ended instead.
  [[nodiscard]] bool wait_stopped();
  /// Its exit code; 128 + signal if one killed it.
  int wait();

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  int words_[2] = {-1, -1}, go_[2] = {-1, -1};
};

}  // namespace hfta::engine::testing
