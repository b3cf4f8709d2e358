#include "engine/cli/event_lines.hpp"

#include "engine/cli/output.hpp"

namespace hfta::engine {

void EventLines::take(const Event& event) {
  if (mode_ == OutputMode::kEvents) print(event_json(event) + "\n");
  if (next_ != nullptr) next_->take(event);
}

}  // namespace hfta::engine
