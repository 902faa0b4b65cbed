/* core/config/options/options.h: filling an item's options struct, from text (configurations, model lines,
 * graph text) or from typed values (the emitter). One place knows defaults, ranges, units. */
#ifndef TN_CORE_CONFIG_OPTIONS_OPTIONS_H
#define TN_CORE_CONFIG_OPTIONS_OPTIONS_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/text.h"
#include "tenon/plugin/plugin.h"

/* A struct being filled. `data` is what callbacks get; it lives in the arena. */
typedef struct tn_options {
  const tn_item *item;
  tn_arena *arena;
  const char *folder; /* TN_OPT_PATH values are relative to it; NULL: the current folder */
  void *data;         /* item->options_bytes (at least 1), defaults filled */
  bool *given;        /* per option: set explicitly */
} tn_options;

/* Allocates and fills the defaults. Fails (TN_EABI) when the item's own table is wrong: a default
 * outside its range, an unknown type, a field outside the struct. */
tn_status tn_options_start(const void *handle, tn_arena *arena, const tn_item *item, tn_options *options);

/* Sets one option from its text. Unknown name: TN_EINVAL with the nearest name. Wrong type or range:
 * TN_EINVAL with value and expectation, e.g. `stride: 0 is out of range, expected >= 1`. Given
 * twice: TN_EINVAL. The caller puts file and line in front. */
tn_status tn_options_set_text(const void *handle, tn_options *options, const char *name, const char *text);
/* The same from numbers. An int serves FLAG, INT, SIZE, FLOAT, DURATION, and one-entry lists. */
tn_status tn_options_set_int(const void *handle, tn_options *options, const char *name, int64_t value);
tn_status tn_options_set_float(const void *handle, tn_options *options, const char *name, double value);
tn_status tn_options_set_ints(const void *handle, tn_options *options, const char *name, int64_t n,
                              const int64_t *v);
tn_status tn_options_set_floats(const void *handle, tn_options *options, const char *name, int64_t n,
                                const double *v);

/* The option at a position (schema order), or NULL past the end. */
const tn_option *tn_options_at(const tn_item *item, int64_t position);
const tn_option *tn_options_find(const tn_item *item, const char *name);

/* Checks that every required option was given. */
tn_status tn_options_finish(const void *handle, tn_options *options);

/* The value of one option as text that reads back to the same bits; and all that differ from their
 * default as "name=value, name=value", in schema order. */
void tn_options_print_one(tn_text *text, const tn_option *option, const void *data);
void tn_options_print(tn_text *text, const tn_item *item, const void *data);

/* Whether two filled structs hold equal values (lists and texts by content). */
bool tn_options_equal(const tn_item *item, const void *a, const void *b);

/* Scalars by type, for readers of options that are not an item's: size "64MiB", duration "90s". */
tn_status tn_parse_size(const void *handle, const char *text, int64_t *bytes);
tn_status tn_parse_duration(const void *handle, const char *text, double *seconds);
tn_status tn_parse_dtype(const void *handle, const char *text, int32_t *dtype);

#endif
