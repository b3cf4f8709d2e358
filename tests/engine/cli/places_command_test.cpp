// Where a study's files lie: stores with several names, and folders in which somebody meddled.

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "begun_study.hpp"
#include "program.hpp"
#include "storage/checkpoints.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Alias {
  const char* name;
  bool (*make)(const fs::path& file, const fs::path& alias);  // false: this machine does not let us
};

const Alias kAliases[] = {
    {"symbolic link",
     [](const fs::path& file, const fs::path& alias) { return fs::create_symlink(file, alias), true; }},
    {"relative link of a link",
     [](const fs::path& file, const fs::path& alias) {
       fs::create_symlink(file.filename(), file.parent_path() / "between.db");
       fs::create_symlink(fs::path("..") / "between.db", alias);
       return true;
     }},
    {"hard link", [](const fs::path& file, const fs::path& alias) { return fs::create_hard_link(file, alias), true; }},
    {"bind mount", [](const fs::path& file, const fs::path& alias) {
       std::fclose(std::fopen(alias.c_str(), "w"));
       return ::mount(file.c_str(), alias.c_str(), nullptr, MS_BIND, nullptr) == 0;
     }}};

}  // namespace

TEST_CASE("a store by another name is the same store") {
  const json expected = whole_results();
  for (const Alias& alias : kAliases) {
    for (const bool alias_first : {false, true}) {
      const bool begun_by_link = alias_first && std::string(alias.name).find("link") != std::string::npos &&
                                 std::string(alias.name) != "hard link";
      if (alias_first && !begun_by_link) continue;  // there is one file to name twice only once it has been made
      CAPTURE(alias.name, alias_first);
      const Workplace place;
      place.write("digits.yaml", kHyperband);
      fs::create_directory(place.path() / "other");
      const fs::path file = place.path() / "digits.db", named = place.path() / "other" / "named.db";
      if (!alias_first) begin_study(place);
      if (!alias.make(file, named)) continue;
      if (alias_first) begin_study(place, named);
      CHECK(fs::exists(place.path() / "digits.db.hfta"));

      Program holder(place.options({{"HFTA_FAKE_DELAY_MS", "1000"}}), run_in(alias_first ? named : file));
      REQUIRE(holder.wait_for("round "));
      const Finished refused = place.run(run_in(alias_first ? file : named));
      INFO(refused.err);
      CHECK(refused.code == 6);
      CHECK(refused.err.find("being run by process ") != std::string::npos);
      holder.signal(SIGKILL);
      (void)holder.wait();

      const Finished rest = place.run(run_in(alias_first ? file : named));
      INFO(rest.err);
      CHECK(rest.code == 0);
      CHECK((results(place, file) == expected));
      CHECK((results(place, named) == expected));
      std::vector<std::string> others;
      for (const auto& entry : fs::directory_iterator(place.path() / "other"))
        others.push_back(entry.path().filename());
      CHECK(others == std::vector<std::string>{"named.db"});  // no second journal, no second folder of states
      for (const fs::path& store : {file, named}) {
        const Finished exported = place.run({"export", "--storage", store, "--output", "w.safetensors"});
        INFO(exported.err);
        CHECK(exported.code == 0);
        fs::remove(place.path() / "w.safetensors");
      }
      (void)::umount2(named.c_str(), MNT_DETACH);
    }
  }
}

TEST_CASE("a copy of a store is another store, and a moved one the same") {
  const json expected = whole_results();
  const Workplace place;
  begin_study(place);
  const fs::path file = place.path() / "digits.db", copy = place.path() / "copy.db";
  {
    Program holder(place.options({{"HFTA_FAKE_DELAY_MS", "1000"}}), {"digits.yaml"});
    REQUIRE(holder.wait_for("round "));
    holder.signal(SIGSTOP);
    fs::copy_file(file, copy);
    fs::remove(file.string() + "-journal");
    const Finished other = place.run(run_in("copy.db"));  // begins without states, and ends the same
    INFO(other.err);
    CHECK(other.code == 0);
    CHECK(other.seconds < 3);  // nobody had to be waited for
    CHECK((results(place, "copy.db") == expected));
    holder.signal(SIGKILL);
  }
  fs::create_directory(place.path() / "moved");
  fs::rename(file, place.path() / "moved" / "store.db");
  fs::rename(file.string() + ".hfta", place.path() / "moved" / "store.db.hfta");
  const Finished rest = place.run(run_in("moved/store.db"));
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK((results(place, "moved/store.db") == expected));
  CHECK_FALSE(fs::exists(file.string() + ".hfta"));
}

