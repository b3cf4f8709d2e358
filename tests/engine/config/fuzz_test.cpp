#include <pthread.h>

#include <array>
#include <catch2/catch.hpp>
#include <ctime>
#include <functional>
#include <random>

#include "base/error.hpp"
#include "engine/config/yaml.hpp"
#include "sample.hpp"

namespace hfta::engine {
namespace {

using Random = std::mt19937_64;  // the same numbers everywhere

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

// What YAML is made of, and what has made YAML parsers fall over.
const std::string& token(Random& random) {
  static const std::vector<std::string> tokens = {
      "[",    "]",           "{",    "}",    ",",       ": ",       ":",
      "- ",   "-",           "? ",   "?",    "!",       "!<",       "!!int ",
      "!2",   "&a ",         "&b",   "*a",   "|",       "|2",       "|+\n",
      ">",    "\"",          "'",    "\n",   "\n  ",    "\n    ",   " ",
      "a",    "x: ",         "1",    "---",  "...",     "%",        "%TAG ! a",
      "#",    "\t",          "\r\n", "~",    "\\",      "\\x41",    "@",
      "`",    "<<: ",        "{}",   "[]",   "''",      "\xc3\xa9", "\xef\xbb\xbf",
      "\x04", "${lr}",       "${",   "}",    "1e999",   ".nan",     "null",
      "0x",   "{{",          "[[",   "? - ", "\n...\n", "\n---\n",  "a: [&b",
      "{x:",  "\xe2\x80\xa8"};
  return tokens[below(random, tokens.size())];
}

std::string mutated(Random& random) {
  std::string text = below(random, 3) == 0 ? "" : kSample;
  const std::size_t edits = 1 + below(random, text.empty() ? 25 : 5);
  for (std::size_t i = 0; i < edits; ++i) {
    const std::size_t at = text.empty() ? 0 : below(random, text.size() + 1);
    switch (below(random, text.empty() ? 1 : 5)) {
      case 0:
      case 1:
        text.insert(at, token(random));
        break;
      case 2:
        text.erase(at, below(random, 12));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(below(random, 256));
        break;
      default:
        text.insert(at, text.substr(below(random, text.size()), below(random, 40)));
    }
  }
  return text;
}

// Runs on a small stack, as under `ulimit -s 256`.
void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, std::size_t{256} << 10) == 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  const int failed = pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work));
  if (failed == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  REQUIRE(failed == 0);  // asserted when the thread, which asserts too, has ended
}

TEST_CASE("no text crashes or hangs the reader") {
  // What other YAML parsers, or this one, were once stopped by.
  for (const char* text : {"a: [&b", "!2", "{x:",       "&a [*a]", "!",          "? ",        ":",         "- - -\n -",
                           "\"",     "'",  "|",         "%",       "---\n---\n", "[a, b]: c", "{a: b}: c", "\xff\xfe",
                           "*",      "&",  "a:\n\t- b", "!<",      "!<tag:x> a", "[]]",       "{}}"}) {
    INFO(text);
    CHECK(message_of(text) != "");
  }
  Random random(20240607);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutated(random);
    const std::string message = message_of(text);
    accepted += message.empty() ? 1 : 0;
    if (message.find('\n') == std::string::npos) continue;
    INFO(text);
    CHECK(message == "one line");
  }
  CHECK(accepted > 100);  // harmless edits: the mutations reach every depth of the reader
}

TEST_CASE("deep nesting is refused at once, on a small stack too") {
  const std::string mebibyte(configuration::kMostBytes, ' ');
  const auto filled = [&](const std::string& unit) {
    std::string text;
    while (text.size() + unit.size() <= mebibyte.size()) text += unit;
    return text;
  };
  std::string indented;
  for (int i = 0; i < 1000; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  const std::vector<std::string> texts = {
      std::string(10'000, '['), filled("["),  filled("{"), filled("{a: "),  filled("[a, "), filled("- "),
      filled("{\"a\":"),        filled("[{"), indented,    filled("a: [\n")};
  for (const std::string& text : texts) {
    const std::clock_t start = std::clock();  // of the process's own time: the machine may be busy with others
    std::string message;
    on_small_stack([&] { message = message_of(text); });
    INFO(text.substr(0, 20));
    CHECK(message.find("nested deeper than 32, wanted at most 32") != std::string::npos);
    CHECK(std::clock() - start < CLOCKS_PER_SEC);
  }
}

TEST_CASE("long and wide texts are bounded") {
  CHECK(message_of(std::string(configuration::kMostBytes + 1, '#')) ==
        "s.yaml:1: found 1048577 bytes, wanted at most 1048576");
  std::string wide = "a: [";
  for (int i = 0; i < configuration::kMostNodes; ++i) wide += "1,";
  CHECK(message_of(wide + "]").find("found more than 100000 values") != std::string::npos);
  std::string keys;
  for (int i = 0; i < 40'000; ++i) keys += std::to_string(i) + ": 1\n";
  CHECK(message_of(keys) ==
        "s.yaml:1: 0: found an unknown key, wanted one of this section's; valid: study, storage, "
        "seed, method, hyperband, bohb, dehb, freeze_thaw, tpe, gp, cmaes, evolution, nsga2, pbt, repeat, folds, rank, "
        "early_stopping, early_terminate, run_cap, "
        "budget, metric, parameters, constraints, points, warm_start, model, data, train, array, memory, keep");
}

}  // namespace
}  // namespace hfta::engine
