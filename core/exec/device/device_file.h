/* core/exec/device/device_file.h: the properties of a device as JSON, which `tenon doctor --device-json`
 * writes and `tenon plan --device` reads. */
#pragma once

#include <jansson.h>

#include "core/base/arena.h"
#include "core/base/env.h"
#include "tenon/plugin/kernel.h"

typedef struct tn_device_file {
  const char *path;
  char *content;                   /* the text of the file */
  const char *family;              /* whose kernels the device runs */
  const char *accepts;             /* other families, comma-separated; NULL: those of the installed backend */
  const char *extension;           /* a backend that extends the family; NULL: none */
  int32_t count;                   /* of such devices */
  double host_bytes_per_s;         /* of the memory of its host; 0: unknown */
  tn_device_properties properties; /* as in the file: rates that it lacks are 0 */
} tn_device_file;

/* Reads a file into memory of the arena. Messages begin with the file and, where it is known, the line. */
tn_status tn_device_file_read(tn_env *env, tn_arena *arena, const char *path, tn_device_file *file);

/* An error about a key of the file: "FILE:LINE: text". */
tn_status tn_device_file_fail(tn_env *env, const tn_device_file *file, const char *key, const char *format,
                              ...) __attribute__((format(printf, 4, 5)));

/* The same form from properties. NULL: out of memory. accepts may be NULL. */
json_t *tn_device_file_json(const char *family, const char *accepts, int32_t count,
                            const tn_device_properties *properties);
