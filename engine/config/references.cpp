#include "engine/config/references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "engine/config/keys.hpp"
#include "engine/config/layer_form.hpp"
#include "fusion/layers.hpp"

namespace hfta::engine::configuration {
namespace {

struct Piece {
  bool reference = false;
  std::string text;  ///< Plain text, or the name in ${name}.
};

std::vector<Piece> pieces_of(const std::string& file, const Node& node, const std::string& path) {
  std::vector<Piece> pieces;
  std::string_view rest = node.text;
  while (!rest.empty()) {
    const std::size_t begin = rest.find("${");
    if (begin != 0) pieces.push_back({false, std::string(rest.substr(0, begin))});
    if (begin == std::string_view::npos) break;
    const std::size_t end = rest.find('}', begin);
    if (end == std::string_view::npos || end == begin + 2) {
      fail_at(file, node, path, fmt::format("found '{}', wanted ${{name}}", excerpt(node.text)));
    }
    pieces.push_back({true, std::string(rest.substr(begin + 2, end - begin - 2))});
    rest.remove_prefix(end + 1);
  }
  return pieces;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The row of a value that may stand in a list, or in a map of a list of maps.
const Key* row_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot != std::string_view::npos && all_digits(path.substr(dot + 1))) path = path.substr(0, dot);
  std::string row;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    row = join_path(row, all_digits(key) ? "*" : key);
    path.remove_prefix(std::min(path.size(), key.size() + 1));
  }
  return find_key(row);
}

class Finder {
 public:
  Finder(const std::string& file, const trials::Space& space) : file_(file) {
    for (const trials::Parameter& parameter : space) names_.push_back(parameter.name);
  }

  void walk(const Node& node, const std::string& path) {
    if (path == "model.layers" && node.kind == Node::Kind::kList) {
      for (std::size_t i = 0; i < node.items.size(); ++i) layer(node.items[i], join_path(path, std::to_string(i)));
      return;
    }
    if (path == "model.bind") return bindings(node, path);
    if (node.kind == Node::Kind::kScalar) return scalar(node, path);
    for (std::size_t i = 0; i < node.items.size(); ++i) walk(node.items[i], join_path(path, std::to_string(i)));
    for (const Entry& entry : node.entries) {
      check_key(node, entry, path);
      walk(entry.value, join_path(path, entry.key));
    }
  }

  [[nodiscard]] Uses take() { return std::move(uses_); }

 private:
  void check_key(const Node& node, const Entry& entry, const std::string& path) const {
    if (entry.key.find("${") == std::string::npos) return;
    Node place = node;
    place.line = entry.line;
    fail_at(file_, place, path,
            fmt::format("found the key '{}', wanted a word: ${{name}} stands for values only", excerpt(entry.key)));
  }

  void scalar(const Node& node, const std::string& path) {
    if (node.text.find("${") == std::string::npos) return;
    const Key* row = row_of(path);
    if (row == nullptr && path.find('.') != std::string::npos && !path.starts_with("parameters."))
      return;  // unknown key: the reader says so
    if (row == nullptr || row->searched == Searched::kNo) {
      const std::string wanted = row == nullptr ? "a plain value" : wanted_text(*row);
      const char* why = path.starts_with("train.") ? "all trials of a study share it"
                                                   : "${name} can stand under model, data and train";
      fail_at(file_, node, path, fmt::format("found '{}', wanted {}: {}", excerpt(node.text), wanted, why));
    }
    use(node, path, row->searched != Searched::kShape);
    for (const Piece& piece : pieces_of(file_, node, path)) {
      if (!piece.reference) continue;
      if (row->searched == Searched::kPadded) uses_.padded.insert(piece.text);
      if (row->of_evaluation) uses_.of_evaluation.emplace(piece.text, path);
    }
  }

  // Keys are the model's own names, not the table's.
  void bindings(const Node& node, const std::string& path) {
    for (const Entry& entry : node.entries) {
      check_key(node, entry, path);
      if (entry.value.kind == Node::Kind::kScalar) use(entry.value, join_path(path, entry.key), true);
    }
  }

