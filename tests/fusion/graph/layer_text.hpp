#pragma once
/// Layer lists as one line of text, so that tests can be tables: "conv2d 1 16 3 padding=same as=stem | relu | add
/// stem".

#include <charconv>
#include <sstream>
#include <string>
#include <vector>

#include "fusion/layers.hpp"

namespace hfta::fusion::test {

inline LayerArg parse_arg(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (text.front() == '[') {
    std::vector<std::int64_t> list;
    std::istringstream items(text.substr(1, text.size() - 2));
    for (std::string item; std::getline(items, item, ',');) list.push_back(std::stoll(item));
    return list;
  }
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (std::from_chars(text.data(), end, integer).ptr == end) return integer;
  double real = 0;
  if (std::from_chars(text.data(), end, real).ptr == end) return real;
  return text;
}

/// Each layer's `where` is "net:<line>", counted from 1.
inline std::vector<LayerSpec> parse_layers(const std::string& text) {
  std::vector<LayerSpec> layers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, '|');) {
    std::istringstream words(line);
    LayerSpec spec;
    words >> spec.kind;
    spec.where = "net:" + std::to_string(layers.size() + 1);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (word.starts_with("as=")) {
        spec.name = word.substr(3);
      } else if (equals != std::string::npos) {
        spec.named.emplace_back(word.substr(0, equals), parse_arg(word.substr(equals + 1)));
      } else {
        spec.positional.push_back(parse_arg(word));
      }
    }
    layers.push_back(std::move(spec));
  }
  return layers;
}

inline Graph parse_graph(const std::string& text, const Shape& input, DType dtype = DType::kFloat32) {
  return build_graph(parse_layers(text), input, dtype);
}

}  // namespace hfta::fusion::test
