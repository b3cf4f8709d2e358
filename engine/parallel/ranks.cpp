#include "engine/parallel/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "engine/parallel/requests.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// Time within which members that have met errors answer.
constexpr std::chrono::milliseconds kPatience(2000);

// The remedy that follows the message of an error of that kind.
const char* advice(ErrorKind kind) {
  return kind == ErrorKind::kMemory ? "; a smaller array.width needs less memory" : "";
}

Error error_of(const json& answer, int rank) {
  const auto [error, kind] = answer.get<ErrorAnswer>();
  return {kind, fmt::format("rank {}: {}{}", rank, error, advice(kind))};
}

Error ended(int rank) { return {ErrorKind::kDevice, fmt::format("rank {} has ended", rank)}; }

}  // namespace

void Ranks::start() {
  guarded([&] {
    if (start_ != nullptr) members_ = std::exchange(start_, nullptr)();
  });
}

void Ranks::check_whole() const {
  if (!lost_.empty()) throw Error(ErrorKind::kDevice, fmt::format("{} is lost: {}", label_, lost_));
}

void Ranks::guarded(const std::function<void()>& work) {
  check_whole();
  try {
    work();
  } catch (const std::exception& error) {
    lose(error);
  }
}

void Ranks::send(int rank, const json& request) { channel(rank).send(request); }

json Ranks::answer_of(int rank) {
  std::optional<json> answer = channel(rank).receive();
  if (!answer) throw ended(rank);
  return *std::move(answer);
}

json Ranks::receive(int rank) {
  json answer = answer_of(rank);
  if (!is_error(answer)) return answer;
  failed_ = rank;
  throw error_of(answer, rank);
}

bool Ranks::answers_within(int rank, std::chrono::milliseconds time) { return channel(rank).comes_within(time); }

int Ranks::ended_rank() const {
  for (int r = 1; r < count_; ++r) {
    if (channel(r).is_closed()) return r;
  }
  return 0;
}

void Ranks::check_alive() const {
  if (const int rank = ended_rank(); rank > 0) throw ended(rank);
}

void Ranks::together(const RequestOf& request, const std::function<void()>& work, const LookAt& look) {
  guarded([&] {
    for (int r = 1; r < count_; ++r) send(r, request(r));
    work();
    for (int r = 1; r < count_; ++r) {
      const json answer = receive(r);
      if (look) look(r, answer);
    }
  });
}

void Ranks::together(const json& request, const std::function<void()>& work, const LookAt& look) {
  together([&](int) { return request; }, work, look);
}

void Ranks::forget(const json& request) noexcept try {
  if (lost_.empty()) together(request, [] {});
} catch (...) {  // the next call throws it
}

void Ranks::ask(int rank, const json& request, const LookAt& look) {
  std::optional<Error> refused;
  guarded([&] {
    send(rank, request);
    const json answer = answer_of(rank);
    if (is_error(answer)) {
      refused = error_of(answer, rank);
      if (goes_on(request, answer)) return;
      failed_ = rank;
      throw *refused;
    }
    if (look) look(rank, answer);
  });
  if (refused) throw *refused;
}

// A member's own error tells most, then how one has ended; other members' errors of the device may only follow from
// that. The member whose error was received has nothing more to tell.
std::string Ranks::reason_of_members() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto left = [&] {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()));
  };
  std::string own, end, other;
  for (int r = 1; r <= static_cast<int>(members_.size()); ++r) {
    if (r == failed_) continue;
    std::optional<json> answer = json::object();
    while (answer && !is_error(*answer) && channel(r).comes_within(left())) answer = channel(r).receive();
    if (!answer) {
      if (end.empty()) end = fmt::format("rank {}: {}", r, members_[static_cast<std::size_t>(r) - 1]->ended());
    } else if (is_error(*answer)) {
      const Error error = error_of(*answer, r);
      std::string& reason = error.kind() == ErrorKind::kDevice ? other : own;
      if (reason.empty()) reason = error.what();
    }
  }
  if (!own.empty()) return own;
  return !end.empty() || failed_ > 0 ? end : other;
}

void Ranks::lose(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  const ErrorKind kind = ours == nullptr ? ErrorKind::kInternal : ours->kind();
  lost_ = error.what();
  if (kind == ErrorKind::kDevice) {
    if (const std::string reason = reason_of_members(); !reason.empty()) lost_ = reason;
  }
  members_.clear();
  if (failed_ == 0) lost_ += advice(kind);
  const bool could_be_mended = kind == ErrorKind::kMemory || kind == ErrorKind::kStorage;
  throw Error(could_be_mended ? ErrorKind::kDevice : kind, fmt::format("{}: {}", label_, lost_));
}

}  // namespace hfta::engine
