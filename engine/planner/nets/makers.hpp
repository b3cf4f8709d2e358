#pragma once
/// The functions that build the nets of nets.hpp. Internal to engine/planner.

#include "engine/planner/graph.hpp"

namespace hfta::engine::planner {

[[nodiscard]] Graph vgg19();
[[nodiscard]] Graph resnet200();
[[nodiscard]] Graph inception_v3();
[[nodiscard]] Graph mobilenet_v2();
[[nodiscard]] Graph nasnet_mobile();
/// An encoder and a decoder of so many layers each.
[[nodiscard]] Graph transformer(int layers);
[[nodiscard]] Graph bert_large(int layers);
[[nodiscard]] Graph xlnet_large(int layers);

}  // namespace hfta::engine::planner
