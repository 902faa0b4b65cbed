/* tests/unit/plugins/sources/probe.h: opens a source with options in text form and reads it sample by sample,
 * without a loader. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/sources/sources.h"

typedef struct probe {
  tn_sample_host host; /* first member: callbacks cast it to a probe */
  tn_error_record record;
  tn_scratch scratch;
  tn_arena arena;
  const tn_source *source;
  void *self;
  tn_description description;
  tn_type type[4]; /* of the sample read last, and its values */
  void *value[4];
} probe;

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_PAIRS   ((const char *const[]){NULL})

/* Opens with options from "name", "value" pairs and returns the status of open. The caller calls probe_close
 * only after TN_OK. Invalid options fail the test. */
tn_status probe_open(probe *p, const tn_source *source, const char *const *pairs, int32_t split);
/* The same, with what a source of the training part has learnt (tn_env_learnt). */
tn_status probe_open_taught(probe *p, const tn_source *source, const char *const *pairs, int32_t split,
                            const char *learnt);
/* Opens files that a user names; a failure fails the test. */
void probe_open_files(probe *p, const tn_source *source, const char *const *pairs, const char *const *paths,
                      int32_t n);
void probe_close(probe *p);
/* Expects a failure whose message contains `text`. */
void probe_refused(const tn_source *source, const char *const *pairs, int32_t split, tn_status code,
                   const char *text);
/* Opens and reads a sample repeatedly, with one more successful allocation each time, until it succeeds.
 * Asserts that every failure is TN_ENOMEM and that no block leaks. */
void probe_starve(const tn_source *source, const char *const *pairs);
tn_status probe_read(probe *p, int64_t index, uint64_t key);
/* The class that the source tells without reading. */
void probe_expect_class(probe *p, int64_t index, int64_t class);
static inline const char *probe_error(probe *p) { return tn_error_text(p); }

/* A temporary folder of the test, removed with its content. */
char *make_folder(void);
void remove_folder(char *folder);
/* FOLDER/NAME. The text is valid for the next seven calls. */
const char *in_folder(const char *folder, const char *name);
void write_file(const char *path, const void *bytes, size_t count);
