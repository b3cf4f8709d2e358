#include "engine/allocation/jobs.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.hpp"

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("the paper's mix: 1 to 5 accelerators and 5 to 24 seconds equally often, two thirds sensitive") {
  const std::vector<Job> jobs = paper_mix(1, 12000, 8, {0.2, 0.05});
  std::map<int, int> by_devices;
  std::map<double, int> by_seconds;
  int sensitive = 0;
  for (const Job& job : jobs) {
    ++by_devices[job.request.devices];
    ++by_seconds[job.request.seconds];
    sensitive += job.request.sensitive ? 1 : 0;
    CHECK(job.request.communication == (job.request.sensitive ? 0.2 : 0.05));
    CHECK(job.arrival == 0);
  }
  REQUIRE(by_devices.size() == 5);
  REQUIRE(by_seconds.size() == 20);
  for (const auto& [devices, count] : by_devices) CHECK(std::abs(count - 2400) < 200);
  for (const auto& [seconds, count] : by_seconds) CHECK(std::abs(count - 600) < 120);
  CHECK(std::abs(sensitive - 8000) < 250);
  CHECK(paper_mix(1, 10, 8, {}).front().request.seconds == paper_mix(1, 12000, 8, {}).front().request.seconds);
  for (const Job& job : paper_mix(1, 100, 3, {})) CHECK(job.request.devices <= 3);
}

TEST_CASE("a file of jobs is read, and any other text is refused with its line") {
  const std::vector<Job> jobs =
      read_jobs("numGpus,pattern,arrival,service,bwSensitive,task\n2,ring,0,12.5,1,vgg16\r\n\n 5 , Ring ,3,7,False,a\n",
                "j", 8, {});
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].request.seconds == 12.5);
  CHECK(jobs[0].request.sensitive);
  CHECK(jobs[0].request.communication == 0.1);
  CHECK(jobs[1].request.devices == 5);
  CHECK(jobs[1].arrival == 3);
  CHECK_FALSE(jobs[1].request.sensitive);
  const std::pair<const char*, const char*> cases[] = {
      {"", "j: found no jobs"},
      {"numGpus,pattern\n", "j: found no jobs"},
      {"2,ring,0,12,1\n", "j:1: found 5 fields, wanted 6"},
      {"\n0,ring,0,12,1,a\n", "j:2: found devices '0', wanted 1 to 8"},
      {"9,ring,0,12,1,a\n", "j:1: found devices '9', wanted 1 to 8"},
      {"2.5,ring,0,12,1,a\n", "j:1: found devices '2.5'"},
      {"2,star,0,12,1,a\n", "j:1: found pattern 'star', wanted ring"},
      {"2,ring,-1,12,1,a\n", "j:1: found '-1', wanted seconds"},
      {"2,ring,0,0,1,a\n", "j:1: found '0', wanted seconds"},
      {"2,ring,0,nan,1,a\n", "j:1: found 'nan', wanted seconds"},
      {"2,ring,0,inf,1,a\n", "j:1: found 'inf', wanted seconds"},
      {"2,ring,0,12,yes,a\n", "j:1: found sensitive 'yes', wanted 0, 1, true or false"},
  };
  for (const auto& [text, message] : cases) {
    CAPTURE(text);
    try {
      (void)read_jobs(text, "j", 16, {});
      FAIL("it was read");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      CHECK_THAT(error.what(), Catch::Contains(message));
    }
  }
}
