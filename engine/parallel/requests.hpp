#pragma once
/// The messages that ranks send each other, as JSON: a struct for each request that rank 0 makes, and for each answer.
/// engine/parallel/serve.hpp says what a request has a rank do.

#include <concepts>
#include <cstddef>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/division/division.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

// ---- Requests ----

/// An array of a partition, as rank 0 chose to run it.
struct ArrayWanted {
  std::string partition;
  trials::Params params;
  int width = 0;
  std::string choices;  ///< RankTrainer::choose of rank 0.
};
/// A trial and the slot that it is put into.
struct TrialWanted {
  int slot = 0, number = 0;
  trials::Params params;
};
struct SlotWanted {
  int slot = 0;
};
struct NothingWanted {};

struct ExchangeRequest : ArrayWanted {
  static constexpr const char* kCall = "exchange";
};
struct TimesRequest : ArrayWanted {
  static constexpr const char* kCall = "times";
  bool batches = false;  ///< Whether parts of a batch are to be timed.
};
struct TryRequest : ArrayWanted {
  static constexpr const char* kCall = "try";
  Division division = {};
  int steps = 0;
};
struct OpenRequest : ArrayWanted {
  static constexpr const char* kCall = "open";
};
struct CloseRequest : NothingWanted {
  static constexpr const char* kCall = "close";
};
struct AdmitRequest : TrialWanted {
  static constexpr const char* kCall = "admit";
};
struct InsertRequest : TrialWanted {
  static constexpr const char* kCall = "insert";
  std::span<const std::byte> state = {};  ///< Bytes of the sender's state, or of the message that this was read from.
};
struct ExtractRequest : SlotWanted {
  static constexpr const char* kCall = "extract";
};
struct GatherRequest : SlotWanted {
  static constexpr const char* kCall = "gather";
};
struct TestRequest : SlotWanted {
  static constexpr const char* kCall = "test";
};
struct ClearRequest : SlotWanted {
  static constexpr const char* kCall = "clear";
};
struct ResizeRequest {
  static constexpr const char* kCall = "resize";
  int width = 0;
};
struct RunRequest : NothingWanted {
  static constexpr const char* kCall = "run";
};
struct PauseRequest : NothingWanted {
  static constexpr const char* kCall = "pause";
};

/// What a request takes besides its call.
void write_fields(nlohmann::json& request, const ArrayWanted& fields);
void write_fields(nlohmann::json& request, const TimesRequest& fields);
void write_fields(nlohmann::json& request, const TryRequest& fields);
void write_fields(nlohmann::json& request, const TrialWanted& fields);
void write_fields(nlohmann::json& request, const InsertRequest& fields);
void write_fields(nlohmann::json& request, const SlotWanted& fields);
void write_fields(nlohmann::json& request, const ResizeRequest& fields);
void write_fields(nlohmann::json& request, const NothingWanted& fields);
/// Inverse of write_fields(). Throws nlohmann::json::exception for another form.
void read_fields(const nlohmann::json& request, ArrayWanted& fields);
void read_fields(const nlohmann::json& request, TimesRequest& fields);
void read_fields(const nlohmann::json& request, TryRequest& fields);
void read_fields(const nlohmann::json& request, TrialWanted& fields);
void read_fields(const nlohmann::json& request, InsertRequest& fields);
void read_fields(const nlohmann::json& request, SlotWanted& fields);
void read_fields(const nlohmann::json& request, ResizeRequest& fields);
void read_fields(const nlohmann::json& request, NothingWanted& fields);

template <typename T>
concept IsRequest = requires {
  { T::kCall } -> std::convertible_to<std::string>;
};

/// {call: its name, ...}: requests become messages, and messages requests, as nlohmann's JSON converts values.
template <IsRequest Request>
void to_json(nlohmann::json& message, const Request& request) {
  message = {{"call", Request::kCall}};
  write_fields(message, request);
}
template <IsRequest Request>
void from_json(const nlohmann::json& message, Request& request) {
  read_fields(message, request);
}

// ---- Answers; those of other requests are empty objects ----

struct TimesAnswer {
  RankTimes times;
};
void to_json(nlohmann::json& message, const TimesAnswer& answer);
void from_json(const nlohmann::json& message, TimesAnswer& answer);

/// Of extract.
struct StateAnswer {
  SlotState state;
};
void to_json(nlohmann::json& message, const StateAnswer& answer);
void from_json(const nlohmann::json& message, StateAnswer& answer);

/// Of test.
struct MetricsAnswer {
  std::map<std::string, double> metrics;
};
void to_json(nlohmann::json& message, const MetricsAnswer& answer);
void from_json(const nlohmann::json& message, MetricsAnswer& answer);

/// Of run.
struct RunAnswer {
  std::optional<std::vector<SlotReport>> reports;  ///< Set where the epoch ended.
};
void to_json(nlohmann::json& message, const RunAnswer& answer);
void from_json(const nlohmann::json& message, RunAnswer& answer);

/// Of any request: an error was thrown.
struct ErrorAnswer {
  std::string error;  ///< Its message.
  ErrorKind kind = ErrorKind::kInternal;
};
void to_json(nlohmann::json& message, const ErrorAnswer& answer);
/// A kind that is not known is kInternal.
void from_json(const nlohmann::json& message, ErrorAnswer& answer);

[[nodiscard]] ErrorAnswer error_answer(const std::exception& error);
[[nodiscard]] bool is_error(const nlohmann::json& answer);
/// Whether a rank goes on serving after this answer: yes, unless it is an error. That a state does not fit is found
/// before anything is changed, and rank 0 tries another one.
[[nodiscard]] bool goes_on(const nlohmann::json& request, const nlohmann::json& answer);

}  // namespace hfta::engine
