// Inception-v3: Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR'16, table 1, with the
// widths of the authors' released model; without the auxiliary head.

#include <vector>

#include "engine/planner/nets/builder.hpp"
#include "engine/planner/nets/makers.hpp"

namespace hfta::engine::planner {
namespace {

/// The module of figure 5, 35 x 35.
Image module_a(ImageNet& net, const Image& in, int pooled) {
  const Image one = net.conv_norm(in, 64, square(1));
  const Image five = net.conv_norm(net.conv_norm(in, 48, square(1)), 64, square(5));
  Image three = net.conv_norm(net.conv_norm(in, 64, square(1)), 96, square(3));
  three = net.conv_norm(three, 96, square(3));
  const Image pool = net.conv_norm(net.pool(in, square(3)), pooled, square(1));
  return net.concat({one, five, three, pool});
}

/// Reduces the image to 17 x 17.
Image reduction_b(ImageNet& net, const Image& in) {
  const Kernel halve = square(3, 2, Edge::kValid);
  const Image three = net.conv_norm(in, 384, halve);
  Image twice = net.conv_norm(net.conv_norm(in, 64, square(1)), 96, square(3));
  twice = net.conv_norm(twice, 96, halve);
  return net.concat({three, twice, net.pool(in, halve)});
}

constexpr Kernel kRow7 = {1, 7, 1, Edge::kSame, 1}, kColumn7 = {7, 1, 1, Edge::kSame, 1};

/// The module of figure 6, 17 x 17, with `c` channels within.
Image module_c(ImageNet& net, const Image& in, int c) {
  const Image one = net.conv_norm(in, 192, square(1));
  Image seven = net.conv_norm(net.conv_norm(in, c, square(1)), c, kRow7);
  seven = net.conv_norm(seven, 192, kColumn7);
  Image twice = net.conv_norm(in, c, square(1));
  for (const Kernel& kernel : {kColumn7, kRow7, kColumn7}) twice = net.conv_norm(twice, c, kernel);
  twice = net.conv_norm(twice, 192, kRow7);
  const Image pool = net.conv_norm(net.pool(in, square(3)), 192, square(1));
  return net.concat({one, seven, twice, pool});
}

/// Reduces the image to 8 x 8.
Image reduction_d(ImageNet& net, const Image& in) {
  const Kernel halve = square(3, 2, Edge::kValid);
  const Image three = net.conv_norm(net.conv_norm(in, 192, square(1)), 320, halve);
  Image seven = net.conv_norm(in, 192, square(1));
  for (const Kernel& kernel : {kRow7, kColumn7}) seven = net.conv_norm(seven, 192, kernel);
  seven = net.conv_norm(seven, 192, halve);
  return net.concat({three, seven, net.pool(in, halve)});
}

/// The module of figure 7, 8 x 8.
Image module_e(ImageNet& net, const Image& in) {
  const Kernel row = {1, 3, 1, Edge::kSame, 1}, column = {3, 1, 1, Edge::kSame, 1};
  const Image one = net.conv_norm(in, 320, square(1));
  const Image three = net.conv_norm(in, 384, square(1));
  const Image twice = net.conv_norm(net.conv_norm(in, 448, square(1)), 384, square(3));
  std::vector<Image> parts = {one};
  for (const Image& from : {three, twice}) {
    for (const Kernel& kernel : {row, column}) parts.push_back(net.conv_norm(from, 384, kernel));
  }
  parts.push_back(net.conv_norm(net.pool(in, square(3)), 192, square(1)));
  return net.concat(parts);
}

}  // namespace

Graph inception_v3() {
  ImageNet net("inception-v3");
  Image x = net.conv_norm({-1, 3, 299, 299}, 32, square(3, 2, Edge::kValid));
  x = net.conv_norm(net.conv_norm(x, 32, square(3, 1, Edge::kValid)), 64, square(3));
  x = net.conv_norm(net.pool(x, square(3, 2, Edge::kValid)), 80, square(1));
  x = net.pool(net.conv_norm(x, 192, square(3, 1, Edge::kValid)), square(3, 2, Edge::kValid));
  for (const int pooled : {32, 64, 64}) x = module_a(net, x, pooled);
  x = reduction_b(net, x);
  for (const int c : {128, 160, 160, 192}) x = module_c(net, x, c);
  x = reduction_d(net, x);
  for (int i = 0; i < 2; ++i) x = module_e(net, x);
  x = net.linear(net.pool_all(x), 1000);
  return std::move(net).done();
}

}  // namespace hfta::engine::planner
