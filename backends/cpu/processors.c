/* backends/cpu/processors.c: the processors that this process may use: its affinity mask and the quotas of
 * its control groups. Threads beyond a quota would run while others of the process are throttled.
 *
 * Quotas, by Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst of Linux: version 2 has one
 * folder tree; cpu.max holds "QUOTA PERIOD" in microseconds, or "max PERIOD". Version 1 has a tree for the
 * controller cpu; cpu.cfs_quota_us is -1 without a quota. A quota of a folder holds for all folders in it. In
 * a container the path of the process may name folders that only the host sees; the root of the mount is then
 * the container's own group. */
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

static int32_t processors_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < 65536 ? (int32_t)online : 1;
}

/* Reads `wanted` numbers from FOLDER/NAME. */
static bool processors_read(const char *folder, const char *name, int wanted, long long number[2]) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  int n = wanted == 2 ? fscanf(file, "%lld %lld", &number[0], &number[1]) : fscanf(file, "%lld", &number[0]);
  fclose(file);
  return n == wanted;
}

/* Processors that the quota of one folder grants, rounded up; 0: no quota. */
static int32_t processors_of_quota(const char *folder) {
  long long number[2], period[2];
  if (!processors_read(folder, "cpu.max", 2, number)) {
    if (!processors_read(folder, "cpu.cfs_quota_us", 1, number)) return 0;
    if (!processors_read(folder, "cpu.cfs_period_us", 1, period)) return 0;
    number[1] = period[0];
  }
  if (number[0] <= 0 || number[1] <= 0) return 0;
  long long processors = (number[0] - 1) / number[1] + 1;
  return processors < INT32_MAX ? (int32_t)processors : 0;
}

/* The least quota of ROOT/PATH and of the folders above it, down to ROOT. */
static int32_t processors_least_quota(const char *root, const char *path, int32_t least) {
  char folder[PATH_MAX];
  size_t stem = strlen(root);
  if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder) return least;
  for (;;) {
    int32_t granted = processors_of_quota(folder);
    if (granted > 0 && granted < least) least = granted;
    char *slash = strrchr(folder + stem, '/');
    if (slash == NULL) return least;
    *slash = '\0';
  }
}

/* Whether the comma-separated list has the controller "cpu". */
static bool processors_has_cpu(const char *controllers) {
  for (const char *at = controllers; *at != '\0';) {
    size_t n = strcspn(at, ",");
    if (n == 3 && memcmp(at, "cpu", 3) == 0) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; version 2 has number 0 and no controllers. */
static int32_t processors_of_line(char *line, const char *mount, int32_t least) {
  char root[PATH_MAX];
  char *controllers = strchr(line, ':');
  char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
  if (path == NULL) return least;
  *controllers++ = '\0', *path++ = '\0';
  path[strcspn(path, "\n")] = '\0';
  if (*controllers == '\0') return processors_least_quota(mount, path, least);
  if (!processors_has_cpu(controllers)) return least;
  snprintf(root, sizeof root, "%s/cpu", mount); /* a link to "cpu,cpuacct" where the two are one tree */
  return processors_least_quota(root, path, least);
}

int32_t tn_cpu_granted_processors(const char *groups, const char *mount) {
  char line[PATH_MAX];
  int32_t least = processors_count();
  FILE *file = fopen(groups, "re");
  if (file == NULL) return processors_least_quota(mount, "", least);
  while (fgets(line, sizeof line, file) != NULL) least = processors_of_line(line, mount, least);
  fclose(file);
  return least;
}
