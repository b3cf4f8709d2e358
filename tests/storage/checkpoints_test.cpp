/// Generations, checksums, and faults of the files beneath.
#include "storage/checkpoints.hpp"

#include <algorithm>
#include <cstring>

#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = "/study.db.hfta/study";

std::vector<std::byte> bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

/// "epoch: bytes" of what load gives, or "none".
std::string loaded(Checkpoints& checkpoints, int trial) {
  const auto found = checkpoints.load(trial);
  if (!found) return "none";
  return std::to_string(found->epoch) + ": " +
         std::string(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size());
}

std::string loaded_anew(BreakableFiles& files, int trial) {
  Checkpoints checkpoints(files, kFolder);
  return loaded(checkpoints, trial);
}

/// The path of the file of that trial and epoch.
std::string file_of(const BreakableFiles& files, int trial, int epoch) {
  const std::string prefix = "trial-" + std::to_string(trial) + ".epoch-" + std::to_string(epoch) + ".";
  for (const auto& [path, contents] : files.contents) {
    if (fs::path(path).filename().string().rfind(prefix, 0) == 0) return path;
  }
  FAIL("no file of trial " << trial << ", epoch " << epoch);
  return {};
}

TEST_CASE("checkpoints: the newest of two generations is loaded", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints checkpoints(files, kFolder);
  CHECK(files.contents.empty());
  CHECK(loaded(checkpoints, 0) == "none");
  CHECK(checkpoints.trials().empty());
  for (const int epoch : {1, 3, 9, 27}) checkpoints.save(7, epoch, bytes("state " + std::to_string(epoch)));
  checkpoints.save(70, 1, bytes(""));
  CHECK(loaded(checkpoints, 7) == "27: state 27");
  CHECK(loaded(checkpoints, 70) == "1: ");
  CHECK(loaded(checkpoints, 0) == "none");
  CHECK(checkpoints.trials() == std::vector<int>{7, 70});
  CHECK(files.contents.size() == 3);
  CHECK(loaded_anew(files, 7) == "27: state 27");
  checkpoints.remove(7);
  checkpoints.remove(8);
  CHECK(checkpoints.trials() == std::vector<int>{70});
  CHECK(files.contents.size() == 1);
}

TEST_CASE("checkpoints: any flipped bit or cut is found, and the generation before is used", "[checkpoints]") {
  BreakableFiles files;
  const std::string newer = "the newer of two states";
  {
    Checkpoints checkpoints(files, kFolder);
    checkpoints.save(0, 1, bytes("older"));
    checkpoints.save(0, 2, bytes(newer));
  }
  std::string& stored = files.contents[file_of(files, 0, 2)];
  for (std::size_t bit = 0; bit < newer.size() * 8; ++bit) {
    stored[bit / 8] = static_cast<char>(stored[bit / 8] ^ (1 << (bit % 8)));
    CHECK(loaded_anew(files, 0) == "1: older");
    stored = newer;
  }
  for (std::size_t size = 0; size < newer.size(); ++size) {
    stored = newer.substr(0, size);
    CHECK(loaded_anew(files, 0) == "1: older");
  }
  stored = newer + "x";
  CHECK(loaded_anew(files, 0) == "1: older");
  stored = newer;
  CHECK(loaded_anew(files, 0) == "2: " + newer);
  stored[0] = '?';
  files.contents[file_of(files, 0, 1)] = "OLDER";
  CHECK(loaded_anew(files, 0) == "none");
}

TEST_CASE("checkpoints: a trial that went back to an earlier epoch keeps nothing later", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints checkpoints(files, kFolder);
  for (const int epoch : {3, 4, 5}) checkpoints.save(0, epoch, bytes("first " + std::to_string(epoch)));
  files.contents[file_of(files, 0, 5)] = "damaged";
  CHECK(loaded(checkpoints, 0) == "4: first 4");
  checkpoints.save(0, 5, bytes("again 5"));
  CHECK(loaded_anew(files, 0) == "5: again 5");
  CHECK(files.contents.size() == 2);
  checkpoints.save(0, 5, bytes("again 5"));  // the same once more
  CHECK(loaded_anew(files, 0) == "5: again 5");
  CHECK(files.contents.size() == 2);
  checkpoints.save(0, 1, bytes("from the start"));
  CHECK(loaded_anew(files, 0) == "1: from the start");
  CHECK(files.contents.size() == 1);
}

TEST_CASE("checkpoints: what is removed up to an epoch leaves what is later", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints checkpoints(files, kFolder);
  const int up_to = GENERATE(0, 2, 3, 4, 5, 9);
  for (const int epoch : {3, 5}) checkpoints.save(0, epoch, bytes(std::to_string(epoch)));
  checkpoints.save(1, 2, bytes("another"));
  checkpoints.remove_up_to(0, up_to);
  checkpoints.remove_up_to(2, up_to);
  CHECK(loaded(checkpoints, 0) == (up_to < 5 ? "5: 5" : "none"));
  CHECK(loaded_anew(files, 0) == loaded(checkpoints, 0));
  CHECK(files.contents.size() == (up_to < 3 ? 3U : up_to < 5 ? 2U : 1U));
  CHECK(loaded(checkpoints, 1) == "2: another");
}

