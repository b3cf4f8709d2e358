// NASNet-A (4 @ 1056), the mobile one: Zoph et al., "Learning transferable architectures for scalable image
// recognition", CVPR'18, figure 4 and appendix A. HeteroG does not say which NASNet it trained.

#include <vector>

#include "engine/planner/nets/builder.hpp"
#include "engine/planner/nets/makers.hpp"

namespace hfta::engine::planner {
namespace {

/// A separable convolution, twice: activation, a kernel for each channel, 1 x 1, norm.
Image separable(ImageNet& net, const Image& in, int channels, int size, int stride = 1) {
  Image x = net.depthwise(net.activation(in), square(size, stride));
  x = net.norm(net.conv(x, channels, square(1)));
  x = net.depthwise(x, square(size));
  return net.norm(net.conv(x, channels, square(1)));
}

struct Inputs {
  Image before, last;  ///< Outputs of the cell before the last one, and of the last one.
};

/// Both inputs, brought to the cell's size and channels.
Inputs adjusted(ImageNet& net, const Inputs& in, int channels) {
  Image before = in.before;
  if (before.op < 0) before = in.last;  // the first cell has one input
  if (before.height != in.last.height) {
    // Two paths of half the channels, each of every second pixel.
    std::vector<Image> paths;
    for (int i = 0; i < 2; ++i) paths.push_back(net.conv(net.pool(before, square(1, 2)), channels / 2, square(1)));
    before = net.norm(net.concat(paths));
  } else if (before.channels != channels) {
    before = net.norm(net.conv(net.activation(before), channels, square(1)));
  }
  return {before, net.norm(net.conv(net.activation(in.last), channels, square(1)))};
}

Image normal_cell(ImageNet& net, const Inputs& in, int c) {
  const auto [p, h] = adjusted(net, in, c);
  const Image x1 = net.add(separable(net, h, c, 5), separable(net, p, c, 3));
  const Image x2 = net.add(separable(net, p, c, 5), separable(net, p, c, 3));
  const Image x3 = net.add(net.pool(h, square(3)), p);
  const Image x4 = net.add(net.pool(p, square(3)), net.pool(p, square(3)));
  const Image x5 = net.add(separable(net, h, c, 3), h);
  return net.concat({p, x1, x2, x3, x4, x5});
}

Image reduction_cell(ImageNet& net, const Inputs& in, int c) {
  const auto [p, h] = adjusted(net, in, c);
  const Kernel halve = square(3, 2);
  const Image x1 = net.add(separable(net, h, c, 5, 2), separable(net, p, c, 7, 2));
  const Image x2 = net.add(net.pool(h, halve), separable(net, p, c, 7, 2));
  const Image x3 = net.add(net.pool(h, halve), separable(net, p, c, 5, 2));
  const Image x4 = net.add(net.pool(x1, square(3)), x2);
  const Image x5 = net.add(separable(net, x1, c, 3), net.pool(h, halve));
  return net.concat({x2, x3, x4, x5});
}

}  // namespace

Graph nasnet_mobile() {
  ImageNet net("nasnet");
  constexpr int kFilters = 44, kRepeats = 4;
  Inputs x;
  x.last = net.conv_norm({-1, 3, 224, 224}, 32, square(3, 2, Edge::kValid));
  const auto next = [&](Image image) { x = {x.last, image}; };
  next(reduction_cell(net, x, kFilters / 4));
  next(reduction_cell(net, x, kFilters / 2));
  for (int stage = 0, c = kFilters; stage < 3; ++stage, c *= 2) {
    if (stage > 0) next(reduction_cell(net, x, c));
    for (int i = 0; i < kRepeats; ++i) next(normal_cell(net, x, c));
  }
  const Image features = net.linear(net.pool_all(net.activation(x.last)), 1000);
  static_cast<void>(features);
  return std::move(net).done();
}

}  // namespace hfta::engine::planner
