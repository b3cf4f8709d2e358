// LibTorch's exceptions, by what a study can do about them.
#include "engine/fused/translated.hpp"

#include <functional>
#include <new>

#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {

TEST_CASE("memory, devices and bugs are told apart") {
  struct Case {
    std::function<void()> work;
    ErrorKind kind;
    const char* message;
  };
  const c10::SourceLocation here = {__func__, __FILE__, __LINE__};
  const Case cases[] = {
      {[&] { throw c10::OutOfMemoryError(here, "CUDA out of memory. Tried 3 GiB\nsecond line"); }, ErrorKind::kMemory,
       "cuda:1: out of memory: CUDA out of memory. Tried 3 GiB"},
      {[&] { throw c10::Error(here, "DefaultCPUAllocator: can't allocate memory: you tried"); }, ErrorKind::kMemory,
       "cuda:1: out of memory: DefaultCPUAllocator: can't allocate memory: you tried"},
      {[] { throw std::bad_alloc(); }, ErrorKind::kMemory, "cuda:1: out of memory"},
      {[&] { throw c10::AcceleratorError(here, 2, "CUDA error: out of memory\nCUDA kernel errors might be"); },
       ErrorKind::kMemory, "cuda:1: out of memory: CUDA error: out of memory"},
      {[&] { throw c10::Error(here, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"); },
       ErrorKind::kMemory,
       "cuda:1: out of memory: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
      {[&] { throw c10::Error(here, "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"); }, ErrorKind::kMemory,
       "cuda:1: out of memory: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"},
      {[&] { throw c10::Error(here, "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"); }, ErrorKind::kInternal,
       "cuda:1: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"},
      {[&] { throw c10::Error(here, "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"); }, ErrorKind::kDevice,
       "cuda:1: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"},
      {[&] { throw c10::AcceleratorError(here, 700, "CUDA error: an illegal memory access"); }, ErrorKind::kDevice,
       "cuda:1: CUDA error: an illegal memory access"},
      {[&] { throw c10::Error(here, "shapes differ"); }, ErrorKind::kInternal, "cuda:1: shapes differ"},
      {[] { throw Error(ErrorKind::kStorage, "slot state"); }, ErrorKind::kStorage, "slot state"}};
  for (const Case& c : cases) {
    INFO(c.message);
    try {
      translated("cuda:1", c.work);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == c.kind);
      CHECK(error.what() == std::string(c.message));
    }
  }
  CHECK(translated("cpu", [] { return 3; }) == 3);
}

}  // namespace hfta::engine
