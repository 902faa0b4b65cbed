/* tools/bench/peak.h: what the processor itself gives, beside the kernels of any backend. */
#ifndef TN_TOOLS_BENCH_PEAK_H
#define TN_TOOLS_BENCH_PEAK_H

/* Fused multiply-adds of f32 in registers on every thread, in FLOP/s: what no kernel exceeds, short of one
 * that needs fewer operations (Winograd, Strassen). 0: no thread could be started. */
double peak_flops(int threads);

/* memcpy, shared by the threads: bytes read and written a second. Of a block larger than the last cache, or
 * of one for each thread that stays in its own second-level cache. 0: no memory. */
double peak_copy(int threads);
double peak_cached_copy(int threads);
/* Second-level caches of so many processors, in bytes. */
double peak_cache_bytes(int threads);

#endif
