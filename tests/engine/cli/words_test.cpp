// What is said to wrong words, and the commands' own help.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "program.hpp"
#include "study_texts.hpp"

using namespace hfta::testing;

namespace {

long lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("wrong usage is one line, exit 2, and nothing is created") {
  struct Case {
    std::vector<std::string> words;
    const char* says;
  };
  const Case cases[] = {
      {{}, "--help"},
      {{"reprot"}, "did you mean 'report'?"},
      {{"export"}, "output is missing"},
      {{"export", "digits", "--output", "best.safetensors"}, "storage is missing"},
      {{"export", "digits", "--storage", "x.db", "--output", "."}, "--output: found the folder ., wanted a file"},
      {{"export", "digits", "--storage", "x.db", "--output", "b", "--trial", "best"}, "trial"},
      {{"simulat", "c.yaml"}, "did you mean 'simulate'?"},
      {{"nosuch.yaml"}, "nosuch.yaml"},
      {{"digits.yaml", "--widht", "4"}, "did you mean '--width'?"},
      {{"digits.yaml", "--width"}, "width"},
      {{"digits.yaml", "extra"}, "too many words"},
      {{"digits.yaml", "--set", "train.epochs"}, "wanted key.path=value"},
      {{"digits.yaml", "--set", "=3"}, "wanted key.path=value"},
      {{"digits.yaml", "--trials", "many"}, "--trials: found 'many', wanted an integer"},
      {{"digits.yaml", "--trials", "0"}, "--trials: found 0, wanted an integer"},
      {{"digits.yaml", "--width", "0"}, "--width: found 0, wanted auto or an integer"},
      {{"digits.yaml", "--set", "train.epohcs=3"}, "did you mean 'epochs'?"},
      {{"--trials", "3"}, "CONFIG.yaml is missing"},
      {{"report"}, "storage is missing"},
      {{"report", "digits", "--storage"}, "storage"},
      {{"report", "--storage", "x.db", "--format", "xml"}, "wanted one of table, json, csv"},
      {{"report", "--storage", "x.db", "--format", "html"}, "found 'html', wanted"},
      {{"report", "--storage", "x.db", "--top", "0"}, "--top: found 0"},
      {{"report", "--storage", "x.db", "--top", "some"}, "top"},
      {{"report", "--storage", "mysql://x"}, "mysql://x"},
      {{"studies"}, "storage is missing"},
      {{"studies", "--storage", "x.db", "--format", "csv"}, "wanted one of table, json"},
      {{"plan"}, "CONFIG.yaml is missing"},
      {{"resume", "digits"}, "storage is missing"},
      {{"backup"}, "DESTINATION is missing"},
      {{"backup", "copy.db"}, "storage is missing"},
      {{"doctor"}, "storage is missing"},
      {{"resume", "--storage", "x.db"}, "STUDY is missing"},
  };
  for (const Case& c : cases) {
    const Workplace place;
    place.write("digits.yaml", kHyperband);
    const Finished finished = place.run(c.words);
    std::string words;
    for (const std::string& word : c.words) words += " " + word;
    INFO("hfta-tune" << words << "\n" << finished.err);
    CHECK(finished.code == 2);
    CHECK(finished.out.empty());
    CHECK(lines(finished.err) == 1);
    CHECK_THAT(finished.err, Catch::Contains(c.says));
    CHECK(place.names() == std::vector<std::string>{"digits.yaml"});
  }
}

TEST_CASE("hostile words cannot move the cursor") {
  const Workplace place;
  const Finished finished = place.run({"report\x1b[2J\n", "--storage", "x"});
  CHECK(finished.code == 2);
  CHECK(lines(finished.err) == 1);
  CHECK(finished.err.find('\x1b') == std::string::npos);
}

TEST_CASE("every command has its help, on standard output") {
  const Workplace place;
  for (const char* command : {"run", "resume", "report", "plan", "export", "studies", "simulate", "backup", "doctor"}) {
    for (const char* word : {"--help", "-h"}) {
      const Finished finished = place.run({command, word});
      CHECK(finished.code == 0);
      CHECK(finished.err.empty());
      CHECK_THAT(finished.out, Catch::Contains("usage: hfta-tune") && Catch::Contains("--help"));
    }
  }
  const Finished all = place.run({"--help"});
  CHECK(all.code == 0);
  for (const char* command : {"resume", "report", "plan", "export", "studies", "backup", "doctor", "--version"})
    CHECK_THAT(all.out, Catch::Contains(command));
  CHECK(place.run({"nosuch.yaml", "--help"}).code == 0);
  CHECK_THAT(place.run({"--version"}).out, Catch::StartsWith("hfta-tune ") && Catch::EndsWith("\n"));
}

TEST_CASE("commands that do not train start at once") {
  const Workplace place;
#ifdef __SANITIZE_ADDRESS__
  const double most = 0.5;
#else
  const double most = 0.05;
#endif
  double fastest = 10;
  for (int i = 0; i < 20; ++i) fastest = std::min(fastest, place.run({"report", "--help"}).cpu_seconds);
  CHECK(fastest < most);
}

TEST_CASE("without its module the program says what is missing") {
  const Workplace place;
  place.write("digits.yaml", kHyperband);
  Program::Options options = place.options();
  options.program = HFTA_TUNE_BARE;
  const Finished finished = Program(options, {"digits.yaml"}).wait();
  CHECK(finished.code == 4);
  CHECK_THAT(finished.err, Catch::Contains("libhfta_torch.so") && Catch::Contains("HFTA_WITH_TORCH=OFF"));
  CHECK(place.names() == std::vector<std::string>{"digits.yaml"});
  const Finished torch = place.run({"digits.yaml"}, {{"HFTA_TORCH_DIR", "/nonexistent/torch"}});
  CHECK(torch.code == 4);
  CHECK_THAT(torch.err, Catch::Contains("/nonexistent/torch/lib/libc10.so") && Catch::Contains("HFTA_TORCH_DIR"));
}
