/* core/base/system/cgroup.c: quotas and memory limits of the control groups of this process.
 *
 * By Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and scheduler/sched-bwc.rst of Linux:
 * version 2 has one folder tree; cpu.max holds "QUOTA PERIOD" in microseconds, or "max PERIOD", and
 * memory.max bytes or "max". Version 1 has a tree for each controller; cpu.cfs_quota_us is -1 without a
 * quota, and memory.limit_in_bytes nearly 2^63 without a limit. A limit of a folder holds for all folders in
 * it. In a container the path of the process may name folders that only the host sees; the root of the mount
 * is then the container's own group. */
#include "core/base/system/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A number of bytes from which on a limit limits nothing. */
static const int64_t cgroup_no_limit = INT64_C(1) << 60;

/* ---- the folders of a controller ---- */

/* `visit` reads one folder and puts its finding into `result`. */
typedef struct cgroup_walk {
  const char *mount, *controller;
  void (*visit)(const char *folder, void *result);
  void *result;
} cgroup_walk;

/* ROOT/PATH and the folders above it, down to ROOT. */
static void cgroup_visit_upward(const cgroup_walk *w, const char *root, const char *path) {
  char folder[PATH_MAX];
  size_t stem = strlen(root);
  if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder) return;
  for (;;) {
    w->visit(folder, w->result);
    char *slash = strrchr(folder + stem, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
}

/* Whether a comma-separated list has the controller. */
static bool cgroup_lists(const char *controllers, const char *controller) {
  size_t length = strlen(controller);
  for (const char *at = controllers; *at != '\0';) {
    size_t n = strcspn(at, ",");
    if (n == length && memcmp(at, controller, n) == 0) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; version 2 has number 0 and no controllers. The tree
 * of a controller of version 1 has its name, by a link where several controllers share it ("cpu,cpuacct"). */
static void cgroup_visit_line(const cgroup_walk *w, char *line) {
  char root[PATH_MAX];
  char *controllers = strchr(line, ':');
  char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
  if (path == NULL) return;
  *controllers++ = '\0', *path++ = '\0';
  path[strcspn(path, "\n")] = '\0';
  if (*controllers == '\0') {
    cgroup_visit_upward(w, w->mount, path);
  } else if (cgroup_lists(controllers, w->controller)) {
    snprintf(root, sizeof root, "%s/%s", w->mount, w->controller);
    cgroup_visit_upward(w, root, path);
  }
}

static void cgroup_visit_own(const cgroup_walk *w, const char *groups) {
  char line[PATH_MAX];
  FILE *file = fopen(groups, "re");
  if (file == NULL) {
    cgroup_visit_upward(w, w->mount, "");
    return;
  }
  while (fgets(line, sizeof line, file) != NULL) cgroup_visit_line(w, line);
  fclose(file);
}

static FILE *cgroup_open(const char *folder, const char *name) {
  char path[PATH_MAX + 64];
  int n = snprintf(path, sizeof path, "%s/%s", folder, name);
  return n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* Reads `wanted` numbers from the start of FOLDER/NAME. */
static bool cgroup_read(const char *folder, const char *name, int wanted, long long number[2]) {
  FILE *file = cgroup_open(folder, name);
  if (file == NULL) return false;
  int n = wanted == 2 ? fscanf(file, "%lld %lld", &number[0], &number[1]) : fscanf(file, "%lld", &number[0]);
  fclose(file);
  return n == wanted;
}

static void cgroup_lower(int64_t *least, int64_t value) {
  if (value > 0 && (*least == 0 || value < *least)) *least = value;
}

/* ---- processors ---- */

static void cgroup_visit_quota(const char *folder, void *result) {
  long long number[2], period[2];
  if (!cgroup_read(folder, "cpu.max", 2, number)) {
    if (!cgroup_read(folder, "cpu.cfs_quota_us", 1, number)) return;
    if (!cgroup_read(folder, "cpu.cfs_period_us", 1, period)) return;
    number[1] = period[0];
  }
  if (number[0] > 0 && number[1] > 0) cgroup_lower(result, (number[0] - 1) / number[1] + 1);
}

int64_t tn_cgroup_processors(const char *groups, const char *mount) {
  int64_t least = 0;
  cgroup_visit_own(&(cgroup_walk){mount, "cpu", cgroup_visit_quota, &least}, groups);
  return least;
}

/* ---- memory ---- */

/* The number behind `name` in the lines of memory.stat; 0 where it has no such line. */
static int64_t cgroup_statistic(const char *folder, const char *name) {
  char line[256];
  long long value = 0;
  size_t length = strlen(name);
  FILE *file = cgroup_open(folder, "memory.stat");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, length) == 0 && line[length] == ' ' && sscanf(line + length, "%lld", &value) != 1)
      value = 0;
  fclose(file);
  return value > 0 ? value : 0;
}

/* Pages of files can be reclaimed, so only anonymous memory counts as used. */
static void cgroup_visit_memory(const char *folder, void *result) {
  tn_cgroup_memory *memory = result;
  long long limit[2];
  const char *anonymous = "anon";
  if (!cgroup_read(folder, "memory.max", 1, limit)) {
    if (!cgroup_read(folder, "memory.limit_in_bytes", 1, limit)) return;
    anonymous = "total_rss";
  }
  if (limit[0] <= 0 || limit[0] >= cgroup_no_limit) return;
  int64_t used = cgroup_statistic(folder, anonymous);
  cgroup_lower(&memory->limit, limit[0]);
  cgroup_lower(&memory->room, limit[0] > used ? limit[0] - used : 1);
}

tn_cgroup_memory tn_cgroup_memory_limits(const char *groups, const char *mount) {
  tn_cgroup_memory memory = {0, 0};
  cgroup_visit_own(&(cgroup_walk){mount, "memory", cgroup_visit_memory, &memory}, groups);
  return memory;
}
