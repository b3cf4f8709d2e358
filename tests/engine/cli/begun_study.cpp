#include "begun_study.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

#include "comparable.hpp"
#include "study_texts.hpp"

namespace hfta::testing {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> run_in(const std::string& store) { return {"digits.yaml", "--set", "storage=" + store}; }

json results(const Workplace& place, const std::string& store) {
  const Finished finished = place.run({"report", "digits", "--storage", store, "--format", "json"});
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return comparable(json::parse(finished.out));
}

const json& whole_results() {
  static const json found = [] {
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    REQUIRE(place.run({"digits.yaml"}).code == 0);
    return results(place, "digits.db");
  }();
  return found;
}

void begin_study(const Workplace& place, const std::string& store) {
  place.write("digits.yaml", kHyperband);
  Program program(place.options({{"HFTA_FAKE_DELAY_MS", "100"}}), run_in(store));
  REQUIRE(program.wait_for("round 3:"));
  program.signal(SIGTERM);
  REQUIRE(program.wait().code == 128 + SIGTERM);
}

std::vector<fs::path> checkpoints(const Workplace& place) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place.path() / "digits.db.hfta/digits/running")) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hfta::testing
