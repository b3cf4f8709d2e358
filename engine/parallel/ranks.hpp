#pragma once
/// The ranks of a device behind the first: sends them requests, and receives their answers.

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/parallel/member.hpp"

namespace hfta::engine {

using Members = std::vector<std::unique_ptr<Member>>;

/// If anything fails, at any rank, all members are ended, and the device is lost: the call throws what tells most of
/// why, and every later call throws Error{kDevice}. Error{kMemory} and Error{kStorage} become Error{kDevice}, as
/// nothing that could be done about them helps a lost device. Requests are those of
/// engine/parallel/requests.hpp. Ranks count from 0; members are those from 1 on.
class Ranks {
 public:
  /// Throws if a rank's answer is wrong.
  using LookAt = std::function<void(int rank, const nlohmann::json& answer)>;
  using RequestOf = std::function<nlohmann::json(int rank)>;

  /// `start`: starts `count` - 1 members. `label`: the device's, for messages.
  Ranks(std::function<Members()> start, int count, std::string label)
      : start_(std::move(start)), count_(count), label_(std::move(label)) {}

  [[nodiscard]] int count() const { return count_; }
  /// Starts the members, unless they have been.
  void start();
  /// Sends each member its request, does rank 0's `work` meanwhile, and looks at each answer when it has come.
  void together(const RequestOf& request, const std::function<void()>& work, const LookAt& look = {});
  /// Sends all members the same request.
  void together(const nlohmann::json& request, const std::function<void()>& work, const LookAt& look = {});
  /// Sends all members a request without work for rank 0. Does nothing after a loss; the next call tells of a failure.
  void forget(const nlohmann::json& request) noexcept;
  /// Has one member do something, and looks at its answer. Throws its Error{kStorage}, with nothing lost, where it goes
  /// on after that (engine/parallel/requests.hpp).
  void ask(int rank, const nlohmann::json& request, const LookAt& look = {});
  /// Does `work`, which may call the functions below.
  void guarded(const std::function<void()>& work);
  /// Throws if the device is lost.
  void check_whole() const;

  // ---- Within guarded() ----

  void send(int rank, const nlohmann::json& request);
  /// The answer to the rank's earliest request that was not received yet. Throws the answer if it is an error.
  [[nodiscard]] nlohmann::json receive(int rank);
  [[nodiscard]] bool answers_within(int rank, std::chrono::milliseconds time);
  /// Whether all members are alive, for any thread; throws if one is not.
  [[nodiscard]] bool all_alive() const { return ended_rank() == 0; }
  void check_alive() const;

 private:
  [[nodiscard]] Channel& channel(int rank) const { return members_[static_cast<std::size_t>(rank) - 1]->channel(); }
  /// The rank's answer, even if it is an error.
  [[nodiscard]] nlohmann::json answer_of(int rank);
  /// A rank whose member has ended; 0: none has.
  [[nodiscard]] int ended_rank() const;
  [[noreturn]] void lose(const std::exception& error);
  /// The reason that members give; "": they know of none that tells more than what was received.
  [[nodiscard]] std::string reason_of_members();

  std::function<Members()> start_;  ///< Null once members were started.
  int count_;
  Members members_;
  std::string label_;
  int failed_ = 0;    ///< The member whose error was received; 0: none yet.
  std::string lost_;  ///< Why the device is lost; "": it is not.
};

}  // namespace hfta::engine
