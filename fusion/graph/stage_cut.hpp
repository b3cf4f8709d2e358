#pragma once
/// Where a graph is cut into the stages of a pipeline.

#include <vector>

namespace hfta::fusion {

/// Which stage each weight lies in. A call runs in the first stage that has all it reads, so that weights say where a
/// graph is cut.
struct StageCut {
  static constexpr int kEvery = -1;
  int stages = 1;
  /// Stage of each Graph::weights, from 0; kEvery: all that read it have it. Calls that depend on none that lies in a
  /// stage are run by every stage that reads what they give.
  std::vector<int> of_weight;
};

}  // namespace hfta::fusion
