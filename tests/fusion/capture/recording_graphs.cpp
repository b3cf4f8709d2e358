#include "recording_graphs.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hfta::fusion::testing {
namespace {

// Below autograd, above the devices' kernels, and used by nobody else.
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

void for_tensors(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& t : value.toTensorVector()) visit(t);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) for_tensors(each, visit);
  }
}

// The same memory, in the shape that it has now: ops in place may give a tensor another one.
at::Tensor as_it_is(const at::Tensor& t) {
  return at::Tensor(t.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), false));
}

c10::IValue as_it_is(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() ? c10::IValue(as_it_is(value.toTensor())) : value;
  if (value.isTensorList()) {
    std::vector<at::Tensor> list = value.toTensorVector();
    for (at::Tensor& t : list) t = as_it_is(t);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& t : value.toOptionalTensorVector()) {
      list.push_back(t && t->defined() ? std::optional(as_it_is(*t)) : t);
    }
    return list;
  }
  return value;
}

torch::jit::Stack as_it_is(const torch::jit::Stack& stack) {
  torch::jit::Stack same;
  for (const c10::IValue& value : stack) same.push_back(as_it_is(value));
  return same;
}

// From its first byte to its last, and what lies between.
std::span<std::byte> bytes_of(const at::Tensor& t) {
  if (t.numel() == 0) return {};
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  auto* const first = const_cast<std::byte*>(static_cast<const std::byte*>(t.const_data_ptr()));
  return {first, static_cast<std::size_t>(last + 1) * t.element_size()};
}

const c10::StorageImpl* storage_of(const at::Tensor& t) { return t.storage().unsafeGetStorageImpl(); }

// One noted call; run again it writes where it wrote first.
struct NotedCall {
  c10::OperatorHandle op;
  torch::jit::Stack inputs;
  std::vector<at::Tensor> results;  // that are no views of the inputs
  std::vector<std::size_t> places;  // of those, among all results
};

std::vector<at::Tensor> tensors_in(const torch::jit::Stack& stack) {
  std::vector<at::Tensor> all;
  for (const c10::IValue& value : stack) for_tensors(value, [&](const at::Tensor& t) { all.push_back(t); });
  return all;
}

class Recording final : public StepGraph {
 public:
  explicit Recording(std::shared_ptr<Captures> captures) : captures_(std::move(captures)) {}

