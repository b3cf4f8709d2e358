#pragma once
/// The codec's kernels on the first GPU.

namespace hfta::bench {

/// Compares what they write and read with the CPU's coder, measures them beside copies, and prints PASS or FAIL behind
/// what it found. Returns the process's exit code: 0 for PASS. Ends the process with FAIL where that takes minutes.
int on_cuda();

}  // namespace hfta::bench
