#include "engine/simulate/simulated_time.hpp"

#include <utility>

namespace hfta::engine {

Clock::Utc SimulatedTime::utc() const {
  constexpr std::chrono::sys_days kOrigin = std::chrono::year{2000} / 1 / 1;
  return Utc(kOrigin) + std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double>(now_));
}

void SimulatedTime::start(std::size_t worker, std::function<void()> job) {
  Job& place = jobs_.at(worker);
  place = {true, 0, 0, nullptr};
  current_ = &place;
  try {
    job();
  } catch (...) {
    place.error = std::current_exception();
  }
  current_ = nullptr;
  place.ends = now_ + place.seconds;
}

DeviceWorkers::Ended SimulatedTime::wait() {
  std::size_t first = jobs_.size();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].busy && (first == jobs_.size() || jobs_[i].ends < jobs_[first].ends)) first = i;
  }
  Job& job = jobs_.at(first);
  now_ = job.ends;
  job.busy = false;
  return {first, job.seconds, std::exchange(job.error, nullptr)};
}

void SimulatedTime::spend(double seconds) { (current_ != nullptr ? current_->seconds : now_) += seconds; }

}  // namespace hfta::engine
