// Columns of convolutions and the images of columns, by the kernels on the CPU (fake/cuda_runtime.h), against plain
// loops that go through windows: numbers are the same, and sums are made in the same order.
#include "fusion/cuda/columns_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t images_of(const ColumnShape& s) { return static_cast<std::size_t>(s.parts) * s.images; }
std::size_t rows_of(const ColumnShape& s) {
  return static_cast<std::size_t>(s.channels) * s.kernel.h * s.kernel.w + (s.ones ? 1 : 0);
}
std::size_t numbers_of_images(const ColumnShape& s) {
  return s.slots * images_of(s) * s.channels * s.image.h * s.image.w;
}
std::size_t numbers_of_columns(const ColumnShape& s) {
  return s.slots * images_of(s) * rows_of(s) * s.windows.h * s.windows.w;
}

ColumnShape with_windows(ColumnShape s) {
  s.windows.h = (s.image.h + 2 * s.padding.h - s.dilation.h * (s.kernel.h - 1) - 1) / s.stride.h + 1;
  s.windows.w = (s.image.w + 2 * s.padding.w - s.dilation.w * (s.kernel.w - 1) - 1) / s.stride.w + 1;
  return s;
}

// Slots, parts, images, channels, image, (windows,) kernel, stride, padding, dilation.
std::vector<ColumnShape> shapes() {
  std::vector<ColumnShape> all;
  for (const int parts : {1, 2}) {
    all.push_back({2, parts, 3, 2, {7, 9}, {}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false});
    all.push_back({1, parts, 2, 9, {8, 5}, {}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false});
    all.push_back({2, parts, 1, 5, {11, 12}, {}, {5, 2}, {1, 2}, {2, 0}, {2, 3}, false});
    all.push_back({2, parts, 2, 3, {6, 7}, {}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, false});
    all.push_back({3, parts, 2, 2, {9, 7}, {}, {2, 1}, {3, 4}, {0, 2}, {1, 1}, false});  // pixels in no window
    all.push_back({1, parts, 1, 1, {7, 8}, {}, {7, 7}, {1, 1}, {3, 3}, {1, 1}, false});
  }
  for (ColumnShape& s : all) s = with_windows(s);
  return all;
}

template <typename T>
Pixels<T> contiguous(const ColumnShape& s, T* x) {
  const std::size_t plane = static_cast<std::size_t>(s.image.h) * s.image.w, image = plane * s.channels;
  return {x, image * images_of(s), image, plane, static_cast<std::size_t>(s.image.w), 1};
}
// [c, C, N, H, W], as a layer before gives it.
template <typename T>
Pixels<T> channels_outside(const ColumnShape& s, T* x) {
  const std::size_t plane = static_cast<std::size_t>(s.image.h) * s.image.w, channel = plane * images_of(s);
  return {x, channel * s.channels, plane, channel, static_cast<std::size_t>(s.image.w), 1};
}
// [N, H, W, c, C]
template <typename T>
Pixels<T> channels_last(const ColumnShape& s, T* x) {
  const std::size_t pixel = static_cast<std::size_t>(s.slots) * s.channels, row = pixel * s.image.w;
  return {x, static_cast<std::size_t>(s.channels), row * s.image.h, 1, row, pixel};
}
template <typename T>
Pixels<T> laid_out(int layout, const ColumnShape& s, T* x) {
  return layout == 0 ? contiguous(s, x) : layout == 1 ? channels_outside(s, x) : channels_last(s, x);
}

// Calls of(a number's place in columns, in the images; -1: padding) for all windows.
template <typename T, typename Of>
void for_windows(const ColumnShape& s, const Pixels<T>& at, Of of) {
  const std::size_t windows = static_cast<std::size_t>(s.windows.h) * s.windows.w, taps = s.kernel.h * s.kernel.w;
  for (std::size_t p = 0; p < s.slots * images_of(s) * s.channels * windows; ++p) {
    const std::size_t window = p % windows, channel = p / windows % s.channels,
                      image = p / windows / s.channels % images_of(s), slot = p / windows / s.channels / images_of(s);
    const std::size_t part = slot * s.parts + image / s.images, in_part = image % s.images;
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const int h = static_cast<int>(window) / s.windows.w * s.stride.h - s.padding.h +
                    static_cast<int>(tap) / s.kernel.w * s.dilation.h;
      const int w = static_cast<int>(window) % s.windows.w * s.stride.w - s.padding.w +
                    static_cast<int>(tap) % s.kernel.w * s.dilation.w;
      const bool inside = h >= 0 && h < s.image.h && w >= 0 && w < s.image.w;
      const std::size_t row = part * rows_of(s) + channel * taps + tap;
      const std::size_t pixel = slot * at.slot + image * at.image + channel * at.channel + h * at.row + w * at.column;
      of((row * s.images + in_part) * windows + window, inside ? static_cast<std::int64_t>(pixel) : -1);
    }
  }
}

