#pragma once
/// The messages that ranks send each other, as JSON (engine/parallel/serve.hpp).

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/division/division.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

[[nodiscard]] nlohmann::json admit_request(int slot, int number, const trials::Params& params);
[[nodiscard]] nlohmann::json insert_request(int slot, int number, const trials::Params& params, const SlotState& state);

/// Whether a rank goes on serving after this answer: yes, unless it is an error. That a state does not fit is found
/// before anything is changed, and rank 0 tries another one.
[[nodiscard]] bool goes_on(const nlohmann::json& request, const nlohmann::json& answer);

/// A state as a binary value.
[[nodiscard]] nlohmann::json state_json(const SlotState& state);
[[nodiscard]] SlotState state_from(const nlohmann::json& binary);

[[nodiscard]] nlohmann::json reports_json(const std::vector<SlotReport>& reports);
[[nodiscard]] std::vector<SlotReport> reports_from(const nlohmann::json& list);

[[nodiscard]] nlohmann::json times_json(const RankTimes& times);
[[nodiscard]] RankTimes times_from(const nlohmann::json& object);

}  // namespace hfta::engine