TEST_CASE("checkpoints: the states of a study are kept apart by what they are for", "[checkpoints]") {
  BreakableFiles files;
  StudyStates states(files, kFolder);
  CHECK(files.contents.empty());
  for (const StateKind kind : kStateKinds) states.of(kind).save(4, 1, bytes(name_of(kind)));
  for (const StateKind kind : kStateKinds) {
    Checkpoints alone(files, kFolder / name_of(kind));
    CHECK(loaded(alone, 4) == std::string("1: ") + name_of(kind));
  }
  CHECK(files.contents.size() == 3);
}

TEST_CASE("checkpoints: a failed save leaves what was there", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints checkpoints(files, kFolder);
  checkpoints.save(0, 1, bytes("one"));
  checkpoints.save(0, 2, bytes("two"));
  files.writes_left = 0;
  check_refused("trial-0.epoch-3", "No space", [&] { checkpoints.save(0, 3, bytes("three")); });
  CHECK(loaded(checkpoints, 0) == "2: two");
  CHECK(loaded_anew(files, 0) == "2: two");
  CHECK(files.contents.size() == 2);
  files.writes_left = 1;
  checkpoints.save(0, 3, bytes("three"));
  CHECK(loaded(checkpoints, 0) == "3: three");
}

TEST_CASE("checkpoints: what cannot be read is passed over, but never taken for nothing", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints checkpoints(files, kFolder);
  checkpoints.save(0, 1, bytes("one"));
  checkpoints.save(0, 2, bytes("two"));
  const std::string first = file_of(files, 0, 1), second = file_of(files, 0, 2);
  files.unreadable = {second};
  CHECK(loaded(checkpoints, 0) == "1: one");
  files.unreadable = {first, second};
  CHECK_THAT(message_of(ErrorKind::kStorage, [&] { (void)checkpoints.load(0); }), Catch::Contains("cannot read"));
  files.unreadable.clear();
  files.contents.clear();  // removed behind our back
  CHECK(loaded(checkpoints, 0) == "none");
}

TEST_CASE("checkpoints: only names that we write count; temporary ones are swept", "[checkpoints]") {
  BreakableFiles files;
  Checkpoints(files, kFolder).save(3, 1, bytes("state"));
  const std::string good = fs::path(file_of(files, 3, 1)).filename().string();
  const std::string others[] = {
      "notes.txt",   "trial-3.safetensors",       "trial-x.epoch-1.5.0.safetensors",   "trial-03" + good.substr(7),
      good + ".bak", "trial--3" + good.substr(7), "trial-99999999999" + good.substr(7)};
  for (const std::string& name : others) files.contents[(kFolder / name).string()] = "state";
  const std::string temporary = good + ".tmp.4711";
  files.contents[(kFolder / temporary).string()] = "st";
  Checkpoints checkpoints(files, kFolder);
  CHECK(checkpoints.trials() == std::vector<int>{3});
  checkpoints.sweep();
  CHECK_FALSE(files.contents.contains((kFolder / temporary).string()));
  CHECK(files.contents.size() == 1 + std::size(others));
  CHECK(loaded(checkpoints, 3) == "1: state");
}

TEST_CASE("checkpoints: on the machine's own files", "[checkpoints]") {
  const TempFolder folder;
  SystemFiles files;
  const fs::path where = checkpoint_folder(folder / "digits.db", "digits");
  {
    Checkpoints checkpoints(files, where);
    CHECK_FALSE(fs::exists(where));
    const std::string large(3 << 20, 'x');
    checkpoints.save(0, 1, bytes("one"));
    checkpoints.save(0, 2, bytes(large));
  }
  Checkpoints checkpoints(files, where);
  CHECK(checkpoints.load(0)->bytes.size() == 3 << 20);
  write_file(where / "trial-0.epoch-3.1.0000000000000000.safetensors.tmp.1", "");
  checkpoints.sweep();
  CHECK(files.list(where).size() == 2);
}

TEST_CASE("checkpoints: a study's folder is its own, whatever its name", "[checkpoints]") {
  CHECK(checkpoint_folder("a/digits.db", "digits") == "a/digits.db.hfta/digits");
  CHECK(checkpoint_folder("digits.db", "it's 2 = b+c@d_e.f-3") !=
        checkpoint_folder("digits.db", "it_s 2 = b+c@d_e.f-3"));
  const std::string names[] = {"",
                               ".",
                               "..",
                               "../../etc",
                               "a/b",
                               "a_b",
                               "a\nb",
                               "a\\b",
                               "\xe2\x82\xac",
                               std::string(300, 'x'),
                               std::string(301, 'x'),
                               "-rf",
                               std::string("a\0b", 3),
                               ".hidden"};
  std::set<std::string> folders;
  for (const std::string& name : names) {
    INFO(name);
    const fs::path folder = checkpoint_folder("s.db", name);
    CHECK(folder.parent_path() == "s.db.hfta");
    const std::string last = folder.filename().string();
    CHECK(last.size() <= 200);
    CHECK((!last.empty() && last.front() != '.'));
    CHECK(last.find_first_of(std::string("/\\\n\0", 4)) == std::string::npos);
    CHECK(folders.insert(last).second);
  }
}

}  // namespace
}  // namespace hfta::storage::testing
