#include "engine/fused/choice_cache.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace hfta::engine {
namespace {

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("hfta_choice_" + std::to_string(::getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

KeptChoices sample() {
  fusion::Lowering wide;
  wide.chunk = 8;
  wide.families = {{"conv", "unfolded"}};
  wide.workers = 2;
  fusion::Lowering alone;
  alone.channels_last = true;
  alone.threads_per_worker = 2;
  return {
      {"cpu", "2.11", "graph", 8, 2}, {{{alone, 0.125}, {wide, 1.0 / 3}}, fusion::ChoiceOrigin::kMeasured, true}, 500};
}

}  // namespace

TEST_CASE("what was measured is remembered for its key alone") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const KeptChoices kept = sample();
  CHECK_FALSE(cache.find(kept.key, 500));
  cache.remember(kept);
  const auto found = cache.find(kept.key, 500);
  REQUIRE(found);
  CHECK(found->choices.how == fusion::ChoiceOrigin::kRemembered);
  CHECK(found->slot_steps == 500);
  REQUIRE(found->choices.candidates.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found->choices.candidates[i].lowering == kept.choices.candidates[i].lowering);
    CHECK(found->choices.candidates[i].wave_seconds == kept.choices.candidates[i].wave_seconds);
  }
  for (const ChoiceKey& other : {ChoiceKey{"cpu", "2.12", "graph", 8, 2}, ChoiceKey{"cpu", "2.11", "graph", 9, 2},
                                 ChoiceKey{"cpu", "2.11", "graph", 8, 1}, ChoiceKey{"gpu", "2.11", "graph", 8, 2}}) {
    CHECK_FALSE(cache.find(other, 500));
  }
}

TEST_CASE("a damaged file counts as absent, an empty folder remembers nothing") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const KeptChoices kept = sample();
  cache.remember(kept);
  const auto file = folder.path / files.list(folder.path).front();
  for (const char* text : {"", "{", "[]", "{\"key\": 3}", "{\"key\": \"x\", \"candidates\": []}"}) {
    std::ofstream(file) << text;
    CHECK_FALSE(cache.find(kept.key, 500));
  }
  ChoiceCache none(files, "");
  none.remember(kept);
  CHECK_FALSE(none.find(kept.key, 500));
}

TEST_CASE("a cache from elsewhere cannot ask for more threads or wider chunks than there are") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  KeptChoices kept = sample();
  kept.choices.candidates[1].lowering.chunk = 1000000;
  cache.remember(kept);
  CHECK_FALSE(cache.find(kept.key, 500));
  kept = sample();
  kept.choices.candidates[1].lowering.workers = 20000;
  cache.remember(kept);
  CHECK_FALSE(cache.find(kept.key, 500));
}

TEST_CASE("choices made for little work are made again for much more") {
  struct Case {
    double before, now;
    bool complete, found;
  };
  const Case cases[] = {{500, 500, false, true},   {500, 10, false, true},  {500, 4999, false, true},
                        {500, 5000, false, false}, {500, 5000, true, true}, {500, 1e9, true, true},
                        {0, 0, false, true},       {0, 1, false, false}};
  for (const Case& c : cases) {
    INFO(c.before << " then " << c.now << (c.complete ? ", complete" : ""));
    const Folder folder;
    SystemFiles files;
    ChoiceCache cache(files, folder.path);
    KeptChoices kept = sample();
    kept.slot_steps = c.before;
    kept.choices.complete = c.complete;
    cache.remember(kept);
    CHECK(cache.find(kept.key, c.now).has_value() == c.found);
  }
}

TEST_CASE("not measured is remembered as such") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const KeptChoices none{
      {"cpu", "2.11", "graph", 8, 2}, {{{fusion::Lowering(), 0}}, fusion::ChoiceOrigin::kNotMeasured}, 0};
  cache.remember(none);
  CHECK(cache.find(none.key, 0)->choices.how == fusion::ChoiceOrigin::kNotMeasured);
}

}  // namespace hfta::engine
