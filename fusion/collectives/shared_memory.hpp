#pragma once
/// Collectives of processes of one machine, or of threads of one process, over shared memory.

#include <cstddef>
#include <memory>
#include <vector>

#include "base/folder.hpp"
#include "fusion/collectives.hpp"

namespace hfta::fusion {

/// Makes the shared memory of a new group, and a seat for each rank in order. A seat is a descriptor of that memory,
/// closed on exec; a process that is started with it takes the seat. The rank is alive as long as anybody has its seat
/// open: whoever passes one on closes their own. `window`: bytes that each rank has in the memory, and each
/// lane of messages; calls with more go piece by piece. What was never written takes no memory. Throws
/// Error{kDevice} where the system refuses.
[[nodiscard]] std::vector<Descriptor> make_seats(int ranks, std::size_t window = std::size_t{1} << 20);

/// The rank whose seat that is. Throws Error{kDevice} if the seat is of no group that has that rank.
[[nodiscard]] std::unique_ptr<Collectives> take_seat(Descriptor seat, int rank);

/// All ranks of a new group within this process, for a thread each.
[[nodiscard]] std::vector<std::unique_ptr<Collectives>> ranks_in_process(int ranks,
                                                                         std::size_t window = std::size_t{1} << 20);

}  // namespace hfta::fusion
