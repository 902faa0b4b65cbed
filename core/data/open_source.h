/* core/data/open_source.h: a source that is open, for the loaders that read it. A loader may read the source
 * of another one, which is then not opened twice. */
#pragma once

#include "core/base/env.h"
#include "core/data/loader_options.h"

typedef struct tn_open_source {
  tn_env env; /* handle of the source */
  tn_error_record record;
  const tn_source *source; /* that of the options, or a fold of it */
  void *self;
  tn_folded_source folded;
  tn_description description;
  /* As it was opened. */
  const tn_source *whole;
  const void *options;
  int32_t split, n_files;
  uint64_t seed;
  tn_data_fold fold;
  int32_t users; /* loaders, all of one thread */
  bool opened;
} tn_open_source;

/* Opens the source of the options; or adds a user to `other`, where that is it and no stream, which has one
 * position. other: NULL or another loader's. */
tn_status tn_open_source_get(const tn_env *env, const tn_loader_options *options, tn_open_source *other,
                             tn_open_source **source);
/* The last user closes it. `source` may be NULL. */
void tn_open_source_drop(tn_open_source *source);
