#pragma once
/// Builds graphs layer by layer. Internal to engine/planner/nets.

#include <string>
#include <vector>

#include "engine/planner/graph.hpp"

namespace hfta::engine::planner {

/// The output of an op: a number, and the sizes of an image (C, H, W).
struct Image {
  int op = -1;  ///< -1: the data.
  int channels = 0, height = 0, width = 0;
  [[nodiscard]] double numbers() const { return static_cast<double>(channels) * height * width; }
};

/// How an image is cut at its edges.
enum class Edge { kSame, kValid };

struct Kernel {
  int height = 1, width = 1, stride = 1;
  Edge edge = Edge::kSame;
  int groups = 1;
};
[[nodiscard]] inline Kernel square(int size, int stride = 1, Edge edge = Edge::kSame) {
  return {size, size, stride, edge, 1};
}

class ImageNet {
 public:
  explicit ImageNet(std::string name) { graph_.name = std::move(name); }

  [[nodiscard]] Image conv(const Image& in, int channels, const Kernel& kernel, bool bias = false);
  /// One kernel for each channel.
  [[nodiscard]] Image depthwise(const Image& in, Kernel kernel);
  /// Batch norm, with an activation.
  [[nodiscard]] Image norm(const Image& in);
  [[nodiscard]] Image conv_norm(const Image& in, int channels, const Kernel& kernel) {
    return norm(conv(in, channels, kernel));
  }
  [[nodiscard]] Image activation(const Image& in);
  [[nodiscard]] Image pool(const Image& in, const Kernel& kernel);
  [[nodiscard]] Image pool_all(const Image& in);
  /// Adds two images of one size.
  [[nodiscard]] Image add(const Image& a, const Image& b);
  /// Concatenates images along channels.
  [[nodiscard]] Image concat(const std::vector<Image>& parts);
  [[nodiscard]] Image linear(const Image& in, int features);

  [[nodiscard]] Graph done() && { return std::move(graph_); }

 private:
  Image push(const char* kind, const std::vector<Image>& inputs, Image out, double flops, double weights);
  Graph graph_;
};

}  // namespace hfta::engine::planner
