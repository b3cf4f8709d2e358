#include "engine/config/yaml.hpp"

#include <catch2/catch.hpp>

namespace hfta::engine::configuration {
namespace {

TEST_CASE("a tree keeps order, lines and quotes") {
  const Node root = parse_yaml(
      "# comment\nb: 1\na:\n  - 'x'\n  - \"1\"\n  - |\n    1\n  - 2 # two\nnone:\ny: on\n1: {k: [a, b]}\n", "f");
  REQUIRE(root.kind == Node::Kind::kMap);
  std::vector<std::string> keys;
  std::vector<int> lines;
  for (const Entry& entry : root.entries) {
    keys.push_back(entry.key);
    lines.push_back(entry.line);
  }
  CHECK(keys == std::vector<std::string>{"b", "a", "none", "y", "1"});
  CHECK(lines == std::vector<int>{2, 3, 9, 10, 11});
  const Node& list = *root.find("a");
  REQUIRE(list.items.size() == 4);
  CHECK(list.line == 3);  // where its key stands
  CHECK(list.items[1].line == 5);
  CHECK(list.items[1].value == trials::ParamValue(std::string("1")));
  CHECK(list.items[2].value == trials::ParamValue(std::string("1\n")));
  CHECK(list.items[3].value == trials::ParamValue(std::int64_t{2}));
  CHECK(root.find("none")->is_null());
  CHECK(root.find("none")->line == 9);
  CHECK(root.find("y")->value == trials::ParamValue(std::string("on")));
  CHECK(root.find("1")->find("k")->items.size() == 2);
  CHECK(root.find("k") == nullptr);
}

TEST_CASE("spellings of one tree") {
  for (const char* text :
       {"a: {b: [1, x]}\n", "a:\n  b:\n    - 1\n    - x", "a:\n  b:\n  - 1\n  - x\n", "{\"a\":{\"b\":[1,\"x\"]}}",
        "\xEF\xBB\xBF"
        "a: {b: [1, x]}",
        "---\na: {b: [1, x]}\n...\n", "a:\r\n  b: [1, x]\r\n", "%YAML 1.2\n---\na: {b: [1,\n x]}\n"}) {
    INFO(text);
    const Node root = parse_yaml(text, "f");
    REQUIRE(root.find("a") != nullptr);
    const Node* list = root.find("a")->find("b");
    REQUIRE(list != nullptr);
    REQUIRE(list->items.size() == 2);
    CHECK(list->items[0].value == trials::ParamValue(std::int64_t{1}));
    CHECK(list->items[1].value == trials::ParamValue(std::string("x")));
  }
}

TEST_CASE("what is no text at all is null") {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "~"}) CHECK(parse_yaml(text, "f").is_null());
}

TEST_CASE("nesting of 32 is accepted") {
  std::string text(32, '[');
  text += std::string(32, ']');
  CHECK(parse_yaml(text, "f").items.size() == 1);
  CHECK(parse_yaml("a: \"" + std::string(100, '[') + "\" # " + std::string(100, '{'), "f").entries.size() == 1);
}

}  // namespace
}  // namespace hfta::engine::configuration
