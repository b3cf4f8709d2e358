#include "engine/fused/task_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/fused/target_check.hpp"
#include "fusion/data/blocks.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::engine {
namespace {

using fusion::Graph;
using fusion::Shape;
using fusion::to_text;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kConfig, (where.empty() ? "" : where + ": ") + what);
}

std::string model_name(const TaskSpec& spec) {
  return spec.model_file ? printable(spec.model_file->file.filename().string()) : "the model";
}

// Whether shapes fit. A size that depends on the batch, or on another size, is not known before the model runs.
bool fits(const Shape& found, const Shape& wanted) {
  return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                    [](std::int64_t f, std::int64_t w) { return f == w || w < 0; });
}

void check_inputs(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data) {
  const auto value_of = [&](std::size_t i) { return graph.values[static_cast<std::size_t>(graph.inputs[i])]; };
  if (data.inputs.size() != graph.inputs.size()) {
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      wanted.push_back(printable(value_of(i).name) + " " + to_text(value_of(i).shape));
    }
    fail(spec.data.where, fmt::format("data.x: found {} arrays, wanted {}: the inputs {} of {}", data.inputs.size(),
                                      wanted.size(), join(wanted), model_name(spec)));
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Shape found = with_batch(data.inputs[i].shape);
    if (fits(found, value_of(i).shape)) continue;
    fail(spec.data.where, fmt::format("data.x: found {}, wanted {} (input '{}' of {})", to_text(found),
                                      to_text(value_of(i).shape), printable(value_of(i).name), model_name(spec)));
  }
}

struct Range {
  std::int64_t low, high;
};

Range range_of(fusion::DType dtype) {
  const int bits = static_cast<int>(8 * fusion::size_of(dtype));
  if (dtype == fusion::DType::kBool) return {0, 1};
  if (dtype == fusion::DType::kUInt8) return {0, 255};
  const std::int64_t high = bits == 64 ? INT64_MAX : (std::int64_t{1} << (bits - 1)) - 1;
  return {-high - 1, high};
}

Range range_of(const fusion::Field& field, std::int64_t size) {
  Range range{INT64_MAX, INT64_MIN};
  fusion::for_each_block(field, size, [&]<typename T>(std::span<const T> numbers) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    range = {std::min(range.low, static_cast<std::int64_t>(*low)),
             std::max(range.high, static_cast<std::int64_t>(*high))};
  });
  return range;
}

// Rows of the tables that an input's numbers are looked up in; nothing else would be told of a number beyond.
Range indices_of(const Graph& graph, fusion::ValueId input) {
  Range range = range_of(graph.values[static_cast<std::size_t>(input)].dtype);
  for (const fusion::Node& node : graph.nodes) {
    const fusion::OpTraits* op = fusion::op_traits(node.op);
    if (op == nullptr || op->table.empty()) continue;
    const fusion::Arg *indices = fusion::argument(node, op->indices), *table = fusion::argument(node, op->table);
    if (indices == nullptr || table == nullptr || *indices != fusion::Arg(input)) continue;
    const auto* looked_up = std::get_if<fusion::ValueId>(table);
    const Shape rows = looked_up == nullptr ? Shape{} : graph.values[static_cast<std::size_t>(*looked_up)].shape;
    if (!rows.empty() && rows[0] >= 0) range = {0, std::min(range.high, rows[0] - 1)};
  }
  return range;
}

void check_integers(const TaskSpec& spec, const Graph& graph, const fusion::Dataset& data, const char* part) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (fusion::is_floating(data.inputs[i].dtype()) || data.size == 0) continue;
    const Range wanted = indices_of(graph, graph.inputs[i]);
    const Range found = range_of(data.inputs[i], data.size);
    if (found.low >= wanted.low && found.high <= wanted.high) continue;
    fail(spec.data.where,
         fmt::format("data.x: found {} in {} of the {} set, wanted {} to {} (input '{}' of {})",
                     found.low < wanted.low ? found.low : found.high, printable(data.inputs[i].name), part, wanted.low,
                     wanted.high, printable(graph.values[static_cast<std::size_t>(graph.inputs[i])].name),
                     model_name(spec)));
  }
}

void check_trained(const TaskSpec& spec, const Graph& graph) {
  if (!spec.model_file || graph.parameter_count() > 0) return;
  const bool frozen = !spec.model_file->import.freeze.empty();
  fail(spec.model_file->import.where,
       fmt::format("found no parameter of {} to train, wanted one{}", model_name(spec),
                   frozen ? ": freeze takes them all" : ": it was exported with requires_grad=False"));
}

// Layers' rates are checked when the graph is built. Nothing else has checked the numbers bound to an exported model.
void check_rates(const TaskSpec& spec, const Graph& graph) {
  for (const fusion::Node& node : graph.nodes) {
    const fusion::OpTraits* op = fusion::op_traits(node.op);
    const fusion::Arg* rate = op == nullptr ? nullptr : fusion::argument(node, op->rate);
    const auto* hyper = rate == nullptr ? nullptr : std::get_if<fusion::HyperRef>(rate);
    if (hyper == nullptr) continue;
    const auto index = static_cast<std::size_t>(hyper->index);
    if (index >= spec.hyper.graph.size()) continue;  // a number that no trial has bound
    const double value = spec.hyper.graph[index];
    if (value >= 0 && value <= 1) continue;
    const bool bound = spec.model_file && index < spec.model_file->import.bind.size();
    fail(bound ? spec.model_file->import.bind[index].where : node.where,
         fmt::format("{}: found {}, wanted a rate from 0 to 1", printable(graph.hypers[index].path), shortest(value)));
  }
}

