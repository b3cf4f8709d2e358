#pragma once
/// HFTA_WIDE in front of a function with plain loops: one binary serves every x86-64, the loader picks the widest
/// version that the machine can run.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HFTA_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HFTA_WIDE
#endif
