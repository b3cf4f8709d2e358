#include "engine/parallel/ranks.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// A member that has met an error answers by then.
constexpr std::chrono::milliseconds kPatience(2000);

Error error_of(const json& answer, int rank) {
  const int kind = answer.at("kind").get<int>();
  const bool known = kind >= 0 && kind <= static_cast<int>(ErrorKind::kBusy);
  return {known ? static_cast<ErrorKind>(kind) : ErrorKind::kInternal,
          fmt::format("rank {}: {}", rank, answer.at("error").get<std::string>())};
}

}  // namespace

void Ranks::start() {
  if (start_ != nullptr) members_ = std::exchange(start_, nullptr)();
}

void Ranks::guarded(const std::function<void()>& work) {
  if (!lost_.empty()) throw Error(ErrorKind::kDevice, fmt::format("{} is lost: {}", label_, lost_));
  try {
    work();
  } catch (const std::exception& error) {
    lose(error);
  }
}

void Ranks::send(int rank, const json& request) { channel(rank).send(request); }

json Ranks::hear(int rank) {
  std::optional<json> answer = channel(rank).receive();
  if (!answer) throw Error(ErrorKind::kDevice, fmt::format("rank {} has ended", rank));
  if (answer->contains("error")) throw error_of(*answer, rank);
  return *std::move(answer);
}

bool Ranks::answers_within(int rank, std::chrono::milliseconds time) { return channel(rank).comes_within(time); }

void Ranks::together(const RequestOf& request, const std::function<void()>& work, const LookAt& look) {
  guarded([&] {
    for (int r = 1; r < count_; ++r) send(r, request(r));
    work();
    for (int r = 1; r < count_; ++r) {
      const json answer = hear(r);
      if (look) look(r, answer);
    }
  });
}

void Ranks::together(const json& request, const std::function<void()>& work, const LookAt& look) {
  together([&](int) { return request; }, work, look);
}

void Ranks::forget(const json& request) noexcept try {
  if (lost_.empty()) together(request, [] {});
} catch (...) {  // the next call says so
}

json Ranks::ask(int rank, const json& request) {
  json answer;
  guarded([&] {
    send(rank, request);
    answer = hear(rank);
  });
  return answer;
}

// Of those that have ended, or have met an error of their own; where one has ended, the others' errors are of that.
std::string Ranks::reason_of_members() {
  std::string ended, failed;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    Channel& channel = members_[r]->channel();
    if (!channel.comes_within(kPatience)) continue;
    const std::optional<json> answer = channel.receive();
    if (answer && answer->contains("error") && failed.empty()) {
      failed = error_of(*answer, static_cast<int>(r) + 1).what();
    }
    if (!answer && ended.empty()) ended = fmt::format("rank {}: {}", r + 1, members_[r]->ended());
  }
  return ended.empty() ? failed : ended;
}

void Ranks::lose(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  const ErrorKind kind = ours == nullptr ? ErrorKind::kInternal : ours->kind();
  lost_ = error.what();
  if (kind == ErrorKind::kDevice) {
    if (const std::string reason = reason_of_members(); !reason.empty()) lost_ = reason;
  }
  members_.clear();
  throw Error(kind, fmt::format("{}: {}", label_, lost_));
}

}  // namespace hfta::engine
