/* core/base/system/system.c: the monotonic clock, the number of usable processors, the memory of the host. */
#include "core/base/system/system.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/base/system/cgroup.h"

double tn_clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t system_affinity_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  /* sched_getaffinity fails on machines with more processors than cpu_set_t holds. */
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < 65536 ? (int32_t)online : 1;
}

int32_t tn_cpu_count(void) {
  int32_t count = system_affinity_count();
  int64_t quota = tn_cgroup_processors(TN_CGROUPS, TN_CGROUP_MOUNT);
  return quota > 0 && quota < count ? (int32_t)quota : count;
}

/* Memory that the kernel could give to programs without swapping; 0 where it does not say. */
static int64_t system_unused_memory(void) {
  char line[256];
  long long kib = 0;
  FILE *file = fopen("/proc/meminfo", "re");
  if (file == NULL) return 0;
  while (kib == 0 && fgets(line, sizeof(line), file) != NULL)
    if (sscanf(line, "MemAvailable: %lld", &kib) != 1) kib = 0;
  fclose(file);
  return kib > 0 ? kib * 1024 : 0;
}

/* The lesser one; 0 is unknown. */
static int64_t system_lesser(int64_t a, int64_t b) { return b > 0 && (a == 0 || b < a) ? b : a; }

int64_t tn_memory_total(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t all = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
  return system_lesser(all, tn_cgroup_memory_limits(TN_CGROUPS, TN_CGROUP_MOUNT).limit);
}

int64_t tn_memory_available(void) {
  return system_lesser(system_unused_memory(), tn_cgroup_memory_limits(TN_CGROUPS, TN_CGROUP_MOUNT).room);
}
