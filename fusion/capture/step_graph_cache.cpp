#include "fusion/capture/step_graph_cache.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace hfta::fusion {
namespace {

constexpr std::size_t kMostKnown = 8;  // keys of a chunk; the least recently used one goes
constexpr int kWarm = 2;               // steps op by op in front of a capture
constexpr int kMostFailures = 2;       // captures that are tried

bool same_place(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (!a.defined() || !b.defined()) return false;
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace

bool StepKey::same_as(const StepKey& other) const {
  return samples == other.samples && part_of == other.part_of &&
         std::equal(memory.begin(), memory.end(), other.memory.begin(), other.memory.end(), same_place);
}

StepGraphCache::StepGraphCache(StepGraphRecorder* lane, std::string why_not)
    : lane_(lane), why_not_(std::move(why_not)) {
  if (lane_ != nullptr) counts_.why_eager = why_not_;
}

StepGraphCache::Known& StepGraphCache::known(const StepKey& key) {
  const auto at = std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.key.same_as(key); });
  if (at != known_.end()) return *at;
  if (known_.size() == kMostKnown) {
    known_.erase(
        std::min_element(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.used < b.used; }));
  }
  known_.push_back({key});
  return known_.back();
}

void StepGraphCache::run(const StepKey& key, const std::string& why_not, const std::function<void()>& step) {
  if (lane_ == nullptr || !why_not_.empty() || !why_not.empty()) return run_eagerly(step);
  Known& here = known(key);
  here.used = ++clock_;
  const auto thread = std::this_thread::get_id();
  const bool known_here = std::find(here.threads.begin(), here.threads.end(), thread) != here.threads.end();
  if (here.graph == nullptr && known_here && here.warm >= kWarm && here.failed < kMostFailures) capture(here, step);
  if (here.graph != nullptr) {
    ++counts_.replayed;
    return here.graph->replay();
  }
  ++here.warm;
  if (!known_here) here.threads.push_back(thread);
  run_eagerly(step);
}

void StepGraphCache::run_eagerly(const std::function<void()>& step) {
  ++counts_.eager;
  if (lane_ == nullptr) return step();
  lane_->run(step);
}

// Whatever goes wrong, the step can still be made op by op, and says so itself if it is the one to blame.
void StepGraphCache::capture(Known& here, const std::function<void()>& step) {
  try {
    here.graph = lane_->capture(step);
    ++counts_.captured;
  } catch (const c10::Error& error) {
    counts_.why_eager = first_line(error.what_without_backtrace());
    ++here.failed;
  } catch (const std::exception& error) {
    counts_.why_eager = first_line(error.what());
    ++here.failed;
  }
}

}  // namespace hfta::fusion
