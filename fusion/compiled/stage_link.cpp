#include "fusion/compiled/stage_link.hpp"

#include <ATen/ATen.h>

#include <cstring>

#include "fusion/compiled/views.hpp"

namespace hfta::fusion {
namespace {

std::size_t bytes_of(const std::vector<cpu::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const cpu::Tensor& tensor : tensors) bytes += static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype));
  return bytes;
}

// Row-major, one behind another.
void pack(const std::vector<cpu::Tensor>& tensors, const StageLink::Run& run, std::byte* to) {
  for (const cpu::Tensor& tensor : tensors) {
    const at::Tensor all = view_of(tensor, run.buffers);
    at::from_blob(to, all.sizes(), all.options()).copy_(all);
    to += all.numel() * all.element_size();
  }
}

void unpack(const std::byte* from, const std::vector<cpu::Tensor>& tensors, const StageLink::Run& run) {
  for (const cpu::Tensor& tensor : tensors) {
    const at::Tensor all = view_of(tensor, run.buffers);
    std::memcpy(all.data_ptr(), from, all.nbytes());
    from += all.nbytes();
  }
}

}  // namespace

void StageLink::await(int row) const {
  if (!pipeline_.is_first()) pipeline_.group.await(pipeline_.rank_before(), row);
}

void StageLink::receive(const Run& run) const {
  if (pipeline_.is_first()) return;
  run.message.resize(bytes_of(run.stage.received));
  pipeline_.group.receive(pipeline_.rank_before(), run.row, run.message);
  unpack(run.message.data(), run.stage.received, run);
}

bool StageLink::send_at_once(const Run& run) const {
  if (pipeline_.is_last()) return true;
  run.message.resize(bytes_of(run.stage.sent));
  pack(run.stage.sent, run, run.message.data());
  return pipeline_.group.send_at_once(pipeline_.rank_behind(), run.row, run.message);
}

void StageLink::send(const Run& run) const { pipeline_.group.send(pipeline_.rank_behind(), run.row, run.message); }

BatchLoss StageLink::take_back(const Run& run) const {
  BatchLoss loss;
  run.message.resize(sizeof loss + bytes_of(run.stage.given));
  pipeline_.group.receive(pipeline_.rank_behind(), run.row, run.message);
  std::memcpy(&loss, run.message.data(), sizeof loss);
  unpack(run.message.data() + sizeof loss, run.stage.given, run);
  return loss;
}

bool StageLink::give_back_at_once(const Run& run, const BatchLoss& loss) const {
  if (pipeline_.is_first()) return true;
  run.message.resize(sizeof loss + bytes_of(run.stage.returned));
  std::memcpy(run.message.data(), &loss, sizeof loss);
  pack(run.stage.returned, run, run.message.data() + sizeof loss);
  return pipeline_.group.send_at_once(pipeline_.rank_before(), run.row, run.message);
}

void StageLink::give_back(const Run& run) const { pipeline_.group.send(pipeline_.rank_before(), run.row, run.message); }

}  // namespace hfta::fusion
