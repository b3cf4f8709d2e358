#pragma once
/// A plan for people and for programs. All times are simulated, and say so.

#include <string>

#include "engine/planner/search.hpp"

namespace hfta::engine::planner {

/// The plan beside one action for all: seconds of a step and what each device holds; how often each action occurs.
[[nodiscard]] std::string plan_table(const Problem& problem, const Found& found);

/// plan.json, see docs/devices.md: what was chosen for each op, what it comes to, and the order of the tasks on each
/// device. Ends with a newline.
[[nodiscard]] std::string plan_json(const Problem& problem, const Found& found, const Effort& effort);

/// The step as a Chrome trace (chrome://tracing, Perfetto): a row for each device, each pair of devices between which
/// something travels, and collectives.
[[nodiscard]] std::string plan_trace(const Problem& problem, const Choices& choices);

}  // namespace hfta::engine::planner
