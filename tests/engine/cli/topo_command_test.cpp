// hfta-tune topo, and simulate --allocation, from outside.

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "program.hpp"
#include "tests/source_folder.hpp"

using namespace hfta::testing;

namespace {

Finished run_bare(const Workplace& place, std::vector<std::string> words) {
  Program::Options options = place.options();
  options.program = HFTA_TUNE_BARE;
  return Program(options, std::move(words)).wait();
}

std::string file_text(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The numbers of a policy's row.
std::vector<double> row_of(const std::string& table, const std::string& policy) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name != policy) continue;
    std::vector<double> numbers;
    for (double number = 0; words >> number;) numbers.push_back(number);
    return numbers;
  }
  return {};
}

}  // namespace

TEST_CASE("topo shows machines by name and from files, and what it writes it reads") {
  const Workplace place;
  const Finished table = run_bare(place, {"topo", "--machine", "dgx-1v"});
  REQUIRE(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("NV2") && Catch::Contains("best set"));
  place.write("m.yaml", run_bare(place, {"topo", "--machine", "drawn:5", "--format", "yaml"}).out);
  const Finished again = run_bare(place, {"topo", "--topology", "m.yaml"});
  CHECK(again.out == run_bare(place, {"topo", "--machine", "drawn:5"}).out);
  place.write("topo.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X\n");
  CHECK_THAT(run_bare(place, {"topo", "--topology", "topo.txt"}).out, Catch::Contains("NV4"));
  place.write("one.yaml", "devices: 1\n");
  CHECK(run_bare(place, {"topo", "--topology", "one.yaml"}).code == 0);
}

TEST_CASE("simulate --allocation prints a row for each policy, by seed, machine and file of jobs") {
  const Workplace place;
  const Finished first = run_bare(place, {"simulate", "--allocation", "--queues", "2"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  for (const char* policy : {"baseline", "topo-aware", "greedy", "preserve", "best-effort", "lookahead"}) {
    CHECK(row_of(first.out, policy).size() == 9);
  }
  CHECK(row_of(first.out, "baseline")[5] == 1);
  CHECK(row_of(first.out, "lookahead")[0] < row_of(first.out, "preserve")[0]);
  CHECK(run_bare(place, {"simulate", "--allocation", "--queues", "2"}).out == first.out);
  CHECK(run_bare(place, {"simulate", "--allocation", "--queues", "2", "--seed", "9"}).out != first.out);
  place.write("jobs.csv", "2,ring,0,10,1,a\n3,ring,5,10,0,b\n");
  const Finished jobs = run_bare(
      place, {"simulate", "--allocation", "--jobs", "jobs.csv", "--machine", "summit", "--bandwidth", "rings"});
  INFO(jobs.err);
  CHECK(jobs.code == 0);
  CHECK(row_of(jobs.out, "lookahead")[0] == 1);
}

TEST_CASE("the table of docs/devices.md is what simulate --allocation prints") {
  const Workplace place;
  const std::string printed = run_bare(place, {"simulate", "--allocation"}).out;
  std::string page = file_text(source_folder() / "docs/devices.md");
  page.erase(std::remove_if(page.begin(), page.end(), [](char c) { return c == '|' || c == '`' || c == '*'; }),
             page.end());
  for (const char* policy : {"baseline", "topo-aware", "greedy", "preserve", "best-effort", "lookahead"}) {
    CAPTURE(policy);
    const std::vector<double> numbers = row_of(printed, policy), told = row_of(page, policy);
    REQUIRE(numbers.size() == 9);
    REQUIRE(told.size() == 6);
    for (std::size_t i = 0; i < told.size(); ++i) CHECK(told[i] == Approx(numbers[i]).margin(0.00051).epsilon(0));
  }
}

TEST_CASE("what topo and simulate --allocation cannot use is one line, exit 2") {
  struct Case {
    std::vector<std::string> words;
    int code;
    const char* says;
  };
  const Case cases[] = {
      {{"topo", "--machine", "dgx-9"}, 2, "--machine: found 'dgx-9', wanted one of dgx-1v"},
      {{"topo", "--machine", "drawn:x"}, 2, "wanted drawn:SEED"},
      {{"topo", "--machine", "summit", "--topology", "m.yaml"}, 2, "found --topology and --machine"},
      {{"topo", "--topology", "absent.txt"}, 2, "absent.txt: cannot be read"},
      {{"topo", "--topology", "bad.yaml"}, 2, "bad.yaml:1: devices: found 99"},
      {{"topo", "--format", "xml"}, 2, "--format: found 'xml'"},
      {{"simulate", "--allocation", "s.yaml"}, 2, "found a config beside --allocation"},
      {{"simulate", "--allocation", "--jobs", "bad.csv"}, 2, "bad.csv:1: found devices '9', wanted 1 to 8"},
      {{"simulate", "--allocation", "--jobs", "absent.csv"}, 2, "absent.csv: cannot be read"},
      {{"simulate", "--allocation", "--communication", "1.5"}, 2, "--communication: found 1.5, wanted 0 to 1"},
      {{"simulate", "--allocation", "--communication", "nan"}, 2, "--communication: found nan, wanted 0 to 1"},
      {{"simulate", "--allocation", "--queues", "0"}, 2, "--queues: found 0, wanted 1 to 1000"},
      {{"simulate", "--allocation", "--seed", "-1"}, 2, "--seed: found -1"},
      {{"simulate", "--allocation", "--bandwidth", "x"}, 2, "--bandwidth: found 'x'"},
  };
  const Workplace place;
  place.write("bad.yaml", "devices: 99\n");
  place.write("bad.csv", "9,ring,0,10,1,a\n");
  for (const Case& c : cases) {
    const Finished finished = run_bare(place, c.words);
    INFO(c.says << " | " << finished.err);
    CHECK(finished.code == c.code);
    CHECK_THAT(finished.err, Catch::Contains(c.says));
  }
}
