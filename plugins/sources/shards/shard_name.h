/* plugins/sources/shards/shard_name.h: names of members as WebDataset reads them. */
#pragma once

#include <string.h>

/* The number of characters in front of the ending: "photos/0001.seg.png" has 11. 0: the member belongs to no
 * sample: it has no dot, begins with one, or is described as "__meta__". */
static inline size_t shard_name_stem(const char *name) {
  const char *slash = strrchr(name, '/'), *file = slash != NULL ? slash + 1 : name, *dot = strchr(file, '.');
  if (dot == NULL || dot == file || strncmp(file, "__", 2) == 0) return 0;
  return (size_t)(dot - name);
}
