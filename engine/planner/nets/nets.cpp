#include "engine/planner/nets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/number_text.hpp"
#include "base/text.hpp"
#include "engine/planner/nets/makers.hpp"

namespace hfta::engine::planner {

const std::vector<Net>& nets() {
  static const std::vector<Net> all = {
      {"vgg19", "Simonyan and Zisserman, ICLR'15", 143.7, 192, vgg19},
      {"resnet200", "He et al., ECCV'16", 64.7, 192, resnet200},
      {"inception-v3", "Szegedy et al., CVPR'16", 23.8, 192, inception_v3},
      {"mobilenet-v2", "Sandler et al., CVPR'18", 3.5, 192, mobilenet_v2},
      {"nasnet", "Zoph et al., CVPR'18", 5.3, 192, nasnet_mobile},
      {"transformer-6", "Vaswani et al., NIPS'17", 65, 720, [] { return transformer(6); }},
      {"bert-large-24", "Devlin et al., NAACL'19", 340, 48, [] { return bert_large(24); }},
      {"xlnet-large-24", "Yang et al., NeurIPS'19", 360, 48, [] { return xlnet_large(24); }},
      // This net is deeper than the published one.
      {"transformer-24", "Vaswani et al., NIPS'17", 0, 120, [] { return transformer(24); }},
      {"bert-large-48", "Devlin et al., NAACL'19", 0, 24, [] { return bert_large(48); }},
      {"xlnet-large-48", "Yang et al., NeurIPS'19", 0, 24, [] { return xlnet_large(48); }}};
  return all;
}

Graph net_named(const std::string& word) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  const std::string name = word.substr(0, colon);
  std::vector<std::string> names;
  for (const Net& net : nets()) names.push_back(net.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(ErrorKind::kConfig, fmt::format("--graph: found '{}', wanted a .yaml or .json file, or a net: {}",
                                                excerpt(word), join(names)));
  }
  const Net& net = nets()[static_cast<std::size_t>(found - names.begin())];
  Graph graph = net.make();
  graph.samples = net.samples;
  if (colon < word.size()) {
    const auto samples = parse_number<int>(std::string_view(word).substr(colon + 1));
    if (!samples || *samples < 1 || *samples > kMostSamples) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("--graph: found '{}', wanted {}:SAMPLES, 1 to {}", excerpt(word), name, kMostSamples));
    }
    graph.samples = *samples;
  }
  return graph;
}

const std::vector<PaperRow>& paper_rows() {
  static const std::vector<PaperRow> rows = {{"vgg19:192", .462, .907, .653, .853, .591},
                                             {"resnet200:192", .693, 1.431, .955, 1.273, .897},
                                             {"inception-v3:192", .528, .933, .701, .911, .659},
                                             {"mobilenet-v2:192", .232, .413, .368, .394, .325},
                                             {"nasnet:192", .862, 1.244, 1.028, 1.203, 1.116},
                                             {"transformer-6:720", .298, .961, .496, .931, .361},
                                             {"bert-large-24:48", .451, .612, 1.064, .795, 1.049},
                                             {"xlnet-large-24:48", .851, 1.232, 1.551, 1.283, 1.566},
                                             {"resnet200:384", 2.285, 0, 0, 0, 0},
                                             {"transformer-24:120", 1.147, 0, 0, 0, 0},
                                             {"bert-large-24:96", 2.241, 0, 0, 0, 0},
                                             {"xlnet-large-24:96", 4.254, 0, 0, 0, 0},
                                             {"bert-large-48:24", 1.892, 0, 0, 0, 0},
                                             {"xlnet-large-48:24", 3.468, 0, 0, 0, 0}};
  return rows;
}

}  // namespace hfta::engine::planner
