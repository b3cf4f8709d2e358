// Scores of sets, beside all rings tried one by one.

#include "engine/allocation/scores.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "base/random.hpp"
#include "engine/allocation/ring_packing.hpp"
#include "engine/topology/machines.hpp"
#include "oracle.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

TEST_CASE("MAPA's predicted bandwidth, by its published coefficients") {
  struct Case {
    RingLinks links;
    double wanted;
  };
  // The highest and some others of rings of two to six.
  for (const Case& c : {Case{{2, 0, 0}, 58.9}, Case{{2, 1, 0}, 57.9}, Case{{3, 1, 0}, 68.7}, Case{{0, 0, 2}, 10.4},
                        Case{{0, 3, 3}, 90.0}, Case{{0, 2, 0}, 27.7}}) {
    CHECK(mapa_bandwidth(c.links) == Approx(c.wanted).margin(0.06));
  }
  CHECK(mapa_bandwidth({1, 0, 5}) == 1);  // the fit gives -3.3
  CHECK(mapa_bandwidth({0, 1, 1}) == 1);  // one link more than {0, 0, 2}, and less: it is not monotone
}

TEST_CASE("scores are those of the best of all rings, for every set of five machines, and of drawn ones") {
  std::vector<Topology> machines = built_in_machines();
  for (std::uint64_t seed = 0; seed < 8; ++seed) machines.push_back(drawn_machine(seed, 8));
  for (const Topology& machine : machines) {
    const Scores scores(machine);
    CountedRandom random(1, Stream::kSimulation, 8);
    int looked_at = 0;
    for (DeviceSet set = 1; set <= machine.all(); ++set) {
      CHECK(scores.within(set) == oracle_within(machine, set));
      const bool looks = machine.size() <= 8 || (size_of(set) <= 6 && random.below(64) == 0) || random.below(4096) == 0;
      if (size_of(set) < 2 || size_of(set) > kMostRequested || !looks) continue;
      CAPTURE(machine.name(), set);
      ++looked_at;
      REQUIRE(scores.mapa(set) == Approx(oracle_mapa(machine, set)));
      REQUIRE(scores.total(set) == Approx(oracle_total(machine, set)));
      REQUIRE(scores.rings(set) == oracle_rings(machine, set));
    }
    CHECK(looked_at >= std::min(200, static_cast<int>(machine.all()) - machine.size()));
  }
}

TEST_CASE("no NVLink is in two rings") {
  // A square whose sides have three links, one, three and one: each corner has four, enough for two rings.
  Topology machine("square", std::vector<Accelerator>(4));
  for (int i = 0; i < 4; ++i) machine.connect(i, (i + 1) % 4, {PathKind::kNvlink, i % 2 == 0 ? 3 : 1});
  CHECK(DisjointRings(machine).most(machine.all()) == 1);
  CHECK(Scores(machine).rings(machine.all()) == machine.nvlink);
}

TEST_CASE("rings of a switch are as many as a GPU has links, however many GPUs there are") {
  Topology machine("switch", std::vector<Accelerator>(8));
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) machine.connect(a, b, {PathKind::kNvlink, 12});
  }
  const Scores scores(machine);
  for (int size = 2; size <= 8; ++size) CHECK(scores.rings(lowest(machine.all(), size)) == 12 * machine.nvlink);
}

TEST_CASE("numbering the devices otherwise changes no score") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Topology machine = seed < 2 ? built_in_machines()[seed] : drawn_machine(seed, 8);
    std::vector<int> order(8);
    std::iota(order.begin(), order.end(), 0);
    CountedRandom random(seed, Stream::kSimulation, 9);
    for (std::size_t i = 7; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    const Scores scores(machine), others(relabelled(machine, order));
    for (DeviceSet set = 1; set <= machine.all(); ++set) {
      const DeviceSet other = relabelled(set, order);
      CAPTURE(seed, set);
      REQUIRE(scores.mapa(set) == others.mapa(other));
      REQUIRE(scores.total(set) == others.total(other));
      REQUIRE(scores.rings(set) == others.rings(other));
      REQUIRE(scores.within(set) == others.within(other));
    }
  }
}

TEST_CASE("a link more lowers the bandwidth of no set's rings") {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Topology machine = seed < 2 ? built_in_machines()[seed] : drawn_machine(seed, 8);
    const Scores before(machine);
    for (int a = 0; a < 8; ++a) {
      for (int b = 0; b < a; ++b) {
        Topology upgraded = machine;
        upgraded.connect(a, b, {PathKind::kNvlink, machine.link(a, b).lanes + 1});
        const Scores after(upgraded);
        for (DeviceSet set = 1; set <= machine.all(); ++set) {
          CAPTURE(seed, a, b, set);
          REQUIRE(after.rings(set) >= before.rings(set));
          better += after.rings(set) > before.rings(set) ? 1 : 0;
        }
      }
    }
  }
  CHECK(better > 1000);
}