  void note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const std::string name = op.schema().name();
    if (name == "aten::_local_scalar_dense" || name == "aten::nonzero") {
      TORCH_CHECK(false, name, ": operation not permitted when stream is capturing");
    }
    if (name == captures_->starved_op) {
      captures_->starved_op.clear();
      TORCH_CHECK_WITH(OutOfMemoryError, false, name, ": out of memory, as it was told");
    }
    const std::size_t arity = op.schema().arguments().size();
    torch::jit::Stack inputs =
        as_it_is(torch::jit::Stack(stack->end() - static_cast<std::ptrdiff_t>(arity), stack->end()));
    std::set<const c10::StorageImpl*> of_inputs;
    for (const at::Tensor& t : tensors_in(inputs)) {
      of_inputs.insert(storage_of(t));
      if (!own_.contains(storage_of(t))) keep_as_it_was(t);
    }
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
    NotedCall call{op, std::move(inputs), {}, {}};
    const std::size_t results = op.schema().returns().size();
    const std::vector<at::Tensor> made =
        tensors_in(torch::jit::Stack(stack->end() - static_cast<std::ptrdiff_t>(results), stack->end()));
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (of_inputs.contains(storage_of(made[i]))) continue;
      call.results.push_back(as_it_is(made[i]));
      own_.emplace(storage_of(made[i]), call.results.back());
      call.places.push_back(i);
      if (name.starts_with("aten::empty"))
        made[i].zero_();  // rows, perhaps of indices, that no kernel has filled in yet
    }
    if (!name.starts_with("aten::empty")) work_.push_back([call] { repeat(call); });
  }

  void note(const std::function<void()>& kernel) { work_.push_back(kernel); }

  // Undoes what noting has done: it was not to be done yet.
  void finish() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
      std::copy(it->second.begin(), it->second.end(), bytes_of(it->first).begin());
    }
    for (const auto& [storage, tensor] : own_) {
      if (tensor.storage().nbytes() == 0) continue;
      std::memset(tensor.storage().mutable_data(), 0xFF, tensor.storage().nbytes());
    }
  }

  void replay() override {
    const at::NoGradGuard no_gradients;
    for (const auto& step : work_) step();
  }

 private:
  static void repeat(const NotedCall& call) {
    torch::jit::Stack stack = as_it_is(call.inputs);
    call.op.callBoxed(&stack);
    const std::vector<at::Tensor> made = tensors_in(stack);
    for (std::size_t i = 0; i < call.results.size(); ++i) call.results[i].copy_(made.at(call.places[i]));
  }

  // Other threads may be at work on the rest of the storage.
  void keep_as_it_was(const at::Tensor& t) {
    const std::span<std::byte> bytes = bytes_of(t);
    if (bytes.empty() || !seen_.emplace(bytes.data(), bytes.size()).second) return;
    before_.emplace_back(t, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  std::shared_ptr<Captures> captures_;
  std::vector<std::function<void()>> work_;
  std::map<const c10::StorageImpl*, at::Tensor> own_;  // made while noting; kept, as a graph keeps its memory
  std::set<std::pair<const std::byte*, std::size_t>> seen_;
  std::vector<std::pair<at::Tensor, std::vector<std::byte>>> before_;
};

thread_local Recording* recording = nullptr;

class RecordingLane final : public StepGraphRecorder {
 public:
  explicit RecordingLane(std::shared_ptr<Captures> captures) : captures_(std::move(captures)) {}

  std::unique_ptr<StepGraph> capture(const std::function<void()>& work) override {
    const Use use(*this);
    const bool fails = note_try();
    auto noted = std::make_unique<Recording>(captures_);
    recording = noted.get();
    try {
      const c10::impl::IncludeDispatchKeyGuard on(kKey);
      work();
      TORCH_CHECK(!fails, "a capture that was told to fail");
    } catch (...) {
      recording = nullptr;
      noted->finish();
      throw;
    }
    recording = nullptr;
    noted->finish();
    return noted;
  }

  void launch(const std::function<void()>& kernel) override {
    if (recording != nullptr) return recording->note(kernel);
    const Use use(*this);
    kernel();
  }

 private:
  // Takes its time, so that whoever else is on the lane is seen.
  class Use {
   public:
    explicit Use(RecordingLane& lane) : lane_(lane) {
      if (lane_.users_++ > 0) ++lane_.captures_->crowded;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ~Use() { --lane_.users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    RecordingLane& lane_;
  };

  bool note_try() {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    ++captures_->tried;
    return captures_->to_fail > 0 && captures_->to_fail-- > 0;
  }

  std::shared_ptr<Captures> captures_;
  std::atomic<int> users_ = 0;
};

class RecordingBackend final : public StepGraphBackend {
 public:
  explicit RecordingBackend(std::shared_ptr<Captures> captures) : captures_(std::move(captures)) {}
  std::unique_ptr<StepGraphRecorder> open_recorder(const c10::Device&) override {
    return std::make_unique<RecordingLane>(captures_);
  }

 private:
  std::shared_ptr<Captures> captures_;
};

void noted(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard what_it_calls_is_its_own(kKey);
  recording->note(op, keys, stack);
}

}  // namespace

// NOLINTNEXTLINE
TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&noted>()); }

std::shared_ptr<StepGraphBackend> recording_graphs(std::shared_ptr<Captures> captures) {
  return std::make_shared<RecordingBackend>(std::move(captures));
}

}  // namespace hfta::fusion::testing
