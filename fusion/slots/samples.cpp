#include "fusion/samples.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {

SampleArray::SampleArray(const at::Tensor& all) : SampleArray(all, all.scalar_type()) {}

SampleArray::SampleArray(const at::Tensor& stored, at::ScalarType type)
    : tensor_(stored.contiguous()), size_(stored.dim() > 0 ? stored.size(0) : 1), type_(type) {}

SampleArray::SampleArray(Field field, std::int64_t size, at::ScalarType type)
    : field_(std::move(field)), size_(size), type_(type) {}

SampleArray::SampleArray(std::shared_ptr<const SampleSource> source, std::size_t column)
    : source_(std::move(source)), column_(column), size_(source_->size()), type_(source_->type(column)) {}

std::int64_t SampleArray::stride() const {
  if (source_ != nullptr) return source_->stride(column_);
  return tensor_.defined() ? tensor_.numel() / std::max<std::int64_t>(1, size_) : field_.stride();
}

at::Tensor SampleArray::taken(const at::Tensor& rows) const {
  return rows.scalar_type() == type_ ? rows : rows.to(type_);
}

// The type that a field is gathered as: the type taken, or, if no loops are compiled for that, the field's own.
DType SampleArray::gathered_type() const {
  const bool floating = is_floating(field_.dtype());
  if (floating && type_ == at::kFloat) return DType::kFloat32;
  if (floating && type_ == at::kDouble) return DType::kFloat64;
  return field_.dtype();
}

void SampleArray::gather(const std::int64_t* order, std::int64_t begin, std::int64_t n, std::byte* out) const {
  if (order != nullptr) {
    field_.gather({order, static_cast<std::size_t>(n)}, gathered_type(), out);
  } else {
    field_.gather(begin, begin + n, gathered_type(), out);
  }
}

at::Tensor SampleArray::gathered(const std::int64_t* order, std::int64_t begin, std::int64_t n) const {
  std::vector<std::int64_t> shape = {n};
  shape.insert(shape.end(), field_.shape.begin(), field_.shape.end());
  const at::Tensor rows = at::empty(shape, scalar_type(gathered_type()));
  gather(order, begin, n, static_cast<std::byte*>(rows.data_ptr()));
  return taken(rows);
}

// Always in memory of its own: the bits of some products depend on where their factors begin.
at::Tensor SampleArray::computed(const at::Tensor& index) const {
  const at::Tensor all = source_->all(column_);
  return all.defined() ? all.index_select(0, index) : source_->rows(index)[column_];
}

at::Tensor SampleArray::at(const at::Tensor& index) const {
  if (source_ != nullptr) return computed(index);
  if (tensor_.defined()) return taken(tensor_.index_select(0, index));
  return gathered(index.const_data_ptr<std::int64_t>(), 0, index.size(0));
}

at::Tensor SampleArray::range(std::int64_t begin, std::int64_t end) const {
  if (source_ != nullptr) return computed(at::arange(begin, end, at::kLong));
  if (!tensor_.defined()) return gathered(nullptr, begin, end - begin);
  const bool all = begin == 0 && end == size_;
  return taken(all ? tensor_ : tensor_.narrow(0, begin, end - begin));
}

void SampleArray::copy(const std::int64_t* order, std::int64_t begin, std::int64_t n, std::byte* out) const {
  if (!tensor_.defined() && source_ == nullptr && scalar_type(gathered_type()) == type_) {
    return gather(order, begin, n, out);
  }
  const at::Tensor all = source_ != nullptr ? source_->all(column_) : tensor_;
  if (all.defined() && all.scalar_type() == type_ && all.is_contiguous()) {
    const auto* const from = static_cast<const std::byte*>(all.const_data_ptr());
    const auto sample = static_cast<std::int64_t>(all.nbytes()) / std::max<std::int64_t>(1, size_);
    if (order == nullptr) {
      std::memcpy(out, from + begin * sample, static_cast<std::size_t>(n * sample));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(out + i * sample, from + order[i] * sample, static_cast<std::size_t>(sample));
    }
    return;
  }
  const at::Tensor rows = order == nullptr
                              ? range(begin, begin + n)
                              : at(at::tensor(at::IntArrayRef(order, static_cast<std::size_t>(n)), at::kLong));
  const at::Tensor whole = rows.contiguous();
  std::memcpy(out, whole.const_data_ptr(), whole.nbytes());
}

std::int64_t Samples::size() const {
  if (end >= 0) return end - begin;
  return (order.defined() ? order.size(0) : array(0).size()) - begin;
}

std::vector<at::Tensor> inputs_of(const Samples& samples, const Graph& graph,
                                  const std::function<at::Tensor(const SampleArray&)>& take) {
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Shape& declared = graph.values[static_cast<std::size_t>(graph.inputs[i])].shape;
    const at::Tensor batch = take(samples.array(i));
    const bool column = batch.dim() + 1 == static_cast<std::int64_t>(declared.size()) && declared.back() == 1;
    inputs.push_back(column ? batch.unsqueeze(-1) : batch);
  }
  return inputs;
}

bool Samples::at_hand() const {
  return std::all_of(inputs.begin(), inputs.end(), [](const SampleArray& all) { return all.at_hand(); });
}

Samples Samples::taken() const {
  Samples out;
  const std::int64_t n = size();
  const at::Tensor index = order.defined() ? order.narrow(0, begin, n) : at::arange(begin, begin + n, at::kLong);
  std::map<const SampleSource*, std::vector<at::Tensor>> rows;
  for (const SampleArray& all : inputs) {
    if (all.at_hand()) {
      out.inputs.emplace_back(of(all));
      continue;
    }
    const auto known = rows.find(all.source());
    const auto& columns =
        known != rows.end() ? known->second : rows.emplace(all.source(), all.source()->rows(index)).first->second;
    out.inputs.emplace_back(columns[all.column()]);
  }
  if (target.size() > 0) out.target = of(target);
  return out;
}

at::Tensor Samples::of(const SampleArray& all) const {
  const std::int64_t n = size();
  return order.defined() ? all.at(order.narrow(0, begin, n)) : all.range(begin, begin + n);
}

}  // namespace hfta::fusion
