#pragma once
/// Events on standard output: what --json prints.

#include "engine/events/event.hpp"

namespace hfta::engine {

/// What a run prints to standard output.
enum class OutputMode {
  kReport,  ///< The report, when the study is finished.
  kEvents,  ///< Every event, one line of JSON each.
};

/// Prints events where that is asked for, then passes them on to `next`. A reader that has left is no error.
class EventLines final : public EventSink {
 public:
  /// `next` must outlive this; null: nobody.
  explicit EventLines(OutputMode mode, EventSink* next = nullptr) : mode_(mode), next_(next) {}
  void take(const Event& event) override;

 private:
  OutputMode mode_;
  EventSink* next_;
};

}  // namespace hfta::engine
