// How fast one core, or a GPU (--device cuda), encodes and decodes activations, beside memcpy. bench/README.md says how
// to run it.
#include "fusion/codec/codec.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "bench/codec/activations.hpp"
#include "bench/codec/cuda.hpp"
#include "fusion/simd/multiversion.hpp"

namespace {

using namespace hfta;
using namespace hfta::fusion;

constexpr std::size_t kMegabyte = 1000000;
constexpr int kRounds = 15;

// Median seconds of work(), of this process's own time: others may use the machine.
template <typename Work>
double seconds(Work work) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const std::clock_t begin = std::clock();
    work();
    times.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

void measure(std::size_t bytes, bool relu, float bound) {
  const std::vector<float> x = bench::activations(bytes / sizeof(float), relu);
  std::vector<float> back(x.size());
  std::vector<std::byte> coded(most_encoded_bytes(x.size()));
  const int repeats = static_cast<int>(std::max<std::size_t>(1, 64 * kMegabyte / bytes));
  std::size_t size = 0;
  const auto rate = [&](auto work) {
    const double time = seconds([&] {
      for (int r = 0; r < repeats; ++r) work();
    });
    return static_cast<double>(bytes) * repeats / time / 1e9;
  };
  const double copied = rate([&] { std::memcpy(back.data(), x.data(), bytes); });
  const double in = rate([&] { size = encode(x, bound, coded); });
  const double out = rate([&] { decode(std::span(coded).first(size), back); });
  std::printf("%8.2f  %-6s  %8g  %6.2f  %8.2f  %8.2f  %8.2f\n", static_cast<double>(bytes) / kMegabyte,
              relu ? "relu" : "normal", static_cast<double>(bound),
              static_cast<double>(bytes) / static_cast<double>(size), in, out, copied);
}

int on_cpu() {
  std::printf("instruction set %s; GB/s of floats, one thread, median of %d\n", simd::name_of(simd::instruction_set()),
              kRounds);
  std::printf("%8s  %-6s  %8s  %6s  %8s  %8s  %8s\n", "MB", "values", "bound", "ratio", "encode", "decode", "memcpy");
  for (const std::size_t bytes : {kMegabyte / 4, 64 * kMegabyte}) {
    for (const bool relu : {true, false}) {
      for (const float bound : {0.1F, 0.01F, 0.001F}) measure(bytes, relu, bound);
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.empty()) return on_cpu();
  if (arguments == std::vector<std::string>{"--device", "cuda"}) return bench::on_cuda();
  std::fprintf(stderr, "usage: hfta_bench_codec [--device cuda]\n");
  return 2;
}
