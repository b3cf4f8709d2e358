#include "engine/fused/fused_array.hpp"

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>

#include "engine/fused/translated.hpp"

namespace hfta::engine {

FusedArray::FusedArray(FusedTrainer& trainer, const PreparedTask& task, const LoadedData& data,
                       fusion::MeasuredChoices choices, const fusion::Lowering& lowering, int width,
                       const std::string& device)
    : trainer_(trainer),
      data_(data),
      choices_(std::move(choices)),
      device_(device),
      array_(task.graph, task.spec.recipe, lowering, width, trainer.config().seed, c10::Device(device)),
      epochs_(task.spec.recipe,
              {task.spec.order, task.spec.drop_last, trainer.config().seed, task.graph.fixed_batch,
               task.graph.largest_batch},
              *data.train, data.validation ? &*data.validation : nullptr) {}

fusion::SlotInit FusedArray::init_for(int number, const trials::Params& params) {
  const PreparedTask task = trainer_.prepare(params);
  return {task.spec.seed.value_or(static_cast<std::uint64_t>(number)), task.spec.hyper};
}

void FusedArray::admit(int slot, int number, const trials::Params& params) {
  const fusion::SlotInit init = init_for(number, params);
  translated(device_, [&] { array_.admit(slot, init); });
}

void FusedArray::insert(int slot, int number, const trials::Params& params, const SlotState& state) {
  const fusion::SlotInit init = init_for(number, params);
  translated(device_, [&] { array_.insert(slot, init, state); });
}

SlotState FusedArray::extract(int slot) {
  return translated(device_, [&] { return array_.extract(slot); });
}

void FusedArray::clear(int slot) { array_.clear(slot); }

// On a CPU the way to run stays as it was when the array was opened, so that no trial's bits depend on how many others
// were left; on a GPU the whole width is one chunk and has to follow.
void FusedArray::resize(int width) {
  translated(device_, [&] {
    array_.resize(width);
    if (device_ != "cpu") array_.lower(choices_.best_for(width).lowering);
  });
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
