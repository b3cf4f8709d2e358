// hfta-tune: dispatches to a command and turns errors into exit codes.

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"

namespace hfta::engine {
namespace {

/// What a user may write, and what it does: a line of the help.
struct HelpLine {
  const char* words;
  const char* sentence;
};

struct Command {
  std::string name;
  std::function<int(const Words&)> run;
  std::vector<HelpLine> help;
  bool for_users = true;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"run", run_command, {}},  // the command that need not be named
      {"resume", resume_command, {{"resume STUDY --storage URL", "go on with a study from its store alone"}}},
      {"report", report_command, {{"report [STUDY] --storage URL", "what a study has found: table, JSON or CSV"}}},
      {"plan",
       plan_command,
       {{"plan CONFIG.yaml", "what would run; trains nothing"},
        {"plan --cluster FILE", "which device does what of one training step; simulated"}}},
      {"simulate",
       simulate_command,
       {{"simulate CONFIG.yaml", "the whole study in simulated time, in seconds"},
        {"simulate --allocation", "which accelerators arrays would get, policy by policy"},
        {"simulate --planner", "plans of known nets on unequal GPUs, beside published figures"}}},
      {"topo", topo_command, {{"topo", "how this machine's accelerators are connected"}}},
      {"export", export_command, {{"export [STUDY] --storage URL", "a trial's weights under the model's own names"}}},
      {"studies", studies_command, {{"studies --storage URL", "the studies in a store"}}},
      {"backup", backup_command, {{"backup COPY --storage URL", "a copy of a store and its states, while it is used"}}},
      {"doctor", doctor_command, {{"doctor STORE", "what is wrong with a store, and what to do; --repair"}}},
      {.name = "rank", .run = rank_command, .help = {}, .for_users = false}};
  return all;
}

std::string help() {
  std::string text =
      "usage: hfta-tune CONFIG.yaml [options]   run a study, or go on with it\n"
      "       hfta-tune COMMAND [options]\n\n"
      "commands:\n";
  for (const Command& command : commands()) {
    for (const HelpLine& line : command.help) text += fmt::format("  {:<28}  {}\n", line.words, line.sentence);
  }
  return text +
         "\n"
         "  --version                     the version\n"
         "  --help                        this text; every command has its own\n\n"
         "hfta-tune run --help shows the options of a run.\n\n"
         "exit codes: 0 ok; 1 the study ended and no trial is COMPLETE; 2 usage or config; 3 storage; 4 device;\n"
         "  5 internal; 6 another process runs the study; 129, 130, 138, 143 interrupted (128 + signal), can go on\n";
}

// A first word that is no command is a config, unless no such file is there and the word looks like a command.
int run_config(const Words& words) {
  const std::string& first = words.front();
  std::error_code ignored;
  const bool option = first.starts_with('-');
  const bool path = first.find_first_of("./") != std::string::npos;
  if (!option && !path && !std::filesystem::exists(first, ignored)) {
    throw Error(ErrorKind::kConfig,
                "found neither a command nor a file '" + printable(first) + "'" + suggestion(first, command_names()));
  }
  return run_command(words);
}

int dispatch(const Words& words) {
  if (words.empty()) throw Error(ErrorKind::kConfig, "found no config and no command; see hfta-tune --help");
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || first == "help") return print(help()), 0;
  if (first == "--version") return print("hfta-tune " HFTA_VERSION "\n"), 0;
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const Command& c) { return c.name == first; });
  return found == commands().end() ? run_config(words) : found->run({words.begin() + 1, words.end()});
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kConfig:
      return 2;
    case ErrorKind::kStorage:
    case ErrorKind::kLocked:
      return 3;
    case ErrorKind::kDevice:
    case ErrorKind::kMemory:
      return 4;
    case ErrorKind::kInternal:
      return 5;
    case ErrorKind::kBusy:
      return 6;
  }
  return 5;
}

// glibc gives large freed blocks back to the system at once, and every step of training then faults its pages in again:
// keeping them made a step 2.4 times faster.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

// If a standard stream is closed, the next file to be opened would take its number, and get what is told to the user.
void keep_standard_streams() {
  for (int number = ::open("/dev/null", O_RDWR); number >= 0; number = ::open("/dev/null", O_RDWR)) {
    if (number <= STDERR_FILENO) continue;
    ::close(number);
    return;
  }
}

// MKL ends a process whose working folder was deleted.
void leave_deleted_folder() {
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  if (error) std::filesystem::current_path("/", error);
}

int tell_internal(const std::exception& error) {
  // LibTorch appends a backtrace behind the first line.
  const std::string_view what = error.what();
  tell("internal error: " + std::string(what.substr(0, what.find('\n'))));
  return exit_code(ErrorKind::kInternal);
}

int run(const Words& words) {
  try {
    return dispatch(words);
  } catch (const Error& error) {
    tell(error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    tell("out of memory");
    return exit_code(ErrorKind::kMemory);
  } catch (const std::exception& error) {
    return tell_internal(error);
  }
}

}  // namespace

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Command& command : commands()) {
      if (command.for_users) all.push_back(command.name);
    }
    return all;
  }();
  return names;
}

}  // namespace hfta::engine

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  hfta::engine::keep_standard_streams();
  hfta::engine::leave_deleted_folder();
  hfta::engine::keep_freed_memory();
  return hfta::engine::run({argv + 1, argv + argc});
}
