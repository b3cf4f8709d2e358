#pragma once
/// The loop of a rank behind the first, which does what the first says (engine/parallel/parallel_trainer.hpp).

#include <exception>

#include "base/faults.hpp"
#include "engine/parallel/channel.hpp"
#include "engine/rank_trainer.hpp"

namespace hfta::engine {

/// Does what comes over the channel with the trainer and its one array, and answers each request, until the other end
/// is closed or an answer is an error (but see goes_on): the others may wait for this rank in their group, and learn
/// only from its end that it does not come. A request is an object that has `call`, and what that takes:
///
///     exchange  partition, params, width, choices (RankTrainer::choose of rank 0)
///     times     as exchange, batches: whether parts of a batch are to be timed
///     try       as exchange, division (division_json), steps
///     open      as exchange
///     close
///     admit     slot, number, params
///     insert    slot, number, params, state (binary)
///     extract   slot
///     gather    slot: its part in an extract() that takes all ranks; rank 0 has the state
///     test      slot
///     clear     slot
///     resize    width
///     run       the rest of an epoch, unless there is a pause: rank 0's where all ranks have all slots, else the
///               next request
///     pause     nothing
///
/// The answer is an object: of times `times`, of extract `state`, of test `metrics`, of run `reports` where the epoch
/// ended (engine/parallel/requests.hpp); as send_error sends it where an error was thrown; else empty. Place of Faults:
/// "rank-run", before each epoch.
void serve(Channel& channel, RankTrainer& trainer, const Faults& faults);

/// Sends {error: its message, kind: the number of its ErrorKind}.
void send_error(Channel& channel, const std::exception& error);

}  // namespace hfta::engine
