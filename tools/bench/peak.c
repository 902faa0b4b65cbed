/* tools/bench/peak.c: peak rates of the processors: independent chains of multiply-adds in the widest
 * vectors, and a large memcpy. Compiled with contraction, so that a * b + c is one instruction. */
#include "tools/bench/peak.h"
#include "tools/cli/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 256, ROUNDS = 4 };
static const size_t LEAST_BLOCK = (size_t)64 << 20, MOST_BLOCK = (size_t)1 << 30;
static const size_t USUAL_CACHE = (size_t)256 << 10, CACHED_BYTES = (size_t)256 << 20;

/* ---- multiply-adds ---- */

enum { CHAINS = 12, TURNS = 1 << 21 };

/* Twelve chains hide a latency of up to six cycles in two units. Returning the sum keeps the loop alive. */
#define TN_CHAINS(name, bytes, attribute)                                                                    \
  attribute static float name(float a, float b) {                                                            \
    typedef float vector __attribute__((vector_size(bytes)));                                                \
    vector sum[CHAINS], scale = a + (vector){0}, add = b + (vector){0}, total = {0};                         \
    for (int i = 0; i < CHAINS; i++) sum[i] = scale * (float)i;                                              \
    for (int turn = 0; turn < TURNS; turn++)                                                                 \
      for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * scale + add;                                        \
    for (int i = 0; i < CHAINS; i++) total += sum[i];                                                        \
    return total[0];                                                                                         \
  }

TN_CHAINS(peak_chains, 16, )
#if defined(__x86_64__)
TN_CHAINS(peak_chains_avx2, 32, __attribute__((target("avx2,fma"))))
TN_CHAINS(peak_chains_avx512, 64, __attribute__((target("avx512f"))))
#endif

typedef struct chain_kind {
  float (*run)(float a, float b);
  int lanes;
} chain_kind;

static chain_kind peak_widest_chains(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (chain_kind){peak_chains_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return (chain_kind){peak_chains_avx2, 8};
#endif
  return (chain_kind){peak_chains, 4};
}

/* ---- threads ---- */

typedef struct peak_task {
  pthread_t thread;
  void (*work)(struct peak_task *task);
  chain_kind kind;
  float sum;
  char *to;
  const char *from;
  size_t bytes;
  int times;
} peak_task;

static void *peak_run_task(void *arg) {
  peak_task *task = arg;
  task->work(task);
  return NULL;
}

/* Seconds from the first start to the last end; 0: a thread could not be started. */
static double peak_run_once(peak_task *tasks, int n) {
  double start = cli_clock_s();
  int started = 0;
  while (started < n && pthread_create(&tasks[started].thread, NULL, peak_run_task, &tasks[started]) == 0)
    started++;
  for (int i = 0; i < started; i++) pthread_join(tasks[i].thread, NULL);
  return started == n ? cli_clock_s() - start : 0;
}

static double peak_best_of_rounds(peak_task *tasks, int n) {
  double best = peak_run_once(tasks, n);
  for (int round = 1; round < ROUNDS; round++) {
    double seconds = peak_run_once(tasks, n);
    if (seconds < best) best = seconds;
  }
  return best;
}

static int peak_clamp_threads(int threads) {
  return threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
}

/* ---- the two ceilings ---- */

static void peak_multiply_task(peak_task *task) { task->sum = task->kind.run(0.5f, task->sum); }

double peak_flops(int threads) {
  peak_task tasks[MOST_THREADS];
  int n = peak_clamp_threads(threads);
  chain_kind kind = peak_widest_chains();
  for (int i = 0; i < n; i++) tasks[i] = (peak_task){.work = peak_multiply_task, .kind = kind, .sum = 1.0f};
  double seconds = peak_best_of_rounds(tasks, n);
  return seconds > 0 ? 2.0 * kind.lanes * CHAINS * TURNS * n / seconds : 0;
}

static void peak_copy_task(peak_task *task) {
  for (int i = 0; i < task->times; i++) {
    memcpy(task->to, task->from, task->bytes);
    __asm__ volatile("" ::: "memory"); /* keeps each copy */
  }
}

/* Each thread copies `share` bytes `times` times. */
static double peak_copy_rate(int n, size_t share, int times) {
  peak_task tasks[MOST_THREADS];
  char *from = malloc(share * (size_t)n), *to = malloc(share * (size_t)n);
  double seconds = 0;
  for (int i = 0; from && to && i < n; i++) {
    size_t start = (size_t)i * share;
    tasks[i] = (peak_task){
        .work = peak_copy_task, .to = to + start, .from = from + start, .bytes = share, .times = times};
  }
  if (from && to) {
    memset(from, 1, share * (size_t)n); /* touches the pages */
    seconds = peak_best_of_rounds(tasks, n);
  }
  free(from);
  free(to);
  return seconds > 0 ? 2.0 * (double)share * times * n / seconds : 0;
}

/* A tenth more than the last-level cache, so that a second read of the block misses it. */
static size_t peak_block_bytes(void) {
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t bytes = cache > 0 ? (size_t)cache / 10 * 11 : 0;
  return bytes < LEAST_BLOCK ? LEAST_BLOCK : bytes > MOST_BLOCK ? MOST_BLOCK : bytes;
}

static size_t peak_core_cache_bytes(void) {
  long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return cache > 0 ? (size_t)cache : USUAL_CACHE;
}

double peak_copy(int threads) {
  return peak_copy_rate(peak_clamp_threads(threads), peak_block_bytes() / (size_t)peak_clamp_threads(threads),
                        1);
}

/* Source and destination take half of the cache. */
double peak_cached_copy(int threads) {
  size_t share = peak_core_cache_bytes() / 4;
  return peak_copy_rate(peak_clamp_threads(threads), share, (int)(CACHED_BYTES / share) + 1);
}

double peak_cache_bytes(int threads) { return (double)peak_core_cache_bytes() * peak_clamp_threads(threads); }
