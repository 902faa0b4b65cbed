/* plugins/sources/paths.h: lists of files, as a pattern says. */
#pragma once

#include "plugins/sources/sources.h"

typedef struct source_paths {
  char **v; /* absolute */
  int64_t n, room;
} source_paths;

/* The files that an absolute path says, in their order: it may have ranges, {000..146}, choices, {a,b}, and
 * patterns of glob(7), which must match a file. Messages name `option`. After a failure the caller frees the
 * paths, too. */
tn_status source_paths_find(const tn_env *env, const char *option, const char *pattern, source_paths *paths);
void source_paths_free(const void *handle, source_paths *paths);
