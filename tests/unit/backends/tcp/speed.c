/* speed RANKS BYTES [TIMES]: the time of an all_reduce of f32 between processes of this host, and of its sum
 * alone. For docs/decisions/0062-tcp.md; no test. */
#include <time.h>

#include "backends/shared/reduce.h"
#include "tests/unit/backends/tcp/rig.h"
#include "backends/shared/clock.h"

static int64_t speed_count, speed_times;

static int speed_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double speed_cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void speed_body(rig_rank *r) {
  float *memory = malloc((size_t)speed_count * sizeof *memory);
  double *times = calloc((size_t)speed_times, sizeof *times);
  for (int64_t i = 0; i < speed_count; i++) memory[i] = (float)i;
  double cpu_s = 0;
  for (int64_t k = -3; k < speed_times; k++) {
    if (k == 0) cpu_s = speed_cpu_s();
    tn_collective c = rig_sum(memory, memory, speed_count);
    double begin = tn_monotonic_s();
    WANT_OK(r, rig_call(r, &c));
    if (k >= 0) times[k] = tn_monotonic_s() - begin;
  }
  cpu_s = (speed_cpu_s() - cpu_s) / (double)speed_times;
  qsort(times, (size_t)speed_times, sizeof *times, speed_compare);
  double median = times[speed_times / 2], bytes = 4.0 * (double)speed_count, n = r->place.ranks;
  if (r->place.rank == 0)
    printf("all_reduce of %.0f bytes, %g processes: median %.1f us, least %.1f us, processor time of a rank "
           "%.1f us; "
           "%.2f GB/s\n",
           bytes, n, 1e6 * median, 1e6 * times[0], 1e6 * cpu_s, 1e-9 * bytes / times[0]);
  free(memory);
  free(times);
  fflush(stdout);
}

static void speed_sum(int32_t dtype) {
  enum { COUNT = 1 << 20 };
  static double a[COUNT], b[COUNT];
  const void *from[] = {a, b};
  double least = 1e9;
  for (int i = 0; i < 20; i++) {
    double begin = tn_monotonic_s();
    tn_reduce(dtype, TN_REDUCTION_SUM, 2, from, a, 16384); /* of the size of a grain: in the cache */
    double s = tn_monotonic_s() - begin;
    if (s < least) least = s;
  }
  double bytes = 16384.0 * (double)tn_dtype_size(dtype);
  printf("sum of two operands of %s: %.1f GB/s of each operand\n", tn_dtype_name(dtype),
         1e-9 * bytes / least);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int32_t ranks = atoi(argv[1]);
  speed_count = atoll(argv[2]) / 4;
  speed_times = argc > 3 ? atoll(argv[3]) : 50;
  rig_start(ranks, 60);
  if (argc > 4)
    for (int32_t i = 0; i < ranks; i++) rig[i].options.buffer = atoll(argv[4]);
  rig_processes(speed_body);
  for (int32_t dtype = TN_U8; dtype <= TN_F64; dtype++) speed_sum(dtype);
  return 0;
}
