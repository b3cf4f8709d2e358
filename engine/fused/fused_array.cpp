#include "engine/fused/fused_array.hpp"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

// LibTorch's messages end in a C++ backtrace; people get the first line.
template <typename Work>
auto translated(const std::string& device, Work work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError& e) {
    throw Error(ErrorKind::kDevice, fmt::format("{}: out of memory: {}", device, e.what_without_backtrace()));
  } catch (const c10::Error& e) {
    std::string message = e.what_without_backtrace();
    const ErrorKind kind =
        message.find("can't allocate memory") != std::string::npos ? ErrorKind::kDevice : ErrorKind::kInternal;
    throw Error(kind, fmt::format("{}: {}", device, message.substr(0, message.find('\n'))));
  }
}

}  // namespace

FusedArray::FusedArray(FusedTrainer& trainer, const PreparedTask& task, const LoadedData& data,
                       fusion::MeasuredChoices choices, const fusion::Lowering& lowering, int width,
                       const std::string& device)
    : trainer_(trainer),
      data_(data),
      choices_(std::move(choices)),
      device_(device),
      array_(task.graph, task.spec.recipe, lowering, width, trainer.config().seed, c10::Device(device)),
      epochs_(task.spec.recipe, {task.spec.order, task.spec.drop_last, trainer.config().seed}, data.train,
              data.validation ? &*data.validation : nullptr) {}

fusion::SlotInit FusedArray::init_for(int number, const trials::Params& params) {
  const PreparedTask task = trainer_.prepare(params);
  return {task.spec.seed.value_or(static_cast<std::uint64_t>(number)), task.spec.hyper};
}

void FusedArray::admit(int slot, int number, const trials::Params& params) {
  array_.admit(slot, init_for(number, params));
}

void FusedArray::insert(int slot, int number, const trials::Params& params, const SlotState& state) {
  array_.insert(slot, init_for(number, params), state);
}

SlotState FusedArray::extract(int slot) {
  return translated(device_, [&] { return array_.extract(slot); });
}

void FusedArray::clear(int slot) { array_.clear(slot); }

// On a CPU the way to run stays as it was when the array was opened, so that no trial's bits depend on how many others
// were left; on a GPU the whole width is one chunk and has to follow.
void FusedArray::resize(int width) {
  array_.resize(width);
  if (device_ != "cpu") array_.lower(choices_.best_for(width).lowering);
}

std::vector<SlotReport> FusedArray::run_epoch() {
  return translated(device_, [&] {
    std::vector<SlotReport> reports;
    for (fusion::EpochResult& result : epochs_.run(array_)) {
      reports.push_back({result.slot, result.epoch, std::move(result.metrics)});
    }
    return reports;
  });
}

std::map<std::string, double> FusedArray::test(int slot) {
  if (!data_.test) return {};
  return translated(device_, [&] { return epochs_.evaluate(array_, slot, *data_.test, "test_"); });
}

ArrayInfo FusedArray::info() const {
  const fusion::Lowering& lowering = array_.lowering();
  nlohmann::ordered_json choices;
  choices["how"] = choices_.how;
  choices["lowering"] = lowering.to_text();
  for (const auto& [path, name] : array_.choices()) {
    if (lowering.chunk > 1) choices["ops"][path] = name;
  }
  for (const fusion::Measured& measured : choices_.candidates) {
    if (measured.wave_seconds > 0) choices["wave_ms"][measured.lowering.to_text()] = measured.wave_seconds * 1e3;
  }
  return {array_.width(), lowering.chunk, lowering.workers * lowering.threads_per_worker, device_, choices.dump()};
}

}  // namespace hfta::engine