  void use(const Node& node, const std::string& path, bool per_slot) {
    for (const Piece& piece : pieces_of(file_, node, path)) {
      if (!piece.reference) continue;
      if (std::count(names_.begin(), names_.end(), piece.text) == 0) {
        fail_at(file_, node, path,
                fmt::format("found ${{{}}}, wanted the name of a parameter{}", excerpt(piece.text),
                            suggestion(piece.text, names_)));
      }
      uses_.used.insert(piece.text);
      if (!per_slot) uses_.shape_changing.insert(piece.text);
    }
  }

  void layer(const Node& node, const std::string& path) {
    if (node.kind != Node::Kind::kMap) return layer_argument(node, path, false);
    for (const Entry& entry : node.entries) {
      check_key(node, entry, path);
      for (const Entry& inner : entry.value.entries) check_key(entry.value, inner, join_path(path, entry.key));
    }
    const LayerForm form = layer_form(node);
    if (form.kind == nullptr) return layer_argument(node, path, false);
    const std::string below = join_path(path, form.kind->key);
    const auto& args = fusion::layer_args(form.kind->key);
    for (std::size_t i = 0; i < form.positional.size(); ++i) {
      const std::string place = form.positional.size() > 1 ? join_path(below, std::to_string(i)) : below;
      layer_argument(*form.positional[i], place, i < args.size() && args[i].fusible);
    }
    for (const Entry* entry : form.named) {
      const auto info = std::find_if(args.begin(), args.end(), [&](const auto& arg) { return arg.name == entry->key; });
      layer_argument(entry->value, join_path(below, entry->key), info != args.end() && info->fusible);
    }
  }

  void layer_argument(const Node& node, const std::string& path, bool per_slot) {
    if (node.kind == Node::Kind::kScalar && node.text.find("${") != std::string::npos) use(node, path, per_slot);
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      layer_argument(node.items[i], join_path(path, std::to_string(i)), per_slot);
    }
    for (const Entry& entry : node.entries) layer_argument(entry.value, join_path(path, entry.key), per_slot);
  }

  const std::string& file_;
  std::vector<std::string> names_;
  Uses uses_;
};

}  // namespace

Uses find_references(const std::string& file, const Node& root, const trials::Space& space) {
  Finder finder(file, space);
  finder.walk(root, "");
  return finder.take();
}

namespace {

trials::ParamValue value_of(const std::string& file, const Node& node, const std::string& path, const Piece& piece,
                            bool alone, const Substitutes& trial) {
  if (const trials::ParamValue* value = trials::find_value(trial.params, piece.text)) return *value;
  const auto absent = trial.absent.find(piece.text);
  if (absent == trial.absent.end()) {
    fail_at(file, node, path,
            fmt::format("found ${{{}}}, wanted a trial that has this parameter", printable(piece.text)));
  }
  if (absent->second) return *absent->second;
  if (alone) return {};
  fail_at(file, node, path,
          fmt::format("found ${{{0}}} in trials to which {0} does not apply, wanted parameters.{0}.otherwise",
                      printable(piece.text)));
}

}  // namespace

Node substitute(const std::string& file, const Node& node, const std::string& path, const Substitutes& trial) {
  Node out = node;
  for (std::size_t i = 0; i < out.items.size(); ++i) {
    out.items[i] = substitute(file, node.items[i], join_path(path, std::to_string(i)), trial);
  }
  for (std::size_t i = 0; i < out.entries.size(); ++i) {
    const Entry& entry = node.entries[i];
    out.entries[i].value = substitute(file, entry.value, join_path(path, entry.key), trial);
  }
  if (node.kind != Node::Kind::kScalar || node.text.find("${") == std::string::npos) return out;
  const std::vector<Piece> pieces = pieces_of(file, node, path);
  std::string word;
  for (const Piece& piece : pieces) {
    if (!piece.reference) {
      word += piece.text;
      continue;
    }
    if (out.from.empty()) out.from = piece.text;
    out.value = value_of(file, node, path, piece, pieces.size() == 1, trial);
    word += trials::to_text(out.value);
  }
  if (pieces.size() > 1) out.value = word;
  return out;
}

}  // namespace hfta::engine::configuration