// Elements per channel and sample of the first batch norm that sees one value per channel; such a layer has no variance
// to take over a batch of one, and PyTorch refuses it too.
bool needs_two_samples(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const fusion::Node& node) {
    const fusion::OpTraits* op = fusion::op_traits(node.op);
    if (op == nullptr || !op->statistics.over_batch) return false;
    const fusion::Arg* training = fusion::argument(node, op->training);
    const auto* input = node.args.empty() ? nullptr : std::get_if<fusion::ValueId>(&node.args[0]);
    if ((training != nullptr && *training == fusion::Arg(false)) || input == nullptr) return false;
    const Shape& shape = graph.values[static_cast<std::size_t>(*input)].shape;
    return shape.size() >= 2 &&
           std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t extent) { return extent == 1; });
  });
}

std::int64_t batches_of_epoch(const TaskSpec& spec, std::int64_t n) {
  const std::int64_t batch = spec.recipe.batch_size;
  return spec.drop_last ? n / batch : (n + batch - 1) / batch;
}

void check_turns(const TaskSpec& spec, std::int64_t n) {
  const std::int64_t batches = batches_of_epoch(spec, n);
  for (const fusion::Phase& phase : spec.recipe.phases) {
    if (phase.every <= batches) continue;
    fail(spec.data.where,
         fmt::format("train.phases: found the phase of {} behind every {} batches, wanted at most the {} "
                     "of an epoch, or it never has its turn",
                     printable(phase.loss), phase.every, batches));
  }
}

void check_warmup(const TaskSpec& spec, std::int64_t n) {
  const fusion::Schedule& schedule = spec.hyper.schedule;
  const std::int64_t batches = batches_of_epoch(spec, n);
  const std::int64_t steps = (batches + spec.hyper.accumulate - 1) / spec.hyper.accumulate;
  const auto all = static_cast<double>(spec.recipe.epochs) * static_cast<double>(steps);
  if (!schedule.per_step || schedule.warmup == 0 || schedule.warmup < all) return;
  fail(spec.schedule_where,
       fmt::format(
           "train.schedule.warmup: found {} steps, wanted fewer than the {} of training ({} epochs of {} steps), "
           "or the schedule never begins",
           shortest(schedule.warmup), shortest(all), spec.recipe.epochs, steps));
}

// Checks the batch sizes that the graph is for. An export holds one path through the model, and for which batches.
void check_limits(const TaskSpec& spec, const Graph& graph, std::int64_t batch, std::int64_t last) {
  if (const std::string limit = graph.limits.broken_by(batch); !limit.empty()) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}, wanted {}, for which {} was exported", batch,
                                      printable(limit), model_name(spec)));
  }
  const std::string limit = spec.drop_last ? "" : graph.limits.broken_by(last);
  if (limit.empty()) return;
  fail(spec.data.where,
       fmt::format("data.batch_size: found {}, which leaves a last batch of {}, wanted {}, for which {} "
                   "was exported; set drop_last: true or another batch_size",
                   batch, last, printable(limit), model_name(spec)));
}

void check_batch(const TaskSpec& spec, const Graph& graph, std::int64_t n) {
  const std::int64_t batch = spec.recipe.batch_size;
  if (batch < 1) fail(spec.data.where, fmt::format("data.batch_size: found {}, wanted a number from 1 on", batch));
  if (n < 1) fail(spec.data.where, "data: found no training sample, wanted one or more");
  if (graph.fixed_batch > 0 && batch != graph.fixed_batch) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}, wanted {}, at which {} was exported; exported "
                                      "with Dim(\"batch\") in dynamic_shapes it takes any (Dim.AUTO may fix the batch)",
                                      batch, graph.fixed_batch, model_name(spec)));
  }
  if (graph.largest_batch > 0 && batch > graph.largest_batch) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}, wanted at most {}, for which {} was exported", batch,
                                      graph.largest_batch, model_name(spec)));
  }
  if (spec.drop_last && n < batch) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}{}, wanted at most the {} training samples", batch,
                                      graph.fixed_batch > 0 ? "" : " with drop_last", n));
  }
  const std::int64_t last = n % batch == 0 ? batch : n % batch;
  check_limits(spec, graph, batch, last);
  if (batch == 1 && needs_two_samples(graph)) {
    fail(spec.data.where,
         "data.batch_size: found 1, a batch of one sample, wanted at least 2: batch norm takes statistics of them");
  }
  if (last == 1 && !(spec.drop_last && n > 1) && needs_two_samples(graph)) {
    fail(spec.data.where, fmt::format("data.batch_size: found {}, which leaves a last batch of one sample of {} under "
                                      "batch norm; set drop_last: true or another batch_size",
                                      batch, n));
  }
}

}  // namespace

Shape with_batch(const Shape& sample) {
  Shape shape = {fusion::kBatch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

void check_task(const TaskSpec& spec, const Graph& graph, const fusion::Splits& splits) {
  check_trained(spec, graph);
  check_rates(spec, graph);
  check_inputs(spec, graph, splits.train);
  check_target_shape(spec, graph, splits.train);
  const auto check_part = [&](const fusion::Dataset& data, const char* part) {
    check_integers(spec, graph, data, part);
    check_targets(spec, graph, data, part);
  };
  const auto check_evaluated = [&](const fusion::Dataset& data, const char* part) {
    check_part(data, part);
    check_whole_batches(spec, graph, data, part);
  };
  check_part(splits.train, "training");
  if (splits.validation) check_evaluated(*splits.validation, "validation");
  if (splits.test) check_evaluated(*splits.test, "test");
  check_batch(spec, graph, splits.train.size);
  check_turns(spec, splits.train.size);
  check_warmup(spec, splits.train.size);
}

}  // namespace hfta::engine
