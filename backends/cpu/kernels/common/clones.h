/* backends/cpu/kernels/common/clones.h: one function, compiled for several instruction sets.
 *
 * TN_CPU_CLONES in front of a function with a plain loop makes GCC vectorize it for each level of the
 * x86-64 psABI; the dynamic loader selects the version when it loads the plugin. Products are never
 * contracted to fused multiply-adds, so every version computes the same bits. There is one version on
 * other architectures, with other compilers, and under a sanitizer, which would run before the selection.
 *
 * TN_CPU_VECTOR in front of a loop states that its iterations are independent, also where the result is
 * computed in place. */
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) &&                 \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TN_CPU_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define TN_CPU_CLONES
#endif

#if defined(__clang__)
#define TN_CPU_VECTOR
#else
#define TN_CPU_VECTOR _Pragma("GCC ivdep")
#endif
