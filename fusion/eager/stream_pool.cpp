#include "fusion/eager/stream_pool.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace hfta::fusion {
namespace {

// Each holds its own memory for what is computed on the way, so there are not too many.
constexpr int kMostStreams = 8;

// `later` waits, on the device, for what `earlier` was given so far.
void put_behind(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

PooledStream::PooledStream(const c10::Device& device, StepGraphBackend* graphs) {
  if (graphs != nullptr) graphs_ = graphs->open_recorder(device);
  if (graphs_ != nullptr) stream_ = graphs_->stream();
  if (!stream_ && !device.is_cpu()) {
    stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, false);
  }
}

PooledStream::Scope::Scope(const PooledStream& stream) {
  if (!stream.stream_) return;
  const c10::Stream before = current_stream(stream.stream_->device());
  if (before == *stream.stream_) return;
  before_ = before;
  stream_ = stream.stream_;
  put_behind(before, *stream_);
  guard_.emplace(*stream_);
}

PooledStream::Scope::~Scope() {
  if (!before_) return;
  guard_.reset();
  try {
    put_behind(*stream_, *before_);
  } catch (...) {  // the device is lost: whoever asks it next is told
  }
}

StreamPool::StreamPool(const c10::Device& device, int chunks, StepGraphBackend* graphs) : device_(device) {
  const bool costs = !device.is_cpu() || graphs != nullptr;
  const int count = costs ? std::min(chunks, kMostStreams) : chunks;
  for (int i = 0; i < std::max(count, 1); ++i) streams_.emplace_back(device, graphs);
}

void StreamPool::fork() const {
  if (device_.is_cpu()) return;
  const c10::Stream here = current_stream(device_);
  c10::Event event(device_.type());
  event.record(here);
  for (const PooledStream& stream : streams_) event.block(*stream.stream());
}

void StreamPool::join() const {
  if (device_.is_cpu()) return;
  const c10::Stream here = current_stream(device_);
  for (const PooledStream& stream : streams_) put_behind(*stream.stream(), here);
}

c10::OptionalStreamGuard StreamPool::on(const PooledStream& stream) {
  return c10::OptionalStreamGuard(stream.stream());
}

}  // namespace hfta::fusion
