/* tests/fuzz/source.h: opens a source with options, as the host does, and reads some of its samples into
 * memory of exactly their sizes. */
#pragma once

#include "plugins/sources/sources.h"
#include "tests/fuzz/fuzz.h"

typedef struct fuzz_option {
  const char *name, *value;
} fuzz_option;

/* Paths among the values are absolute. The state in f->record.learnt is given to the source. Class numbers of
 * targets must be below the number of classes. */
void fuzz_source(fuzz *f, const tn_source *source, const fuzz_option *options, size_t n);
