#include "engine/fused/choice_cache.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../../fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("hfta_choice_" + std::to_string(::getpid()));
  ~Folder() { std::filesystem::remove_all(path); }
};

fusion::MeasuredChoices sample() {
  fusion::Lowering wide;
  wide.chunk = 8;
  wide.families = {{"conv", "unfolded"}};
  wide.workers = 2;
  fusion::Lowering alone;
  alone.channels_last = true;
  alone.threads_per_worker = 2;
  return {{{alone, 0.125}, {wide, 1.0 / 3}}, "measured"};
}

}  // namespace

TEST_CASE("what was measured is remembered for its key alone") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const ChoiceKey key{"cpu", "2.11", "graph", 8, 2};
  CHECK_FALSE(cache.find(key));
  cache.remember(key, sample());
  const auto found = cache.find(key);
  REQUIRE(found);
  CHECK(found->how == "remembered");
  REQUIRE(found->candidates.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found->candidates[i].lowering == sample().candidates[i].lowering);
    CHECK(found->candidates[i].wave_seconds == sample().candidates[i].wave_seconds);
  }
  for (const ChoiceKey& other : {ChoiceKey{"cpu", "2.12", "graph", 8, 2}, ChoiceKey{"cpu", "2.11", "graph", 9, 2},
                                 ChoiceKey{"cpu", "2.11", "graph", 8, 1}, ChoiceKey{"gpu", "2.11", "graph", 8, 2}}) {
    CHECK_FALSE(cache.find(other));
  }
}

TEST_CASE("a damaged file counts as absent, an empty folder remembers nothing") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const ChoiceKey key{"cpu", "2.11", "graph", 8, 2};
  cache.remember(key, sample());
  const auto file = folder.path / files.list(folder.path).front();
  for (const char* text : {"", "{", "[]", "{\"key\": 3}", "{\"key\": \"x\", \"candidates\": []}"}) {
    std::ofstream(file) << text;
    CHECK_FALSE(cache.find(key));
  }
  ChoiceCache none(files, "");
  none.remember(key, sample());
  CHECK_FALSE(none.find(key));
}

TEST_CASE("not measured is remembered as such") {
  const Folder folder;
  SystemFiles files;
  ChoiceCache cache(files, folder.path);
  const ChoiceKey key{"cpu", "2.11", "graph", 8, 2};
  cache.remember(key, {{{fusion::Lowering(), 0}}, "not measured"});
  CHECK(cache.find(key)->how == "not measured");
}

}  // namespace hfta::engine
