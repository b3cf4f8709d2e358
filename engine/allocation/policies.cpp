#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {

const std::vector<PolicyKind>& policies() {
  static const std::vector<PolicyKind> all = {
      {"baseline", "the free ones with the lowest numbers", make_baseline},
      {"topo-aware", "one NUMA node where that is possible", make_topology_aware},
      {"greedy", "the most bandwidth in all", make_greedy},
      {"preserve", "MAPA's: bandwidth for arrays that need it, the others so as to leave it", make_preserve},
      {"best-effort", "NVIDIA's: the best set of the best division of all free ones", make_best_effort},
      {"lookahead", "ours: what slows down this array and those behind it least", make_lookahead},
  };
  return all;
}

}  // namespace hfta::engine
