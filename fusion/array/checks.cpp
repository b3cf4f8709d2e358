#include "fusion/array/checks.hpp"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/divided_batches.hpp"
#include "fusion/gpu.hpp"
#include "fusion/verify.hpp"

namespace hfta::fusion {
namespace {

// Far above what any machine has; products of two of them are still numbers of an int.
constexpr int kMostSlots = 1 << 20;
constexpr int kMostThreads = 1 << 12;

void check_count(const std::string& what, std::int64_t found, std::int64_t least, std::int64_t most) {
  if (found >= least && found <= most) return;
  throw Error(ErrorKind::kConfig, fmt::format("array: {}: found {}, wanted {} to {}", what, found, least, most));
}

void check_at_least(const std::string& what, std::int64_t found, std::int64_t least) {
  if (found >= least) return;
  throw Error(ErrorKind::kConfig, fmt::format("array: {}: found {}, wanted at least {}", what, found, least));
}

void check_counts(const Recipe& recipe) {
  check_at_least("batch_size", recipe.batch_size, 1);
  check_at_least("epochs", recipe.epochs, 1);
  for (const Phase& phase : recipe.phases) check_at_least("a phase's every", phase.every, 1);
  if (!recipe.compression) return;
  check_at_least("compression's interval", recipe.compression->interval, 1);
  if (recipe.compression->sigma >= 0) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array: compression's sigma: found {}, wanted 0 or more", recipe.compression->sigma));
}

void check_device(const c10::Device& device) {
  if (device.is_cpu()) return;
  if (!device.is_cuda()) {
    throw Error(ErrorKind::kConfig, fmt::format("array: device: found {}, wanted cpu or cuda:N", device.str()));
  }
  const int found = cuda_devices();
  if (found > 0 && device.index() < found) return;
  throw Error(ErrorKind::kDevice, fmt::format("array: device: found {}, but this machine has {} that LibTorch can use",
                                              device.str(), found == 0 ? "no GPU" : fmt::format("{} GPUs", found)));
}

void check_divided(const Graph& model, const Recipe& recipe, const c10::Device& device, std::span<const int> parts) {
  if (!device.is_cpu()) {
    throw Error(ErrorKind::kConfig, fmt::format("array: found ranks on {}, wanted them on CPUs", device.str()));
  }
  const std::int64_t batch = recipe.batch_size;
  const std::string why = why_not_divided(model, recipe, parts, std::span(&batch, 1));
  if (why.empty()) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array: its batches cannot be divided among {} ranks: {}", parts.size(), why));
}

void check_compression(const Recipe& recipe, const c10::Device& device, const Collectives* group) {
  if (!recipe.compression) return;
  const char* const found = !device.is_cpu()                  ? "a GPU"
                            : group != nullptr                ? "several ranks"
                            : !recipe.phases.empty()          ? "phases"
                            : recipe.dtype != DType::kFloat32 ? "float64"
                                                              : nullptr;
  if (found == nullptr) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array: found {}, with which values are not compressed, wanted one process on a CPU, one "
                          "phase and float32",
                          found));
}

void check_numbers(const char* what, std::size_t found, std::size_t most) {
  if (found <= most) return;
  throw Error(ErrorKind::kInternal, fmt::format("slot: {}: found {}, wanted at most {}", what, found, most));
}

}  // namespace

void check_width(int width) { check_count("width", width, 0, kMostSlots); }

void check_lowering(const Lowering& lowering) {
  check_count("lowering's chunk", lowering.chunk, 1, kMostSlots);
  check_count("lowering's workers", lowering.workers, 1, kMostThreads);
  check_count("lowering's threads_per_worker", lowering.threads_per_worker, 1, kMostThreads);
  check_at_least("lowering's recompute", lowering.recompute, 0);
}

void check_arguments(const Graph& model, const Recipe& recipe, const Lowering& lowering, int width,
                     const c10::Device& device) {
  check_width(width);
  check_lowering(lowering);
  check_counts(recipe);
  check_device(device);
  verify(model);
  if (model.evaluation != nullptr) verify(*model.evaluation);
}

void check_recipe(const Graph& model, const Recipe& recipe, const c10::Device& device, const Collectives* group,
                  std::span<const int> parts) {
  if (recipe.dtype != DType::kFloat32 && recipe.dtype != DType::kFloat64) {
    throw Error(ErrorKind::kConfig, fmt::format("array: dtype: found {}, wanted float32 or float64 (bfloat16 is a "
                                                "precision)",
                                                name_of(recipe.dtype)));
  }
  check_compression(recipe, device, group);
  if (!parts.empty()) check_divided(model, recipe, device, parts);
  if (recipe.dtype == DType::kFloat64 && recipe.precision != Precision::kFloat32) {
    throw Error(ErrorKind::kConfig,
                fmt::format("precision: found {} with dtype float64, wanted float32", name_of(recipe.precision)));
  }
}

