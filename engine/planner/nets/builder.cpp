#include "engine/planner/nets/builder.hpp"

#include <utility>

namespace hfta::engine::planner {
namespace {

int reduced(int size, int kernel, int stride, Edge edge) {
  return edge == Edge::kSame ? (size + stride - 1) / stride : (size - kernel) / stride + 1;
}

Image shape_after(const Image& in, int channels, const Kernel& kernel) {
  return {-1, channels, reduced(in.height, kernel.height, kernel.stride, kernel.edge),
          reduced(in.width, kernel.width, kernel.stride, kernel.edge)};
}

}  // namespace

Image ImageNet::push(const char* kind, const std::vector<Image>& inputs, Image out, double flops, double weights) {
  Op op;
  op.name = kind + std::to_string(graph_.size());
  for (const Image& input : inputs) {
    if (input.op >= 0) op.inputs.push_back(input.op);
  }
  op.flops = flops;
  op.weights = weights;
  op.outputs = out.numbers();
  out.op = graph_.size();
  graph_.ops.push_back(std::move(op));
  return out;
}

Image ImageNet::conv(const Image& in, int channels, const Kernel& kernel, bool bias) {
  const Image out = shape_after(in, channels, kernel);
  const double each = static_cast<double>(kernel.height) * kernel.width * in.channels / kernel.groups;
  return push("conv", {in}, out, 2 * each * out.numbers(), each * channels + (bias ? channels : 0));
}

Image ImageNet::depthwise(const Image& in, Kernel kernel) {
  kernel.groups = in.channels;
  return conv(in, in.channels, kernel);
}

Image ImageNet::norm(const Image& in) { return push("norm", {in}, in, 5 * in.numbers(), 2.0 * in.channels); }
Image ImageNet::activation(const Image& in) { return push("activation", {in}, in, in.numbers(), 0); }

Image ImageNet::pool(const Image& in, const Kernel& kernel) {
  const Image out = shape_after(in, in.channels, kernel);
  return push("pool", {in}, out, out.numbers() * kernel.height * kernel.width, 0);
}

Image ImageNet::pool_all(const Image& in) { return push("pool", {in}, {-1, in.channels, 1, 1}, in.numbers(), 0); }

Image ImageNet::add(const Image& a, const Image& b) { return push("add", {a, b}, a, a.numbers(), 0); }

Image ImageNet::concat(const std::vector<Image>& parts) {
  Image out = parts.front();
  out.channels = 0;
  for (const Image& part : parts) out.channels += part.channels;
  return push("concat", parts, out, 0, 0);
}

Image ImageNet::linear(const Image& in, int features) {
  const double each = in.numbers();
  return push("linear", {in}, {-1, features, 1, 1}, 2 * each * features, (each + 1) * features);
}

}  // namespace hfta::engine::planner
