#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>

#include "layer_text.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::test {
namespace {

struct DocumentedArg {
  std::string name, fallback;  ///< "" if required
};

// docs/layers.md's lines "- `kind(a, b=1)` ...", in order.
std::vector<std::pair<std::string, std::vector<DocumentedArg>>> documented() {
  std::ifstream page(hfta::testing::source_folder() / "docs/layers.md");
  const std::regex entry("^- `(\\w+)\\((.*)\\)`.*");
  std::vector<std::pair<std::string, std::vector<DocumentedArg>>> kinds;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (!std::regex_match(line, match, entry)) continue;
    auto& args = kinds.emplace_back(match[1], std::vector<DocumentedArg>()).second;
    std::istringstream list(match[2]);
    for (std::string arg; std::getline(list, arg, ',');) {
      arg.erase(0, arg.find_first_not_of(' '));
      const std::size_t equals = arg.find('=');
      args.push_back({arg.substr(0, equals), equals == std::string::npos ? "" : arg.substr(equals + 1)});
    }
  }
  return kinds;
}

TEST_CASE("docs/layers.md names every kind and argument, in order", "[docs]") {
  std::map<std::string, std::vector<DocumentedArg>> kinds;
  for (const auto& [kind, args] : documented()) CHECK(kinds.emplace(kind, args).second);
  CHECK(kinds.size() == layer_kinds().size());
  for (const std::string& kind : layer_kinds()) {
    CAPTURE(kind);
    REQUIRE(kinds.contains(kind));
    std::vector<std::string> page;
    for (const DocumentedArg& arg : kinds.at(kind)) page.push_back(arg.name);
    std::vector<std::string> code;
    for (const LayerArgInfo& arg : layer_args(kind)) code.push_back(arg.name);
    CHECK(page == code);
  }
}

TEST_CASE("docs/layers.md gives the defaults that layers have", "[docs]") {
  // Required arguments and an input they fit; other kinds need none and take [N, 4].
  const std::map<std::string, std::pair<std::string, Shape>> probes = {
      {"linear", {"4 2", {kBatch, 4}}},
      {"conv1d", {"4 4 3", {kBatch, 4, 8}}},
      {"conv2d", {"4 4 3", {kBatch, 4, 8, 8}}},
      {"batch_norm1d", {"4", {kBatch, 4}}},
      {"batch_norm2d", {"4", {kBatch, 4, 8, 8}}},
      {"layer_norm", {"4", {kBatch, 4}}},
      {"max_pool1d", {"3", {kBatch, 4, 8}}},
      {"max_pool2d", {"3", {kBatch, 4, 8, 8}}},
      {"avg_pool1d", {"3", {kBatch, 4, 8}}},
      {"avg_pool2d", {"3", {kBatch, 4, 8, 8}}},
      {"adaptive_avg_pool1d", {"2", {kBatch, 4, 8}}},
      {"adaptive_max_pool1d", {"2", {kBatch, 4, 8}}},
      {"adaptive_avg_pool2d", {"2", {kBatch, 4, 8, 8}}},
      {"adaptive_max_pool2d", {"2", {kBatch, 4, 8, 8}}},
      {"unflatten", {"1 [2,2]", {kBatch, 4}}},
      {"reshape", {"2 2", {kBatch, 4}}},
      {"transpose", {"1 2", {kBatch, 4, 8}}},
      {"add", {"input", {kBatch, 4}}},
      {"concat", {"input", {kBatch, 4}}},
  };
  int checked = 0;
  for (const auto& [kind, args] : documented()) {
    const auto probe = probes.find(kind);
    const std::string required = probe == probes.end() ? "" : probe->second.first;
    const Shape input = probe == probes.end() ? Shape{kBatch, 4} : probe->second.second;
    const std::string size = std::to_string(input.back());
    const std::string layers = "linear " + size + " " + size + " | " + kind + " " + required;
    const Graph plain = parse_graph(layers, input);
    for (const DocumentedArg& arg : args) {
      if (arg.fallback.empty() || arg.fallback == "unset") continue;
      CAPTURE(kind, arg.name, arg.fallback);
      const Graph given = parse_graph(layers + " " + arg.name + "=" + arg.fallback, input);
      CHECK(given.signature() == plain.signature());
      if (!plain.hypers.empty()) CHECK(given.hypers[0].value == plain.hypers[0].value);
      ++checked;
    }
  }
  CHECK(checked > 30);
}

}  // namespace
}  // namespace hfta::fusion::test
