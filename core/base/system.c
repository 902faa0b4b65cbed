/* core/base/system.c: the monotonic clock, the number of usable processors, the available memory. */
#include "core/base/system.h"

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

static int32_t system_affinity_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  /* sched_getaffinity fails on machines with more processors than cpu_set_t holds. */
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int32_t)online : 1;
}

/* The CPU quota of one cgroup (version 2) in processors, rounded up; 0: no limit. */
static int64_t system_cpu_quota(const char *folder) {
  char path[512];
  long long quota = 0, period = 0;
  int n = snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", folder);
  if (n < 0 || n >= (int)sizeof(path)) return 0;
  FILE *f = fopen(path, "re");
  if (f == NULL) return 0;
  /* Without a limit the file reads "max PERIOD", which fscanf does not match. */
  int got = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (got != 2 || quota <= 0 || period <= 0) return 0;
  return (quota + period - 1) / period;
}

/* The cgroup of this process, relative to the mount: the line "0::/path" of /proc/self/cgroup. */
static void system_own_cgroup(char *folder, size_t capacity) {
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

/* The smallest limit of the process's cgroup and its ancestors; 0: no limit. */
static int64_t system_tightest_limit(int64_t (*limit_at)(const char *folder)) {
  char folder[512];
  int64_t tightest = 0;
  system_own_cgroup(folder, sizeof(folder));
  for (;;) {
    int64_t here = limit_at(folder);
    if (here > 0 && (tightest == 0 || here < tightest)) tightest = here;
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return tightest;
    *slash = '\0';
  }
}

int32_t tn_cpu_count(void) {
  int32_t count = system_affinity_count();
  int64_t quota = system_tightest_limit(system_cpu_quota);
  if (quota > 0 && quota < count) count = (int32_t)quota;
  return count > 0 ? count : 1;
}

/* The number that follows `word` at the start of a line; with word "" the number at the start of the file;
 * -1: not found. */
static int64_t system_read_number(const char *path, const char *word) {
  char line[256];
  long long value = -1;
  FILE *f = fopen(path, "re");
  if (f == NULL) return -1;
  while (value < 0 && fgets(line, sizeof(line), f) != NULL)
    if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), " %lld", &value) != 1)
      value = -1;
  fclose(f);
  return value;
}

/* The memory limit of one cgroup (version 2) minus its anonymous memory. File pages can be reclaimed, so
 * they do not count. 0: no limit. */
static int64_t system_memory_room(const char *folder) {
  char path[512];
  int n = snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", folder);
  if (n < 0 || n >= (int)sizeof(path)) return 0;
  int64_t most = system_read_number(path, ""); /* "max" where there is no limit */
  if (most < 0) return 0;
  n = snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", folder);
  int64_t used = n < (int)sizeof(path) ? system_read_number(path, "anon ") : 0;
  return most > used ? most - used : 1;
}

int64_t tn_memory_available(void) {
  int64_t kib = system_read_number("/proc/meminfo", "MemAvailable:"),
          room = system_tightest_limit(system_memory_room);
  int64_t available = kib > 0 ? kib * 1024 : 0;
  return room > 0 && (available == 0 || room < available) ? room : available;
}