TEST_CASE("what was put in a checkpoint's place is passed over, and the study ends the same") {
  const json expected = whole_results();
  struct Case {
    const char* name;
    void (*put)(const fs::path& path);
  };
  const Case cases[] = {
      {"pipe", [](const fs::path& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }},
      {"folder", [](const fs::path& path) { fs::create_directories(path / "within"); }},
      {"link", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
      {"dangling link", [](const fs::path& path) { fs::create_symlink(path.parent_path() / "none", path); }}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Workplace place;
    begin_study(place);
    REQUIRE(!checkpoints(place).empty());
    for (const fs::path& path : checkpoints(place)) {
      fs::remove(path);
      c.put(path);
    }
    const Finished rest = place.run({"digits.yaml"});
    INFO(rest.err);
    CHECK(rest.code == 0);
    CHECK((results(place, "digits.db") == expected));
  }
}

TEST_CASE("a state that does not fit is named, and the one before it is gone on from") {
  const json expected = whole_results();
  const Workplace place;
  begin_study(place);
  // Whole files of another model: what they hold is the right size and checksum, and of no use.
  std::string state = R"({"optimizer.momentum_buffer.weight":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                      R"("weight":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
  state.insert(0, {static_cast<char>(state.size()), 0, 0, 0, 0, 0, 0, 0});
  state += "abc";
  hfta::SystemFiles files;
  hfta::storage::Checkpoints running(files, place.path() / "digits.db.hfta/digits/running");
  REQUIRE(!running.trials().empty());
  for (const int trial : running.trials()) {
    running.save(trial, running.load(trial)->epoch, std::as_bytes(std::span(state)));
  }
  const Finished rest = place.run({"digits.yaml"});
  INFO(rest.err);
  CHECK(rest.code == 0);
  for (const char* part : {"trial ", "/running/trial-", " does not fit its model (", "a state of another size"}) {
    CHECK(rest.err.find(part) != std::string::npos);
  }
  CHECK((results(place, "digits.db") == expected));
}

TEST_CASE("a linked folder of states is refused, and nothing behind it is touched") {
  for (const char* linked : {"digits.db.hfta", "digits.db.hfta/digits", "digits.db.hfta/digits/running"}) {
    CAPTURE(linked);
    const Workplace place;
    begin_study(place);
    const fs::path elsewhere = place.path() / "elsewhere";
    fs::remove_all(place.path() / linked);
    fs::create_directories(elsewhere / "digits");
    const std::vector<std::string> files = {"lock", "lease.precious", "trial-1.safetensors.tmp.1", "trial-0.tmp"};
    for (const std::string& name : files) {
      place.write("elsewhere/" + name, "precious");
      place.write("elsewhere/digits/" + name, "precious");
    }
    fs::create_directory_symlink(elsewhere, place.path() / linked);
    const Finished refused = place.run({"digits.yaml"});
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK(refused.err.find("found a symbolic link, wanted a folder") != std::string::npos);
    for (const std::string& name : files) {
      CHECK(place.read("elsewhere/" + name) == "precious");
      CHECK(place.read("elsewhere/digits/" + name) == "precious");
    }
  }
}

TEST_CASE("closed or broken standard streams change nothing, and no file takes their place") {
  const json expected = whole_results();
  for (const char* streams : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>&1 | head -c 1"}) {
    CAPTURE(streams);
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    Program::Options options = place.options();
    options.environment.emplace_back("TERM", "");
    const std::string program = options.program.string();
    options.program = "/bin/sh";
    Program shell(options, {"-c", "'" + program + "' digits.yaml " + streams});
    CHECK(shell.wait().code == 0);
    CHECK((results(place, "digits.db") == expected));
    CHECK(place.names() == std::vector<std::string>{"digits.db", "digits.db.hfta", "digits.yaml"});
  }
}

TEST_CASE("a study's files are as private as the umask says") {
  const mode_t before = ::umask(077);
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAULTS", "file-written@1=stop"}}), {"digits.yaml"});
  const bool stopped = program.wait_stopped();
  ::umask(before);
  REQUIRE(stopped);
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.path())) {
    CAPTURE(entry.path().string());
    CHECK((entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
    ++seen;
  }
  CHECK(seen > 5);  // the store, its journal perhaps, folders, the lease, states
}
