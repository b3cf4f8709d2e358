// A library that is preloaded into a program which is raced: CPUID tells it of no more than the instruction set that
// HFTA_BENCH_ISA names (bench/isa.py). Some libraries look at nothing else. Linux makes CPUID fault where the processor
// can (`cpuid_fault` in /proc/cpuinfo); the handler answers in its place.
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Bits of CPUID's answers that are cleared, by leaf; Intel's manual, volume 2A.
struct Cleared {
  const char* isa;
  std::uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax;
};

constexpr std::uint32_t bits() { return 0; }
template <typename... More>
constexpr std::uint32_t bits(unsigned bit, More... more) {
  return (std::uint32_t{1} << bit) | bits(more...);
}

constexpr std::uint32_t kAmx = bits(22, 24, 25), kAmxFp16 = bits(21);
// Beyond F, CD, BW, DQ and VL, which the first server processors with AVX-512 had.
constexpr std::uint32_t kIfma = bits(21), kNewer = bits(1, 6, 11, 12, 14), kNewest = bits(2, 3, 8, 23), kBf16 = bits(5);
constexpr std::uint32_t kAvx512 = bits(16, 17, 26, 27, 28, 30, 31);  // F, DQ, PF, ER, CD, BW, VL
constexpr std::uint32_t kAvxVnni = bits(4, 23), kAvx2 = bits(5), kFma = bits(12), kAvx = bits(28, 29);
constexpr Cleared kTable[] = {
    {"avx512", 0, kIfma, kNewer, kNewest | kAmx, kBf16 | kAmxFp16},
    {"avx2", 0, kIfma | kAvx512, kNewer, kNewest | kAmx, kBf16 | kAmxFp16 | kAvxVnni},
    {"avx", kFma, kIfma | kAvx512 | kAvx2, kNewer, kNewest | kAmx, kBf16 | kAmxFp16 | kAvxVnni},
    {"sse4", kFma | kAvx, kIfma | kAvx512 | kAvx2, kNewer, kNewest | kAmx, kBf16 | kAmxFp16 | kAvxVnni},
};

const Cleared* held = nullptr;

void answer(greg_t* registers) {
  const auto leaf = static_cast<std::uint32_t>(registers[REG_RAX]),
             part = static_cast<std::uint32_t>(registers[REG_RCX]);
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
  __cpuid_count(leaf, part, a, b, c, d);
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
  if (leaf == 1) c &= ~held->leaf1_ecx;
  if (leaf == 7 && part == 0) {
    b &= ~held->leaf7_ebx;
    c &= ~held->leaf7_ecx;
    d &= ~held->leaf7_edx;
  }
  if (leaf == 7 && part == 1) a &= ~held->leaf7_1_eax;
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
}

void on_fault(int, siginfo_t*, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  unsigned char code[2];
  std::memcpy(code, reinterpret_cast<const void*>(registers[REG_RIP]), sizeof code);
  if (code[0] != 0x0f || code[1] != 0xa2) {  // no CPUID: the program's own fault, which comes again
    std::signal(SIGSEGV, SIG_DFL);
    return;
  }
  answer(registers);
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) void hold() {
  const char* const isa = std::getenv("HFTA_BENCH_ISA");
  for (const Cleared& row : kTable) {
    if (isa != nullptr && std::strcmp(isa, row.isa) == 0) held = &row;
  }
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (held != nullptr && sigaction(SIGSEGV, &action, nullptr) == 0 && syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0)
    return;
  std::fputs("bench/held: CPUID could not be held\n", stderr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace
