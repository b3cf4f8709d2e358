// The codec's kernels on a GPU: the CPU's bytes and values, and how fast.
#include "bench/codec/cuda.hpp"

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/codec/activations.hpp"
#include "fusion/codec/codec.hpp"
#include "fusion/cuda/codec_kernels.hpp"

namespace hfta::bench {
namespace {

using namespace hfta::fusion;

constexpr std::size_t kBuffers = 4;  // that take turns: together they are larger than any L2 cache
constexpr std::size_t kRounds = 60, kWarmRounds = 10;
constexpr unsigned kSeconds = 240;  // until the process ends itself

void want(bool held, const std::string& what) {
  if (!held) throw std::runtime_error(what);
}

void check(cudaError_t error, const char* what) {
  want(error == cudaSuccess, std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n) : n_(n) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<std::size_t>(n, 1) * sizeof(T)), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* get() const { return data_; }
  void set(const std::vector<T>& values) const {
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copying to the GPU");
  }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(n_);
    check(cudaMemcpy(all.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
    return all;
  }

 private:
  T* data_ = nullptr;
  std::size_t n_;
};

// Slots with their bounds, and all that coding them needs.
struct Slots {
  std::size_t n, count, stride;
  std::vector<float> host;
  std::vector<float> bounds;
  DeviceArray<float> x, back, device_bounds;
  DeviceArray<unsigned char> bytes;
  DeviceArray<std::uint64_t> sizes, workspace;

  Slots(std::vector<float> values, std::vector<float> of_slots)
      : n(values.size() / of_slots.size()),
        count(of_slots.size()),
        stride((most_encoded_bytes(n) + 15) / 16 * 16),
        host(std::move(values)),
        bounds(std::move(of_slots)),
        x(host.size()),
        back(host.size()),
        device_bounds(count),
        bytes(stride * count),
        sizes(count),
        workspace(cuda::codec_workspace(n, static_cast<int>(count))) {
    x.set(host);
    device_bounds.set(bounds);
  }
  void encode_on(cudaStream_t stream) const {
    cuda::encode_slots({x.get(), n, static_cast<int>(count)}, device_bounds.get(), {bytes.get(), stride}, sizes.get(),
                       workspace.get(), stream);
  }
  void decode_on(cudaStream_t stream) const {
    cuda::decode_slots({bytes.get(), stride}, {back.get(), n, static_cast<int>(count)}, workspace.get(), stream);
  }
  void forget() const {
    check(cudaMemset(bytes.get(), 0xa5, stride * count), "cudaMemset");
    check(cudaMemset(back.get(), 0xa5, host.size() * sizeof(float)), "cudaMemset");
  }
};

// That the GPU holds the bytes and values that the CPU's coder makes of the slots. Returns their bytes.
std::size_t compare(const Slots& slots) {
  const std::vector<unsigned char> bytes = slots.bytes.values();
  const std::vector<float> back = slots.back.values();
  const std::vector<std::uint64_t> sizes = slots.sizes.values();
  std::vector<std::byte> room(most_encoded_bytes(slots.n));
  std::vector<float> values(slots.n);
  std::size_t all = 0;
  for (std::size_t b = 0; b < slots.count; ++b) {
    const std::string where = std::to_string(slots.n) + " values, bound " + std::to_string(slots.bounds[b]) + ": ";
    const std::size_t size = encode(std::span(slots.host).subspan(b * slots.n, slots.n), slots.bounds[b], room);
    decode(std::span(room).first(size), values);
    want(sizes[b] == size, where + "another size than the CPU's");
    want(std::memcmp(bytes.data() + b * slots.stride, room.data(), size) == 0, where + "other bytes than the CPU's");
    want(slots.n == 0 || std::memcmp(back.data() + b * slots.n, values.data(), slots.n * sizeof(float)) == 0,
         where + "other values than the CPU's");
    all += size;
  }
  return all;
}

std::size_t check_slots(const Slots& slots, cudaStream_t stream) {
  slots.forget();
  slots.encode_on(stream);
  slots.decode_on(stream);
  check(cudaStreamSynchronize(stream), "coding");
  return compare(slots);
}

// Sizes and values that are out of the ordinary, each under bounds of every kind.
void check_odd_slots(cudaStream_t stream) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> bounds = {0.01F, 0.0F, 0.5F, nan, 1e-4F, infinity, 1e20F, -1.0F, 1e-9F};
  for (const std::size_t n : {0, 1, 31, 32, 33, 100, 127, 4095, 4096, 4097, 100001, 1000000}) {
    std::vector<float> x = activations(n * bounds.size(), n % 2 == 0);
    const float odd[] = {nan, infinity, -infinity, 3e38F, 1e-40F, -0.0F, 4194304.0F, -1e15F};
    for (std::size_t i = 0; i < x.size(); i += 997) x[i] = odd[i % 8];
    check_slots(Slots(std::move(x), bounds), stream);
  }
  std::printf("odd sizes, values and bounds: equal\n");
}

// That a captured graph of both codes what its slots hold when it is launched, again and again.
void check_graph(cudaStream_t stream) {
  Slots slots(activations(2400000, true), std::vector<float>(8, 0.01F));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  check_slots(slots, stream);  // kernels are loaded
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "beginning a capture");
  slots.encode_on(stream);
  slots.decode_on(stream);
  check(cudaStreamEndCapture(stream, &graph), "ending a capture");
  check(cudaGraphInstantiate(&made, graph, 0), "instantiating a graph");
  for (int launch = 0; launch < 20; ++launch) {
    for (float& v : slots.host) v *= 1.1F;
    slots.x.set(slots.host);
    slots.forget();
    check(cudaGraphLaunch(made, stream), "launching a graph");
    check(cudaStreamSynchronize(stream), "running a graph");
    compare(slots);
  }
  check(cudaGraphExecDestroy(made), "destroying a graph");
  check(cudaGraphDestroy(graph), "destroying a graph");
  std::printf("a CUDA graph launched 20 times: equal\n");
}

