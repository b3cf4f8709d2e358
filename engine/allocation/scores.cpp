#include "engine/allocation/scores.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <utility>

#include "engine/allocation/ring_packing.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kCounts = kMostRequested + 1;

/// The (doubles, singles) that the links of some paths count: bit doubles * kCounts + singles.
using LinkCounts = std::bitset<kCounts * kCounts>;

std::size_t step_of(const Link& link) { return link.lanes >= 2 ? kCounts : link.lanes == 1 ? 1 : 0; }

/// mapa_bandwidth() of the rings of each size, by what their links count.
class MapaTable {
 public:
  MapaTable() {
    for (int size = 2; size <= kMostRequested; ++size) {
      for (int doubles = 0; doubles <= size; ++doubles) {
        for (int singles = 0; doubles + singles <= size; ++singles) {
          by_size_[static_cast<std::size_t>(size)].emplace_back(
              static_cast<std::size_t>(doubles) * kCounts + static_cast<std::size_t>(singles),
              mapa_bandwidth({doubles, singles, size - doubles - singles}));
        }
      }
    }
  }
  [[nodiscard]] double best(const LinkCounts& rings, int size) const {
    double best = 0;
    for (const auto& [count, bandwidth] : by_size_[static_cast<std::size_t>(size)]) {
      if (bandwidth > best && rings.test(count)) best = bandwidth;
    }
    return best;
  }

 private:
  std::array<std::vector<std::pair<std::size_t, double>>, kCounts> by_size_;
};

// Whether `a` comes before `b`: "0 1 7" before "0 2 3".
bool lower(DeviceSet a, DeviceSet b) { return (a & lowest(a ^ b, 1)) != 0; }

/// The paths from a set's lowest accelerator through all of the set to one end.
struct Paths {
  LinkCounts counts;
  double total = -1;  // the highest bandwidth; below 0: there is no path
};

}  // namespace

// The coefficients are those of MAPA's released code (socal-ucr/MAPA, 2021).
double mapa_bandwidth(const RingLinks& links) {
  const double x = links.doubles, y = links.singles, z = links.pcie;
  const double fit = 16.39670455 * x + 4.536821878 * y + 1.55623404 * z - 20.69484581 / (x + 1) -
                     9.467461958 / (y + 1) + 7.615106783 / (z + 1) - 7.973335727 * x * y + 12.73323772 * y * z -
                     4.195655221 * x * z - 8.413419363 / (x * y + 1) + 62.85125807 / (y * z + 1) +
                     27.41832588 / (x * z + 1) - 5.114108079 * x * y * z - 46.97390071 / (x * y * z + 1);
  return std::max(1.0, fit);
}

Scores::Scores(const Topology& topology) : topology_(topology), sets_(kMostRequested + 1) {
  const std::size_t all = std::size_t{1} << topology_.size();
  mapa_.resize(all);
  total_.resize(all);
  rings_.resize(all);
  within_.resize(all);
  for (DeviceSet set = 1; set < all; ++set) {
    const DeviceSet first = lowest(set, 1), rest = set ^ first;
    const int device = std::countr_zero(first);
    within_[set] = within_[rest];
    for (int other = device + 1; other < topology_.size(); ++other) {
      if (has(rest, other)) within_[set] += topology_.link(device, other).lanes * topology_.nvlink;
    }
    if (size_of(set) <= kMostRequested) sets_[static_cast<std::size_t>(size_of(set))].push_back(set);
  }
  for (std::vector<DeviceSet>& sets : sets_) std::sort(sets.begin(), sets.end(), lower);
  find_rings();
}

// All sets at once, by dynamic programming over (set, end): a path through a set comes from one through the set without
// its end (Held and Karp, 1962). MAPA's score is not monotone, so that a path's links are kept as the set of all counts
// that occur, of which the best is taken when the ring is closed.
void Scores::find_rings() {
  const int devices = topology_.size();
  const MapaTable mapa;
  const DisjointRings disjoint(topology_);
  std::vector<std::array<Paths, Topology::kMostDevices>> paths(mapa_.size());
  for (DeviceSet set = 1; set < paths.size(); ++set) {
    if (size_of(set) > kMostRequested) continue;
    const int start = std::countr_zero(set);
    if (size_of(set) == 1) {
      paths[set][static_cast<std::size_t>(start)] = {LinkCounts(1), 0};
      continue;
    }
    LinkCounts rings;
    for (int end = start + 1; end < devices; ++end) {
      if (!has(set, end)) continue;
      Paths& here = paths[set][static_cast<std::size_t>(end)];
      for (int before = start; before < devices; ++before) {
        const Paths& shorter = paths[set ^ (1U << end)][static_cast<std::size_t>(before)];
        if (before == end || !has(set, before) || shorter.total < 0) continue;
        here.counts |= shorter.counts << step_of(topology_.link(before, end));
        here.total = std::max(here.total, shorter.total + topology_.bandwidth(before, end));
      }
      if (here.total < 0) continue;
      rings |= here.counts << step_of(topology_.link(end, start));
      total_[set] = std::max(total_[set], here.total + topology_.bandwidth(end, start));
    }
    mapa_[set] = mapa.best(rings, size_of(set));
    const int nvlink_rings = disjoint.most(set);
    rings_[set] = nvlink_rings > 0 ? nvlink_rings * topology_.nvlink : topology_.pcie;
  }
}

}  // namespace hfta::engine