void check_slot(const SlotInit& init, const Recipe& recipe, std::size_t model_hypers, std::size_t loss_hypers) {
  const SlotHyper& hyper = init.hyper;
  check_numbers("numbers of the model", hyper.graph.size(), model_hypers);
  check_numbers("numbers of the loss", hyper.loss.size(), loss_hypers);
  if (hyper.phases.size() != recipe.phases.size()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("slot: found numbers of {} phases, wanted {}", hyper.phases.size(), recipe.phases.size()));
  }
  if (hyper.phases.empty()) check_numbers("groups of parameters", hyper.groups.size(), recipe.groups.size());
  for (std::size_t p = 0; p < hyper.phases.size(); ++p) {
    check_numbers("groups of parameters", hyper.phases[p].groups.size(), recipe.phases[p].groups.size());
  }
  if (init.data < 0 || hyper.accumulate < 1) {
    throw Error(ErrorKind::kInternal, fmt::format("slot: found data {} and accumulate {}, wanted at least 0 and 1",
                                                  init.data, hyper.accumulate));
  }
  if (hyper.accumulate > 1 && !recipe.accumulates) {
    throw Error(ErrorKind::kInternal, fmt::format("slot: found accumulate {}, wanted 1: its recipe says that no slot "
                                                  "accumulates",
                                                  hyper.accumulate));
  }
  const bool clips = hyper.clip_norm || std::any_of(hyper.phases.begin(), hyper.phases.end(),
                                                    [](const PhaseHyper& phase) { return phase.clip_norm; });
  if (!clips || recipe.clips) return;
  throw Error(ErrorKind::kInternal, "slot: found clip_norm, wanted none: its recipe says that no slot has one");
}

void check_samples(const Samples& samples, const Graph& graph) {
  const auto name = [&](std::size_t i) { return graph.values[static_cast<std::size_t>(graph.inputs[i])].name; };
  std::int64_t size = 0;  // samples of every array
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::int64_t own = i <= samples.inputs.size() ? samples.array(i).size() : 0;
    if (own <= 0) {
      throw Error(ErrorKind::kConfig, fmt::format("samples: found none for '{}', input {} of {} (targets are the last)",
                                                  name(i), i + 1, graph.inputs.size()));
    }
    if (i == 0) size = own;
    if (own == size) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("samples: found {} of '{}' and {} of '{}' (targets are the last), wanted equally many",
                            size, name(0), own, name(i)));
  }
  const at::Tensor& order = samples.order;
  if (order.defined() && (order.scalar_type() != at::kLong || order.dim() != 1 || !order.is_contiguous())) {
    throw Error(ErrorKind::kConfig,
                fmt::format("samples: order: found {} of {} dimensions, wanted int64, one dimension",
                            at::toString(order.scalar_type()), order.dim()));
  }
  const std::int64_t all = order.defined() ? order.size(0) : size;
  const std::int64_t end = samples.end >= 0 ? samples.end : all;
  if (samples.begin < 0 || samples.begin > end || end > all) {
    throw Error(ErrorKind::kConfig,
                fmt::format("samples: found [{}, {}), wanted a range of {}", samples.begin, end, all));
  }
  if (!order.defined() || !order.is_cpu()) return;
  for (const std::int64_t index :
       std::span(order.const_data_ptr<std::int64_t>() + samples.begin, static_cast<std::size_t>(end - samples.begin))) {
    if (index >= 0 && index < size) continue;
    throw Error(ErrorKind::kConfig, fmt::format("samples: order: found sample {} of {}", index, size));
  }
}

void check_losses(const at::Tensor& losses, std::size_t slots) {
  const auto wanted = static_cast<std::int64_t>(slots);
  if (losses.defined() && losses.scalar_type() == at::kDouble && losses.dim() == 2 && losses.size(0) == 2 &&
      losses.size(1) == wanted && losses.is_contiguous()) {
    return;
  }
  throw Error(ErrorKind::kInternal,
              fmt::format("step: losses: found {}, wanted [2, {}] float64, contiguous",
                          losses.defined() ? fmt::format("[{}] of type {}", fmt::join(losses.sizes(), ", "),
                                                         at::toString(losses.scalar_type()))
                                           : "no tensor",
                          wanted));
}

}  // namespace hfta::fusion
