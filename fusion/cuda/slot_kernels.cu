// The optimizer: all parameters of all slots in one launch, or in a few where they are very many.
#include <algorithm>

#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/cuda/warps.cuh"

namespace hfta::fusion::cuda {
namespace {

constexpr int kRows = 72;                // rows of a launch: the table has to fit into 4 KiB of kernel arguments
constexpr std::size_t kElements = 2048;  // elements of a block

// Parameters by value: so they are part of the launch, and nothing has to be copied to the device before it.
template <typename T>
struct Table {
  SlotRows<T> rows[kRows];
  unsigned first_block[kRows + 1];
  unsigned short groups[kRows];
  int count;
};

unsigned blocks_of(std::size_t n) { return static_cast<unsigned>((n + kElements - 1) / kElements); }

// Calls each(table, grid, blocks in front of it) for the parameters, kRows at a time.
template <typename T, typename Each>
void in_tables(const SlotParameters<T>& parameters, Each each) {
  unsigned before = 0;
  for (int begin = 0; begin < parameters.count; begin += kRows) {
    Table<T> table{};
    table.count = std::min(kRows, parameters.count - begin);
    for (int k = 0; k < table.count; ++k) {
      table.rows[k] = parameters.rows[begin + k];
      table.groups[k] = parameters.groups[begin + k];
      table.first_block[k + 1] = table.first_block[k] + blocks_of(table.rows[k].n);
    }
    const unsigned blocks = table.first_block[table.count];
    if (blocks > 0) each(table, dim3(blocks, static_cast<unsigned>(parameters.slots), 1), before);
    before += blocks;
  }
}

// The parameter and the elements of it, counted over all slots, that a block works on.
template <typename T>
struct Share {
  int row;
  std::size_t begin, end;

  __device__ explicit Share(const Table<T>& table) {
    int low = 0, high = table.count - 1;  // the last row that begins at or before this block
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (table.first_block[middle] <= blockIdx.x) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    row = low;
    const std::size_t n = table.rows[row].n, at = (blockIdx.x - table.first_block[row]) * kElements;
    begin = blockIdx.y * n + at;
    end = begin + (n - at < kElements ? n - at : kElements);
  }
};

template <typename Rule, typename T>
__global__ void step_kernel(const __grid_constant__ Table<T> table, StepNumbers step) {
  if (step.updates[blockIdx.y] == 0) return;
  const Share<T> share(table);
  const std::size_t group = static_cast<std::size_t>(blockIdx.y) * step.groups + table.groups[share.row];
  const auto numbers = static_cast<const typename Rule::template Numbers<T>*>(step.numbers)[group];
  const T scale = step.factors != nullptr ? static_cast<T>(step.factors[blockIdx.y]) : T{1};
  const SlotRows<T> row = table.rows[share.row];
  T* __restrict__ weight = row.weight;
  T* __restrict__ first = row.states[0];
  T* __restrict__ second = row.states[1];
  T* __restrict__ third = row.states[2];
  const T* __restrict__ gradient = row.gradient;
  with_form<Rule, T>(numbers, [&](auto form) {
    for (std::size_t i = share.begin + threadIdx.x; i < share.end; i += kThreads) {
      update_element<Rule, decltype(form)::value>(weight[i], gradient[i] * scale, first, second, third, i, numbers);
    }
  });
}

// partial[slot][block]: of that block's elements.
template <typename T>
__global__ void squares_kernel(const __grid_constant__ Table<T> table, const double* clip_norms, double* partial,
                               unsigned before, std::size_t all_blocks) {
  if (clip_norms[blockIdx.y] < 0) return;
  const Share<T> share(table);
  const T* __restrict__ gradient = table.rows[share.row].gradient;
  double squares = 0;
  for (std::size_t i = share.begin + threadIdx.x; i < share.end; i += kThreads) {
    const double g = static_cast<double>(gradient[i]);
    squares += g * g;
  }
  const double sum = sum_of_block(squares);
  if (threadIdx.x == 0) partial[blockIdx.y * all_blocks + before + blockIdx.x] = sum;
}

__global__ void factors_kernel(const double* partial, std::size_t blocks, const double* clip_norms, double* factors) {
  const unsigned slot = blockIdx.x;
  if (clip_norms[slot] < 0) {
    if (threadIdx.x == 0) factors[slot] = 1;
    return;
  }
  double squares = 0;
  for (std::size_t i = threadIdx.x; i < blocks; i += kThreads) squares += partial[slot * blocks + i];
  const double sum = sum_of_block(squares);
  if (threadIdx.x == 0) factors[slot] = clip_factor(clip_norms[slot], sum);
}

template <typename T>
void launch_factors(const SlotParameters<T>& parameters, const double* clip_norms, double* workspace, double* factors,
                    void* stream) {
  std::size_t all_blocks = 0;
  for (int k = 0; k < parameters.count; ++k) all_blocks += blocks_of(parameters.rows[k].n);
  in_tables(parameters, [&](const Table<T>& table, dim3 grid, unsigned before) {
    launch("squares of gradients", squares_kernel<T>, grid, stream, table, clip_norms, workspace, before, all_blocks);
  });
  launch("clipping factors", factors_kernel, dim3(static_cast<unsigned>(parameters.slots), 1, 1), stream, workspace,
         all_blocks, clip_norms, factors);
}

template <typename T>
void launch_step(OptimizerKind kind, const SlotParameters<T>& parameters, const StepNumbers& step, void* stream) {
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    in_tables(parameters, [&](const Table<T>& table, dim3 grid, unsigned) {
      launch(Rule::name, step_kernel<Rule, T>, grid, stream, table, step);
    });
  });
}

}  // namespace

static_assert(sizeof(Table<double>) <= 4096 - 128, "kernel arguments take at most 4 KiB");

bool built() { return true; }

std::size_t clip_workspace(const std::size_t* n, int count, int slots) {
  std::size_t blocks = 0;
  for (int k = 0; k < count; ++k) blocks += blocks_of(n[k]);
  return blocks * static_cast<std::size_t>(slots);
}

void clip_factors(const SlotParameters<float>& parameters, const double* clip_norms, double* workspace, double* factors,
                  void* stream) {
  launch_factors(parameters, clip_norms, workspace, factors, stream);
}
void clip_factors(const SlotParameters<double>& parameters, const double* clip_norms, double* workspace,
                  double* factors, void* stream) {
  launch_factors(parameters, clip_norms, workspace, factors, stream);
}
void step(OptimizerKind kind, const SlotParameters<float>& parameters, const StepNumbers& numbers, void* stream) {
  launch_step(kind, parameters, numbers, stream);
}
void step(OptimizerKind kind, const SlotParameters<double>& parameters, const StepNumbers& numbers, void* stream) {
  launch_step(kind, parameters, numbers, stream);
}

}  // namespace hfta::fusion::cuda
