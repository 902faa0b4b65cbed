/* core/plugin/parts.h: the sources that a source may join: the sections [source NAME] of a configuration. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/source.h"

typedef struct tn_part_setting {
  const char *name; /* of the section, behind "source " */
  const tn_source *source;
  const void *options;
  const char *where; /* "file.ini:14" of its source, for messages */
} tn_part_setting;

typedef struct tn_part_settings {
  const tn_part_setting *v;
  int32_t n;
} tn_part_settings;

/* Serves tn_part_open, from the record's parts. */
tn_status tn_host_part_open(tn_env *env, const char *name, const tn_part_use *use, tn_part *part);
