#include "engine/driver/study/lease.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

using storage::HolderMark;
using storage::HolderMarks;
using storage::Lease;

constexpr int kLooksPerBeat = 10;

// Returns when the study may be taken from the holder of `lease`; throws if that one lives. `place` is the study's, for
// messages.
void await_end(const Lease& lease, HolderMarks& marks, const std::string& place, const Clock& clock,
               const Heartbeat& heartbeat) {
  const double began = clock.seconds();
  const std::optional<HolderMarks::Sight> first = marks.look(lease);
  std::optional<HolderMarks::Sight> now = first;
  for (double looked = began; now && !now->dead; now = marks.look(lease)) {
    if (now->beat != first->beat) {
      throw Error(ErrorKind::kBusy,
                  fmt::format("{}: the study is being run by {}; stop that one first", place, printable(lease.holder)));
    }
    // Time is taken before each look: however long this process was kept from running, it has looked since.
    if (looked - began >= heartbeat.period * heartbeat.beats) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(heartbeat.period / kLooksPerBeat));
    looked = clock.seconds();
  }
}

}  // namespace

StudyLease::StudyLease(storage::Store& store, const std::string& study, const Clock& clock,
                       const Heartbeat& heartbeat) {
  const std::unique_ptr<HolderMarks> marks = store.marks(study);
  for (;;) {
    const std::optional<Lease> seen = store.lease(study);
    if (seen) await_end(*seen, *marks, store.states(study).folder.string(), clock, heartbeat);
    // The processes that left these marks looked at the store before, and so cannot win once this attempt has. A
    // later attempt has a mark of another name.
    const std::vector<std::string> left = marks->names();
    std::unique_ptr<HolderMark> mark = marks->leave(heartbeat.period);
    const std::optional<Lease> taken = store.take_lease(study, seen, mark->token(), mark->holder());
    if (!taken) continue;
    store.hold(study, *taken);
    mark_ = std::move(mark);
    for (const std::string& name : left) marks->remove(name);
    return;
  }
}

}  // namespace hfta::engine
