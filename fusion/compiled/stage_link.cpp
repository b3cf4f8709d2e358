#include "fusion/compiled/stage_link.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "fusion/compiled/views.hpp"
#include "fusion/optimizers/rules.hpp"

namespace hfta::fusion {
namespace {

std::size_t bytes_of(const std::vector<cpu::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const cpu::Tensor& tensor : tensors) bytes += static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype));
  return bytes;
}

// Copies the tensors to `to`, row-major, one behind another.
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
  const std::span<std::byte> squares = std::as_writable_bytes(run.squares);
  run.message.resize(sizeof loss + squares.size() + bytes_of(run.stage.given));
  pipeline_.group.receive(pipeline_.rank_behind(), run.row, run.message);
  const std::byte* from = run.message.data();
  std::memcpy(&loss, from, sizeof loss);
  std::copy_n(from += sizeof loss, squares.size(), squares.begin());
  unpack(from + squares.size(), run.stage.given, run);
  return loss;
}

bool StageLink::give_back_at_once(const Run& run, const BatchLoss& loss) const {
  if (pipeline_.is_first()) return true;
  const std::span<const std::byte> squares = std::as_bytes(run.squares);
  run.message.resize(sizeof loss + squares.size() + bytes_of(run.stage.returned));
  std::byte* to = run.message.data();
  std::memcpy(to, &loss, sizeof loss);
  to = std::copy(squares.begin(), squares.end(), to + sizeof loss);
  pack(run.stage.returned, run, to);
  return pipeline_.group.send_at_once(pipeline_.rank_before(), run.row, run.message);
}

void StageLink::give_back(const Run& run) const { pipeline_.group.send(pipeline_.rank_before(), run.row, run.message); }

// One device adds squares in the order of weights, too; weights without a gradient add 0, which changes no sum.
double StageLink::agree_on_factor(const Run& run, double clip_norm) const {
  double factor = 0;
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&factor, 1));
  if (pipeline_.is_first()) {
    factor = clip_factor(clip_norm, std::accumulate(run.squares.begin(), run.squares.end(), 0.0));
  } else {
    pipeline_.group.receive(pipeline_.rank_before(), run.row, bytes);
  }
  if (!pipeline_.is_last()) pipeline_.group.send(pipeline_.rank_behind(), run.row, bytes);
  return factor;
}

}  // namespace hfta::fusion