template <typename T>
std::vector<T> drawn(std::size_t count) {
  std::vector<double> numbers(count);
  fill_normal(numbers.data(), count, 1, 2, 3);
  return {numbers.begin(), numbers.end()};
}

template <typename T>
void check_columns(const ColumnShape& s, const Pixels<const T>& in) {
  std::vector<T> found(numbers_of_columns(s), static_cast<T>(kNan)), wanted(found.size(), T{1});
  for_windows(s, in, [&](std::size_t to, std::int64_t from) { wanted[to] = from < 0 ? T{0} : in.x[from]; });
  columns(s, in, found.data(), nullptr);
  CHECK(found == wanted);
}

template <typename T>
void check_images(const ColumnShape& s, int layout) {
  const std::vector<T> given = drawn<T>(numbers_of_columns(s));
  std::vector<T> found(numbers_of_images(s), static_cast<T>(kNan)), wanted(found.size(), T{0});
  for_windows(s, laid_out(layout, s, wanted.data()), [&](std::size_t from, std::int64_t to) {
    if (to >= 0) wanted[static_cast<std::size_t>(to)] += given[from];
  });
  images(s, given.data(), laid_out(layout, s, found.data()), nullptr);
  CHECK(found == wanted);
}

}  // namespace

TEST_CASE("columns hold what weights are multiplied with, in all layouts of the images") {
  const int layout = GENERATE(0, 1, 2);
  const bool ones = GENERATE(false, true);
  CAPTURE(layout, ones);
  for (ColumnShape s : shapes()) {
    s.ones = ones;
    CAPTURE(s.slots, s.parts, s.image.h, s.kernel.h);
    const std::vector<double> x = drawn<double>(numbers_of_images(s));
    check_columns(s, laid_out(layout, s, x.data()));
    const std::vector<float> less_exact = drawn<float>(numbers_of_images(s));
    check_columns(s, laid_out(layout, s, less_exact.data()));
  }
}

TEST_CASE("columns of images that slots share are each slot's") {
  ColumnShape s = shapes().front();
  const std::vector<double> x = drawn<double>(numbers_of_images(s));
  Pixels<const double> in = contiguous(s, x.data());
  in.slot = 0;
  check_columns(s, in);
}

TEST_CASE("a pixel is the sum of its numbers in columns, in the order of the windows") {
  const int layout = GENERATE(0, 1, 2);
  CAPTURE(layout);
  for (const ColumnShape& s : shapes()) {
    CAPTURE(s.slots, s.parts, s.image.h, s.kernel.h);
    check_images<double>(s, layout);
    check_images<float>(s, layout);
  }
}

TEST_CASE("a slot's NaN stays in its columns, and in its images") {
  const ColumnShape s = shapes().front();
  std::vector<double> x = drawn<double>(numbers_of_images(s));
  std::fill_n(x.begin(), x.size() / 2, kNan);
  std::vector<double> made(numbers_of_columns(s), kNan), back(x.size(), kNan);
  columns(s, contiguous(s, const_cast<const double*>(x.data())), made.data(), nullptr);
  const auto is_nan = [](double number) { return std::isnan(number); };
  CHECK(std::any_of(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(made.size() / 2), is_nan));
  CHECK(std::none_of(made.begin() + static_cast<std::ptrdiff_t>(made.size() / 2), made.end(), is_nan));
  images(s, made.data(), contiguous(s, back.data()), nullptr);
  CHECK(std::all_of(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(back.size() / 2), is_nan));
  CHECK(std::none_of(back.begin() + static_cast<std::ptrdiff_t>(back.size() / 2), back.end(), is_nan));
}

}  // namespace hfta::fusion::cuda
