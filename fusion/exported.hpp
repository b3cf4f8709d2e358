#pragma once
/// Models that torch.export wrote (`.pt2` archives), read without Python and without running anything they contain.
/// This header needs no torch.
///
/// Only `models/*.json`, the raw weights and constants are read; pickles never are. Archives of torch 2.9 and newer
/// store weights raw; the newest version that was tested is 2.15.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fusion/adapters.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {

/// An input or output tensor of the model. shape[0] is kBatch, also where the batch was exported at a fixed size.
struct ExportedTensor {
  std::string name = {};
  Shape shape = {};
  DType dtype = DType::kFloat32;
  /// Outputs only: the position among what the model returns; outputs in one tuple share it.
  std::size_t position = 0;
};

/// A literal of the graph that is to differ between trials.
struct Binding {
  /// "classifier.0.p": module path and the argument's name in the op's schema; `*` matches anything. Every argument
  /// that matches takes the value; a float, or an integer that is a factor or rate, never one that changes shapes.
  /// "(model).other@0.1": those alone that are 0.1 in the file. Without `*` and `@` they must all be the same number.
  std::string path = {};
  double value = 0;        ///< This trial's value.
  std::string where = {};  ///< "digits.yaml:24", for messages.
};

/// How an exported model becomes a graph.
struct ImportOptions {
  DType dtype = DType::kFloat32;  ///< Replaces the float type that the model's parameters have.
  /// Names of parameters that are not trained; `*` matches anything, and a module's path all that is below it.
  std::vector<std::string> freeze = {};
  std::vector<Binding> bind = {};
  /// Adapters that are trained in place of the model's parameters, which are frozen.
  std::optional<Lora> lora = {};
  /// Trained parameters are drawn anew from the distribution that their exported values were drawn from, as recognised
  /// from these values, and norms start without statistics. Values that are the same in every draw (zeros, ones,
  /// constants) stay.
  bool fresh = false;
  /// Not 0: trained parameters start near their exported values, moved by normal numbers of this part of each tensor's
  /// standard deviation. Has no effect if `fresh` is set.
  double jitter = 0;
  std::variant<std::monostate, std::int64_t, std::string> output;  ///< Which output the loss takes; none: the first.
  /// That output is the loss, and need not have the batch as its first dimension.
  bool own_loss = false;
  std::vector<std::string> further = {};  ///< Names of the outputs that follow it in Graph::outputs.
  std::string where = {};                 ///< "digits.yaml:20", for messages.
};

/// Graph::hypers' values, in order, of a graph that is imported with these options.
[[nodiscard]] std::vector<double> hypers_of(const ImportOptions& options);

/// An entry of the model's state dict.
struct StateEntry {
  std::string name = {};
  std::shared_ptr<const StoredTensor> value = {};
};

class ExportedModel {
 public:
  /// Throws Error{kConfig}, one line that begins with the file's name: no such file, not a `.pt2` archive, damaged,
  /// written by a torch whose archives are not read (both versions named, and how to export again), with pickled
  /// weights, or of a form that cannot be trained: control flow, sizes that depend on data, inputs that disagree about
  /// the batch, and the like, named with the line of the user's source. Memory use is proportional to the file's
  /// size.
  [[nodiscard]] static ExportedModel read(const std::filesystem::path& file);
  /// Reads an archive in memory, as read() does a file; messages use `name`.
  [[nodiscard]] static ExportedModel parse(std::span<const std::byte> archive, const std::string& name);

  ExportedModel(ExportedModel&&) noexcept;
  ExportedModel& operator=(ExportedModel&&) noexcept;
  ~ExportedModel();

  [[nodiscard]] const std::vector<ExportedTensor>& inputs() const;
  [[nodiscard]] const std::vector<ExportedTensor>& outputs() const;
  /// The batch size it was exported at, if that is fixed.
  [[nodiscard]] std::optional<std::int64_t> fixed_batch() const;
  [[nodiscard]] const std::string& torch_version() const;
  /// Facts that a user should know, one line each: that no layer is in training mode, or that evaluation replaces
  /// random ops by their mean.
  [[nodiscard]] const std::vector<std::string>& warnings() const;
  /// Changes with every byte of the graph and the weights: 16 hexadecimal digits.
  [[nodiscard]] const std::string& fingerprint() const;
  /// The entries of `state_dict()`, in its order, tied names and unused parameters included.
  [[nodiscard]] const std::vector<StateEntry>& state() const;
  /// Names of the parameters among them; the rest are buffers.
  [[nodiscard]] const std::vector<std::string>& parameters() const;

  /// Entries of the state dict that `other` has with the same values are from now on the other's memory: two exports of
  /// one module hold it once.
  void share_values(const ExportedModel& other);

  /// Graphs of one model share its stored tensors. The code that runs the graph checks whether every op exists.
  /// Throws Error{kConfig}: patterns that match nothing and paths that cannot be bound (nearest named), an output that
  /// is not there or has no batch, and with options.fresh a parameter whose distribution is not recognised.
  [[nodiscard]] Graph graph(const ImportOptions& options) const;
  /// Makes the graph with evaluation by that of `evaluation`, another export of the same module. Its parameters and
  /// buffers are this model's of the same names; only its constants are its own. Also throws Error{kConfig} if the two
  /// differ in inputs, outputs, state dict or batch size, naming the difference.
  [[nodiscard]] Graph graph(const ImportOptions& options, const ExportedModel& evaluation) const;

 private:
  struct Impl;
  explicit ExportedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::fusion
