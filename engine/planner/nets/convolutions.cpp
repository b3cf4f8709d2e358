// VGG-19, ResNet-200 and MobileNetV2.

#include <array>
#include <vector>

#include "engine/planner/nets/builder.hpp"
#include "engine/planner/nets/makers.hpp"

namespace hfta::engine::planner {
namespace {

constexpr Image kPhoto = {-1, 3, 224, 224};

/// He et al., "Identity mappings in deep residual networks", ECCV'16: norm and activation before each convolution.
Image bottleneck(ImageNet& net, const Image& in, int channels, int stride) {
  const Image entry = net.norm(in);
  const int wide = 4 * channels;
  const bool projects = stride != 1 || in.channels != wide;
  const Image beside = projects ? net.conv(entry, wide, square(1, stride)) : in;
  Image x = net.norm(net.conv(entry, channels, square(1)));
  x = net.norm(net.conv(x, channels, square(3, stride)));
  return net.add(net.conv(x, wide, square(1)), beside);
}

}  // namespace

// Simonyan and Zisserman, ICLR'15, table 1, configuration E.
Graph vgg19() {
  ImageNet net("vgg19");
  Image x = kPhoto;
  struct Stage {
    int layers, channels;
  };
  for (const Stage stage : {Stage{2, 64}, Stage{2, 128}, Stage{4, 256}, Stage{4, 512}, Stage{4, 512}}) {
    for (int i = 0; i < stage.layers; ++i) x = net.activation(net.conv(x, stage.channels, square(3), true));
    x = net.pool(x, square(2, 2));
  }
  for (int i = 0; i < 2; ++i) x = net.activation(net.linear(x, 4096));
  x = net.linear(x, 1000);
  return std::move(net).done();
}

// He et al., ECCV'16: ResNet-200 has 3, 24, 36 and 3 bottlenecks.
Graph resnet200() {
  ImageNet net("resnet200");
  Image x = net.pool(net.conv_norm(kPhoto, 64, square(7, 2)), square(3, 2));
  constexpr std::array<int, 4> kBlocks = {3, 24, 36, 3};
  int channels = 64;
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage, channels *= 2) {
    for (int i = 0; i < kBlocks[stage]; ++i) x = bottleneck(net, x, channels, stage > 0 && i == 0 ? 2 : 1);
  }
  x = net.linear(net.pool_all(net.norm(x)), 1000);
  return std::move(net).done();
}

// Sandler et al., CVPR'18, table 2: expansion t, channels c, n blocks, stride s of the first.
Graph mobilenet_v2() {
  ImageNet net("mobilenet-v2");
  struct Stage {
    int t, c, n, s;
  };
  Image x = net.conv_norm(kPhoto, 32, square(3, 2));
  for (const Stage stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                            Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (int i = 0; i < stage.n; ++i) {
      const int stride = i == 0 ? stage.s : 1;
      Image inner = stage.t == 1 ? x : net.conv_norm(x, stage.t * x.channels, square(1));
      inner = net.norm(net.depthwise(inner, square(3, stride)));
      inner = net.conv_norm(inner, stage.c, square(1));
      x = stride == 1 && x.channels == stage.c ? net.add(inner, x) : inner;
    }
  }
  x = net.linear(net.pool_all(net.conv_norm(x, 1280, square(1))), 1000);
  return std::move(net).done();
}

}  // namespace hfta::engine::planner
