#pragma once
/// How the calling thread computes with denormal numbers.

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace hfta::fusion::simd {

/// Denormal numbers are zeros while an object lives (kFlush: results and operands), or numbers like others. What was is
/// restored.
template <bool kFlush>
class Denormals {
 public:
  Denormals(const Denormals&) = delete;
  Denormals& operator=(const Denormals&) = delete;
#if defined(__SSE2__)
  Denormals() : before_(_mm_getcsr()) { _mm_setcsr(kFlush ? before_ | kZeros : before_ & ~kZeros); }
  ~Denormals() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kZeros = 0x8040;  // results to zero, operands are zeros
  unsigned before_;
#else
  Denormals() {}
#endif
};

/// How a thread treats denormal numbers, taken in that thread by the constructor.
class DenormalMode {
 public:
  /// Another thread does the same while an object lives. What was is restored.
  class Assumed;
#if defined(__SSE2__)
  DenormalMode() : mode_(_mm_getcsr()) {}

 private:
  unsigned mode_;
#else
  DenormalMode() {}
#endif
};

class DenormalMode::Assumed {
 public:
  Assumed(const Assumed&) = delete;
  Assumed& operator=(const Assumed&) = delete;
#if defined(__SSE2__)
  explicit Assumed(const DenormalMode& mode) : before_(_mm_getcsr()) { _mm_setcsr(mode.mode_); }
  ~Assumed() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  explicit Assumed(const DenormalMode&) {}
#endif
};

/// Processors compute with denormals a hundred times slower, and optimizer states decay into them. What is lost is
/// below 1e-37.
using FlushDenormals = Denormals<true>;
/// Keeps denormal numbers, for conversions that are exact.
using KeepDenormals = Denormals<false>;

}  // namespace hfta::fusion::simd
