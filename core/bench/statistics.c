/* core/bench/statistics.c: the spread of measured times, and resident memory. */
#include <stdio.h>
#include <stdlib.h>

#include "core/bench/bench.h"

static int bench_compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

json_t *tn_bench_spread(double *ms, int32_t n) {
  qsort(ms, (size_t)n, sizeof *ms, bench_compare_times);
  return json_pack("[f, f, f]", ms[0], ms[n / 2], ms[n - 1]);
}

double tn_peak_rss_mib(void) {
  FILE *file = fopen("/proc/self/status", "re");
  char line[256];
  long kib = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
  if (file) fclose(file);
  return (double)kib / 1024.0;
}
