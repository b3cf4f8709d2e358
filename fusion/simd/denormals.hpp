#pragma once
/// Flushes denormal numbers to zero on the calling thread while an object lives. Processors compute with them about a
/// hundred times slower, and optimizer states decay into them. What is lost is below 1e-37.

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace hfta::fusion::simd {

class FlushDenormals {
 public:
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlush = 0x8040;  // results to zero, operands are zeros
  unsigned before_;
#else
  FlushDenormals() {}
#endif
};

}  // namespace hfta::fusion::simd
