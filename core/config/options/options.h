/* core/config/options/options.h: filling the options struct of an item, from text (configurations, model
 * lines, graph text) or from typed values (the emitter). Defaults, ranges and units are handled here for
 * all callers. */
#pragma once

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/text/text.h"
#include "tenon/plugin/plugin.h"

/* An options struct that is being filled. `data` is passed to the item's callbacks and lives in the arena. */
typedef struct tn_options {
  const tn_item *item;
  tn_arena *arena;
  const char *folder; /* TN_OPT_PATH values are relative to it; NULL: the current folder */
  void *data;         /* item->options_bytes (at least 1), defaults filled */
  bool *given;        /* per option: whether it was set */
} tn_options;

/* Allocates the struct and fills in the defaults. TN_EABI if the item's table is invalid: a default
 * outside its range, an unknown type, a field outside the struct. */
tn_status tn_options_start(const void *handle, tn_arena *arena, const tn_item *item, tn_options *options);

/* Sets one option from text. An unknown name, a wrong type, a value out of range and a repeated option are
 * TN_EINVAL; the message gives the nearest name, or value and expectation, such as `stride: 0 is out of
 * range, expected >= 1`. The caller adds file and line in front. */
tn_status tn_options_set_text(const void *handle, tn_options *options, const char *name, const char *text);
/* Sets one option from numbers. An int is valid for FLAG, INT, SIZE, FLOAT, DURATION and lists of one
 * entry. */
tn_status tn_options_set_int(const void *handle, tn_options *options, const char *name, int64_t value);
tn_status tn_options_set_float(const void *handle, tn_options *options, const char *name, double value);
tn_status tn_options_set_ints(const void *handle, tn_options *options, const char *name, int64_t n,
                              const int64_t *v);
tn_status tn_options_set_floats(const void *handle, tn_options *options, const char *name, int64_t n,
                                const double *v);

/* Set one option of type SCHEDULES or TRANSFORMS; the list must live as long as the struct. */
tn_status tn_options_set_schedules(const void *handle, tn_options *options, const char *name,
                                   const tn_schedules *schedules);
tn_status tn_options_set_transforms(const void *handle, tn_options *options, const char *name,
                                    const tn_transforms *transforms);

/* The option at a position of the item's table, or NULL past the end. */
const tn_option *tn_options_at(const tn_item *item, int64_t position);
const tn_option *tn_options_find(const tn_item *item, const char *name);

/* Whether the range of an option of type INT allows the number. */
bool tn_option_allows(const tn_option *option, int64_t number);

/* Checks that every required option was set. */
tn_status tn_options_finish(const void *handle, tn_options *options);

/* Print the value of one option as text that reads back to the same bits, or all options that differ from
 * their default as "name=value, name=value", in the order of the table. */
void tn_options_print_one(tn_text *text, const tn_option *option, const void *data);
void tn_options_print(tn_text *text, const tn_item *item, const void *data);

/* Whether two options structs hold equal values (lists and texts compared by content). */
bool tn_options_equal(const tn_item *item, const void *a, const void *b);

/* Parse scalars outside an item's options: size "64MiB", duration "90s", element type "f32". */
tn_status tn_parse_size(const void *handle, const char *text, int64_t *bytes);
tn_status tn_parse_duration(const void *handle, const char *text, double *seconds);
tn_status tn_parse_dtype(const void *handle, const char *text, int32_t *dtype);
