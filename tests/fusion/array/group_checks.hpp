#pragma once
// What holds of the ranks of a group, however they share an array.

#include <string>
#include <vector>

#include "../collectives/as_ranks.hpp"
#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "models.hpp"
#include "setting.hpp"

namespace hfta::fusion::testing {

/// Two ranks pause together, wherever rank 0 asks for it, and go on to the bits of a run without a pause.
inline void check_pauses(const Setting& s, const Lowering& lowering, int width, Shares shares) {
  const auto states_of = [&](int pause_at) {
    std::vector<std::vector<StateBytes>> states(2);
    const auto thrown = as_ranks(2, [&](Collectives& group) {
      Array array(s.model.graph, s.model.recipe,
                  {.lowering = lowering, .width = width, .study_seed = 5, .group = &group, .shares = shares});
      for (int b = 0; b < width; ++b) array.admit(b, trial(s.model, b));
      const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
      int asked = 0;
      const auto pause = [&] { return group.rank() == 0 && ++asked == pause_at; };
      int runs = 1;
      while (!epochs.run(array, pause)) ++runs;
      want(runs == (pause_at > 0 ? 2 : 1), "a pause at every rank, or at none");
      for (int b = 0; b < width; ++b) states[static_cast<std::size_t>(group.rank())].push_back(array.extract(b));
    });
    for (const std::string& error : thrown) CHECK(error.empty());
    CHECK((states[0] == states[1]));
    return states[0];
  };
  const auto whole = states_of(0);
  for (const int pause_at : {1, 3, 6}) CHECK((states_of(pause_at) == whole));  // 6: behind the last step of some
}

/// Of three ranks one fails between two epochs; the others learn it in theirs.
inline void check_failure(const Setting& s, int width, Shares shares, int failing) {
  const auto thrown = as_ranks(3, [&](Collectives& group) {
    Array array(s.model.graph, s.model.recipe,
                {.lowering = chunked(kCompiled), .width = width, .study_seed = 5, .group = &group, .shares = shares});
    for (int b = 0; b < width; ++b) array.admit(b, trial(s.model, b));
    const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
    static_cast<void>(epochs.run(array));
    if (group.rank() == failing) throw Error(ErrorKind::kMemory, "no room");
    static_cast<void>(epochs.run(array));
  });
  for (int r = 0; r < 3; ++r) {
    const std::string wanted = "ranks: rank " + std::to_string(failing) + " of 3 has ended";
    CHECK_THAT(thrown[static_cast<std::size_t>(r)], Catch::StartsWith(r == failing ? "no room" : wanted));
  }
}

}  // namespace hfta::fusion::testing
