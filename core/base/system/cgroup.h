/* core/base/system/cgroup.h: the limits of the control groups of this process, of version 1 and 2. `groups`
 * is /proc/self/cgroup, `mount` /sys/fs/cgroup; tests pass made-up files. */
#pragma once

#include <stdint.h>

#define TN_CGROUPS      "/proc/self/cgroup"
#define TN_CGROUP_MOUNT "/sys/fs/cgroup"

typedef struct tn_cgroup_memory {
  int64_t limit; /* bytes; 0 where no group has a limit */
  int64_t
      room; /* the least of what the groups can still allocate, at least 1; 0 where no group has a limit */
} tn_cgroup_memory;

/* Processors that the least CPU quota grants, rounded up; 0 where no group has a quota. */
int64_t tn_cgroup_processors(const char *groups, const char *mount);
tn_cgroup_memory tn_cgroup_memory_limits(const char *groups, const char *mount);
