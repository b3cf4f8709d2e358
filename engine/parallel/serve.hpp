#pragma once
/// What a rank behind the first does: as the first says (engine/parallel/parallel_trainer.hpp).

#include <exception>

#include "base/faults.hpp"
#include "engine/parallel/channel.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// Does what comes over the channel with the trainer and its one array, and answers each request, until the other end
/// is closed. A request is an object that has `call`, and what that takes:
///
///     open    partition, params, width, choices (ArrayInfo::choices_json of rank 0's array)
///     close
///     admit   slot, number, params
///     insert  slot, number, params, state (binary)
///     clear   slot
///     resize  width
///     run     the rest of an epoch, unless rank 0 pauses
///
/// The answer is an object: with `losses`, each report's train_loss in order of slot, where an epoch ended; as
/// send_error sends it where an error was thrown; else empty. Place of Faults: "rank-run", before each epoch.
void serve(Channel& channel, Trainer& trainer, const Faults& faults);

/// Sends {error: its message, kind: the number of its ErrorKind}.
void send_error(Channel& channel, const std::exception& error);

}  // namespace hfta::engine
