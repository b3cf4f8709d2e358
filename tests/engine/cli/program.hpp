#pragma once
/// Runs hfta-tune as users do.

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hfta::testing {

/// What a finished process left.
struct Finished {
  int code = 0;  ///< Exit code; 128 + signal if one killed it.
  std::string out, err;
  double seconds = 0;      ///< From its start to its end.
  double cpu_seconds = 0;  ///< Its own, whatever else the machine was busy with.
};

/// A running hfta-tune in a folder; its streams go to files there.
class Program {
 public:
  struct Options {
    std::filesystem::path program;
    std::filesystem::path folder;
    std::vector<std::pair<std::string, std::string>> environment;
    std::filesystem::path standard_output;  ///< "": a file that is read back.
  };
  Program(const Options& options, const std::vector<std::string>& words);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const;
  /// Waits until the process has begun to handle the signal, which is sent and not blocked.
  void wait_until_taken(int number) const;
  /// Waits until standard error holds `text`; false if the process ends first, or after 60 s.
  [[nodiscard]] bool wait_for(const std::string& text);
  [[nodiscard]] Finished wait();
  /// Waits until the process has stopped itself (HFTA_FAULTS: stop); false if it ends instead, or after 60 s.
  [[nodiscard]] bool wait_stopped();

 private:
  [[nodiscard]] bool ended();

  pid_t pid_ = -1;
  int status_ = 0;
  rusage usage_{};
  bool reaped_ = false;
  double began_ = 0;
  std::filesystem::path out_, err_;
};

/// A folder of its own for a test, removed with all in it.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  /// Names in the folder, sorted; the programs' streams do not lie here.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Runs the program that has the fake module beside it, to its end.
  [[nodiscard]] Finished run(const std::vector<std::string>& words,
                             std::vector<std::pair<std::string, std::string>> environment = {}) const;
  /// Runs another copy of the program, to its end.
  [[nodiscard]] Finished run_with(const std::filesystem::path& program, const std::vector<std::string>& words) const;
  [[nodiscard]] Program::Options options(std::vector<std::pair<std::string, std::string>> environment = {}) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace hfta::testing
