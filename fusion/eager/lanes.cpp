#include "fusion/eager/lanes.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace hfta::fusion {
namespace {

// Each holds its own memory for what is computed on the way, so there are not too many.
constexpr int kMostLanes = 8;

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// `later` waits, on the device, for what `earlier` was given so far.
void put_behind(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

Lane::Lane(const c10::Device& device, GraphBackend* graphs) {
  if (graphs != nullptr) graphs_ = graphs->open_lane(device);
  if (graphs_ != nullptr) stream_ = graphs_->stream();
  if (!stream_ && !device.is_cpu()) {
    stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, false);
  }
}

Lane::Turn::Turn(const Lane& lane) {
  if (!lane.stream_) return;
  const c10::Stream before = current_stream(lane.stream_->device());
  if (before == *lane.stream_) return;
  before_ = before;
  lane_ = lane.stream_;
  put_behind(before, *lane_);
  guard_.emplace(*lane_);
}

Lane::Turn::~Turn() {
  if (!before_) return;
  guard_.reset();
  try {
    put_behind(*lane_, *before_);
  } catch (...) {  // the device is lost: whoever asks it next is told
  }
}

Lanes::Lanes(const c10::Device& device, int chunks, GraphBackend* graphs) : device_(device) {
  const bool costs = !device.is_cpu() || graphs != nullptr;
  const int count = costs ? std::min(chunks, kMostLanes) : chunks;
  for (int i = 0; i < std::max(count, 1); ++i) lanes_.emplace_back(device, graphs);
}

void Lanes::fork() const {
  if (device_.is_cpu()) return;
  const c10::Stream here = current_stream(device_);
  c10::Event event(device_.type());
  event.record(here);
  for (const Lane& lane : lanes_) event.block(*lane.stream());
}

void Lanes::join() const {
  if (device_.is_cpu()) return;
  const c10::Stream here = current_stream(device_);
  for (const Lane& lane : lanes_) put_behind(*lane.stream(), here);
}

c10::OptionalStreamGuard Lanes::on(const Lane& lane) { return c10::OptionalStreamGuard(lane.stream()); }

}  // namespace hfta::fusion
