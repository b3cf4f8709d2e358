#include "fusion/pt2/batch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace hfta::fusion::pt2 {
namespace {

// Numbers from here on are what torch writes for "no upper bound", if it writes a number at all.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;

/// 0: no bound.
struct Bounds {
  std::int64_t least = 0, most = 0;
};

Bounds bounds_of(const Reader& program, const std::string& symbol) {
  Bounds bounds;
  if (!program.has("range_constraints") || !program["range_constraints"].has(symbol)) return bounds;
  const Reader range = program["range_constraints"][symbol];
  if (range.has("min_val")) bounds.least = range["min_val"].integer();
  if (bounds.least < 2) bounds.least = 0;  // there is no batch without samples
  if (!range.has("max_val")) return bounds;
  bounds.most = range["max_val"].integer();
  if (bounds.most < std::max<std::int64_t>(bounds.least, 1)) {
    range.fail(fmt::format("found batches of at most {}", bounds.most));
  }
  if (bounds.most >= kUnlimited) bounds.most = 0;
  return bounds;
}

struct Input {
  std::string name;
  TensorMeta meta;
};

std::string batch_text(const Input& input) {
  const SymInt& size = input.meta.sizes[0];
  return fmt::format("'{}' {}", input.name, size.expression.empty() ? std::to_string(size.number) : "any");
}

std::vector<Input> user_inputs(const Signature& signature, const Reader& program) {
  std::vector<Input> inputs;
  for (const InputSpec& spec : signature.inputs) {
    if (spec.kind != InputSpec::Kind::kUser) continue;
    const Reader values = program["graph_module"]["graph"]["tensor_values"];
    inputs.push_back({spec.placeholder, tensor_meta_from(values[spec.placeholder])});
    if (inputs.back().meta.sizes.empty()) {
      program.fail(fmt::format("found input '{}' without dimensions, wanted the batch as its first", spec.placeholder));
    }
    if (is_complex(inputs.back().meta.dtype)) {
      program.fail(
          fmt::format("found input '{}' of complex numbers, wanted real ones: samples are real; take the parts "
                      "as [..., 2] and call torch.view_as_complex within the model",
                      spec.placeholder));
    }
  }
  if (inputs.empty()) program.fail("found no input that is a tensor");
  return inputs;
}

void check_agreement(const std::vector<Input>& inputs, const Reader& program) {
  const auto differs = [&](const Input& input) {
    const SymInt& first = inputs[0].meta.sizes[0];
    const SymInt& own = input.meta.sizes[0];
    return own.expression.empty() != first.expression.empty() || (own.expression.empty() && own.number != first.number);
  };
  if (std::none_of(inputs.begin(), inputs.end(), differs)) return;
  std::vector<std::string> sizes;
  for (const Input& input : inputs) sizes.push_back(batch_text(input));
  program.fail(
      fmt::format("inputs disagree about the batch size, their first dimension: {}; wanted all dynamic or all of "
                  "one size",
                  join(sizes)));
}

void add_symbols(const Input& input, const Reader& program, Batch& batch) {
  for (const SymInt& size : input.meta.sizes) {
    const std::string symbol = lone_symbol(size.expression);
    if (!symbol.empty() && size.hint) batch.symbols.add_hint(symbol, *size.hint);
  }
  const SymInt& first = input.meta.sizes[0];
  if (first.expression.empty()) {
    if (first.number < 1) program.fail(fmt::format("found input '{}' with a batch of {}", input.name, first.number));
    batch.fixed = first.number;
    return;
  }
  const std::string symbol = lone_symbol(first.expression);
  if (symbol.empty()) {
    program.fail(fmt::format("found input '{}' with batches of {}, wanted a dynamic dimension of any size", input.name,
                             first.expression));
  }
  batch.symbols.add_batch(symbol);
  const Bounds bounds = bounds_of(program, symbol);
  batch.smallest = std::max(batch.smallest, bounds.least);
  if (bounds.most > 0) batch.largest = batch.largest > 0 ? std::min(batch.largest, bounds.most) : bounds.most;
}

}  // namespace

Batch batch_from(const Signature& signature, const Reader& program) {
  const std::vector<Input> inputs = user_inputs(signature, program);
  check_agreement(inputs, program);
  Batch batch;
  for (const Input& input : inputs) add_symbols(input, program, batch);
  for (const Input& input : inputs) {
    Shape shape = batch.symbols.shape(input.meta.sizes, program);
    shape[0] = kBatch;
    batch.inputs.push_back({input.name, std::move(shape), input.meta.dtype});
  }
  return batch;
}

}  // namespace hfta::fusion::pt2
