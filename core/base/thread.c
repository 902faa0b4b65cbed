/* core/base/thread.c: the clock, and how many processors there are. */
#include "core/base/thread.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double tn_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t affinity_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  /* More processors than the fixed mask holds. */
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int32_t)online : 1;
}

/* Processors' worth of time that one cgroup (version 2) grants, rounded up; 0: no limit. */
static int32_t quota_at(const char *folder) {
  char path[512];
  long long quota = 0, period = 0;
  int n = snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", folder);
  if (n < 0 || n >= (int)sizeof(path)) return 0;
  FILE *f = fopen(path, "re");
  if (f == NULL) return 0;
  /* The file says "max PERIOD" where there is no limit, which does not scan. */
  int got = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (got != 2 || quota <= 0 || period <= 0) return 0;
  return (int32_t)((quota + period - 1) / period);
}

/* The folder of this process below the cgroup mount: the line "0::/path" of /proc/self/cgroup. */
static void own_cgroup(char *folder, size_t capacity) {
  char line[512];
  folder[0] = '\0';
  FILE *f = fopen("/proc/self/cgroup", "re");
  if (f == NULL) return;
  while (fgets(line, sizeof(line), f) != NULL) {
    if (strncmp(line, "0::", 3) != 0) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(folder, capacity, "%s", line + 3);
  }
  fclose(f);
}

/* The tightest limit on the way from the process's group to the root; 0: none. */
static int32_t quota_count(void) {
  char folder[512];
  int32_t tightest = 0;
  own_cgroup(folder, sizeof(folder));
  for (;;) {
    int32_t here = quota_at(folder);
    if (here > 0 && (tightest == 0 || here < tightest)) tightest = here;
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return tightest;
    *slash = '\0';
  }
}

int32_t tn_cpu_count(void) {
  int32_t count = affinity_count(), quota = quota_count();
  if (quota > 0 && quota < count) count = quota;
  return count > 0 ? count : 1;
}