// Median GB/s of `work` on one buffer after the other, each of so many bytes.
template <typename Work>
double rate(std::size_t bytes, cudaStream_t stream, Work work) {
  std::vector<cudaEvent_t> events(2 * (kRounds + kWarmRounds));
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "creating an event");
  for (std::size_t i = 0; i < events.size(); i += 2) {
    check(cudaEventRecord(events[i], stream), "recording an event");
    work(i / 2 % kBuffers);
    check(cudaEventRecord(events[i + 1], stream), "recording an event");
  }
  check(cudaStreamSynchronize(stream), "measuring");
  std::vector<float> times;
  for (std::size_t i = 2 * kWarmRounds; i < events.size(); i += 2) {
    check(cudaEventElapsedTime(&times.emplace_back(), events[i], events[i + 1]), "reading an event");
  }
  for (const cudaEvent_t event : events) check(cudaEventDestroy(event), "destroying an event");
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(kRounds / 2), times.end());
  return static_cast<double>(bytes) / (static_cast<double>(times[kRounds / 2]) * 1e-3) / 1e9;
}

void measure(const std::vector<float>& x, std::size_t count, float bound, cudaStream_t stream) {
  std::vector<std::unique_ptr<Slots>> buffers;
  for (std::size_t k = 0; k < kBuffers; ++k) {
    buffers.push_back(std::make_unique<Slots>(x, std::vector<float>(count, bound)));
  }
  const std::size_t bytes = x.size() * sizeof(float);
  const double in = rate(bytes, stream, [&](std::size_t k) { buffers[k]->encode_on(stream); });
  const double out = rate(bytes, stream, [&](std::size_t k) { buffers[k]->decode_on(stream); });
  std::size_t size = 0;
  for (const auto& slots : buffers) size = compare(*slots);  // of the last rounds, which ran at full speed
  const double copied = rate(bytes, stream, [&](std::size_t k) {
    check(cudaMemcpyAsync(buffers[k]->back.get(), buffers[k]->x.get(), bytes, cudaMemcpyDeviceToDevice, stream),
          "copying");
  });
  std::printf("%5zu  %8zu  %8g  %6.2f  %8.0f  %8.0f  %8.0f\n", count, x.size() / count, static_cast<double>(bound),
              static_cast<double>(bytes) / static_cast<double>(size), in, out, copied);
  std::fflush(stdout);
}

void measure_all(cudaStream_t stream) {
  std::printf("GB/s of floats, relu of normal numbers, %zu buffers in turn, median of %zu\n", kBuffers, kRounds);
  std::printf("%5s  %8s  %8s  %6s  %8s  %8s  %8s\n", "slots", "values", "bound", "ratio", "encode", "decode", "memcpy");
  constexpr std::size_t kValues = std::size_t{1} << 24;
  const std::vector<float> x = activations(kValues, true);
  for (const std::size_t count : {1, 16, 256}) {
    for (const float bound : {0.1F, 0.01F, 0.001F, 0.0F}) measure(x, count, bound, stream);
  }
}

void time_is_up(int /*signal*/) {
  constexpr char kText[] = "\nFAIL: not done in time\n";
  static_cast<void>(!::write(STDOUT_FILENO, kText, sizeof kText - 1));
  ::_exit(1);
}

}  // namespace

int on_cuda() {
  std::signal(SIGALRM, time_is_up);
  ::alarm(kSeconds);
  try {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, 0), "looking at the GPU");
    std::printf("%s\n", device.name);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "creating a stream");  // one that waits for copies by cudaMemcpy, and these for it
    check_odd_slots(stream);
    check_graph(stream);
    measure_all(stream);
  } catch (const std::exception& error) {
    std::printf("FAIL: %s\n", error.what());
    return 1;
  }
  std::printf("PASS\n");
  return 0;
}

}  // namespace hfta::bench
