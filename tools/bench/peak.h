/* tools/bench/peak.h: peak rates of the host's processors. */
#pragma once

/* FLOP/s of fused multiply-adds of f32 in registers on every thread: an upper bound for kernels, except for
 * algorithms with fewer operations (Winograd, Strassen). 0: a thread could not be started. */
double peak_flops(int threads);

/* Bytes read and written per second by memcpy on all threads: of a block larger than the last-level cache,
 * and of one block per thread within its second-level cache. 0: out of memory. */
double peak_copy(int threads);
double peak_cached_copy(int threads);
/* Bytes of the second-level caches of so many processors. */
double peak_cache_bytes(int threads);
