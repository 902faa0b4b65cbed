/* tests/golden/golden_file.h: reads the files of make_goldens.py. */
#pragma once

#include <stdbool.h>

#include "core/formats/safetensors.h"

typedef struct golden_case {
  char name[128];
  const char *graph;
} golden_case;

/* The next case; start with *cursor = NULL. False after the last. */
bool golden_next(const tn_safetensors *file, const char **cursor, golden_case *c);

/* The elements of CASE/KIND/NAME as doubles (tn_release), or NULL if there is no such tensor. */
double *golden_tensor(const tn_safetensors *file, const void *handle, const char *name, const char *kind,
                      const char *tensor, tn_type *type);
