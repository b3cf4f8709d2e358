#include "fusion/compiled/stage_link.hpp"

#include <ATen/ATen.h>

#include <array>

#include "fusion/compiled/views.hpp"

namespace hfta::fusion {
namespace {

// Row-major, as it travels.
at::Tensor dense(const cpu::Tensor& tensor, std::span<std::byte* const> buffers) {
  return view_of(tensor, buffers).contiguous();
}

std::span<std::byte> bytes_of(const at::Tensor& dense) {
  return {static_cast<std::byte*>(dense.data_ptr()), dense.nbytes()};
}

}  // namespace

void StageLink::send_all(int rank, const Run& run, const std::vector<cpu::Tensor>& tensors) const {
  for (const cpu::Tensor& tensor : tensors) {
    const at::Tensor all = dense(tensor, run.buffers);
    pipeline_.group.send(rank, run.row, bytes_of(all));
  }
}

void StageLink::receive_all(int rank, const Run& run, const std::vector<cpu::Tensor>& tensors) const {
  for (const cpu::Tensor& tensor : tensors) {
    pipeline_.group.receive(rank, run.row, bytes_of(view_of(tensor, run.buffers)));
  }
}

void StageLink::receive(const Run& run) const {
  if (!pipeline_.is_first()) receive_all(pipeline_.rank_before(), run, run.stage.received);
}

void StageLink::send(const Run& run) const {
  if (!pipeline_.is_last()) send_all(pipeline_.rank_behind(), run, run.stage.sent);
}

BatchLoss StageLink::take_back(const Run& run) const {
  std::array<double, 2> loss = {};
  pipeline_.group.receive(pipeline_.rank_behind(), run.row, std::as_writable_bytes(std::span(loss)));
  receive_all(pipeline_.rank_behind(), run, run.stage.given);
  return {loss[0], loss[1]};
}

void StageLink::give_back(const Run& run, const BatchLoss& loss) const {
  if (pipeline_.is_first()) return;
  const std::array<double, 2> numbers = {loss.mean, loss.weight};
  pipeline_.group.send(pipeline_.rank_before(), run.row, std::as_bytes(std::span(numbers)));
  send_all(pipeline_.rank_before(), run, run.stage.returned);
}

}  // namespace hfta::fusion
