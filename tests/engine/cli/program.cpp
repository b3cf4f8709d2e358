#include "program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace hfta::testing {
namespace {

namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// In memory where that is possible: a study commits after every round, and waits for the disk each time.
fs::path make_folder(const char* name) {
  std::error_code ignored;
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::is_directory(memory, ignored) ? memory : fs::temp_directory_path();
  std::string pattern = (parent / (std::string(name) + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  return pattern;
}

const fs::path& streams() {
  struct Folder {
    fs::path path = make_folder("hfta-streams");
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

void redirect(const fs::path& file, int flags, int to) {
  const int fd = ::open(file.c_str(), flags, 0600);
  if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  ::close(fd);
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Program::Program(const Options& options, const std::vector<std::string>& words) : began_(now()) {
  static std::atomic<int> count{0};
  const std::string id = std::to_string(++count);
  out_ = options.standard_output.empty() ? streams() / ("out" + id) : options.standard_output;
  err_ = streams() / ("err" + id);
  std::vector<std::string> arguments = {options.program.string()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  redirect(out_, O_WRONLY | O_CREAT | (options.standard_output.empty() ? O_TRUNC : 0), STDOUT_FILENO);
  redirect(err_, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  if (::chdir(options.folder.c_str()) != 0) ::_exit(126);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(options.program.c_str(), argv.data());
  ::_exit(127);
}

Program::~Program() {
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void Program::signal(int number) const { ::kill(pid_, number); }

// A signal that was sent and not yet taken stands in a mask of the process's status; sent again it would be one.
void Program::wait_until_taken(int number) const {
  const std::string title = "ShdPnd:\t";
  while (true) {
    const std::string status = read_file("/proc/" + std::to_string(pid_) + "/status");
    const std::size_t at = status.find(title);
    if (at == std::string::npos) return;  // it has ended
    if ((std::stoull(status.substr(at + title.size(), 16), nullptr, 16) >> (number - 1) & 1) == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool Program::ended() {
  if (!reaped_) reaped_ = ::wait4(pid_, &status_, WNOHANG, &usage_) == pid_;
  return reaped_;
}

bool Program::wait_for(const std::string& text) {
  while (now() - began_ < 60) {
    const bool over = ended();
    if (read_file(err_).find(text) != std::string::npos) return true;
    if (over) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

bool Program::wait_stopped() {
  while (now() - began_ < 60) {
    int status = 0;
    const pid_t changed = ::waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (changed == pid_ && WIFSTOPPED(status)) return true;
    if (changed == pid_) {
      reaped_ = true;
      status_ = status;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

Finished Program::wait() {
  if (!reaped_) ::wait4(pid_, &status_, 0, &usage_);
  reaped_ = true;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  Finished finished;
  finished.seconds = now() - began_;
  finished.cpu_seconds = seconds(usage_.ru_utime) + seconds(usage_.ru_stime);
  finished.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  if (out_.parent_path() == streams()) finished.out = read_file(out_);  // /dev/full has no end
  finished.err = read_file(err_);
  return finished;
}

Workplace::Workplace() : path_(make_folder("hfta-cli")) {}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
}

std::string Workplace::read(const std::string& name) const { return read_file(path_ / name); }

std::vector<std::string> Workplace::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Finished Workplace::run_with(const std::filesystem::path& program, const std::vector<std::string>& words) const {
  Program::Options other = options();
  other.program = program;
  return Program(other, words).wait();
}

Program::Options Workplace::options(std::vector<std::pair<std::string, std::string>> environment) const {
  environment.emplace_back("HFTA_CACHE", "");
  return {HFTA_TUNE_FAKE, path_, std::move(environment), {}};
}

Finished Workplace::run(const std::vector<std::string>& words,
                        std::vector<std::pair<std::string, std::string>> environment) const {
  return Program(options(std::move(environment)), words).wait();
}

}  // namespace hfta::testing
