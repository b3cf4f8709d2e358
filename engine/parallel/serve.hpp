#pragma once
/// The loop of a rank behind the first, which does what the first says (engine/parallel/parallel_trainer.hpp).

#include <exception>

#include "base/faults.hpp"
#include "engine/parallel/channel.hpp"
#include "engine/rank_trainer.hpp"

namespace hfta::engine {

/// Does what comes over the channel with the trainer and its one array, and answers each request, until the other end
/// is closed or an answer is an error (but see goes_on): the others may wait for this rank in their group, and learn
/// only from its end that it does not come. What requests take is in engine/parallel/requests.hpp; they have a rank do:
///
///     exchange  recall the choices, then RankTrainer::exchange_seconds
///     times     recall the choices, then RankTrainer::rank_times
///     try       recall the choices, then RankTrainer::tried_seconds
///     open      recall the choices, then open its array, in place of the one that it has
///     close     close its array
///     admit, insert, extract, test, clear, resize: the call of that name of its array
///     gather    its part in an extract() that takes all ranks; rank 0 has the state
///     run       the rest of an epoch, unless there is a pause: rank 0's where all ranks have all slots, else the
///               next request
///     pause     nothing: that it comes is what `run` looks for
///
/// Place of Faults: "rank-run", before each epoch.
void serve(Channel& channel, RankTrainer& trainer, const Faults& faults);

/// Sends an ErrorAnswer.
void send_error(Channel& channel, const std::exception& error);

}  // namespace hfta::engine
