/* backends/onednn/isa.c: the best instruction set of the processor, and its caches. */
#include "backends/onednn/onednn.h"

int64_t tn_onednn_cached_bytes(void) { return (int64_t)64 << 20; }

#if defined(__x86_64__)
int32_t tn_onednn_isa(void) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return TN_ISA_PLAIN;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return TN_ISA_AVX2;
  return __builtin_cpu_supports("avx512bf16") ? TN_ISA_AVX512_BF16 : TN_ISA_AVX512;
}
#else
int32_t tn_onednn_isa(void) { return TN_ISA_PLAIN; }
#endif
