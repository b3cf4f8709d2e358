#pragma once
/// A pass over a program's plan: relus that another call does along with its own work.

#include "fusion/eager/program_plan.hpp"

namespace hfta::fusion {

/// Has instructions of the second part do the relus that they can, where slots run together: sets Instruction::relu of
/// the one and Instruction::passed of the other.
void fuse_relus(ProgramPlan& plan);

}  // namespace hfta::fusion
