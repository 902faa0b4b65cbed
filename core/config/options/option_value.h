/* core/config/options/option_value.h: the conversion of an option between text, value and struct field.
 * Private to core/config. */
#pragma once

#include "core/base/text/word_list.h"
#include "core/config/options/options.h"

/* The C types of fields. */
enum {
  TN_FIELD_NONE,
  TN_FIELD_I32,
  TN_FIELD_I64,
  TN_FIELD_F64,
  TN_FIELD_TEXT,
  TN_FIELD_INTS,
  TN_FIELD_FLOATS,
  TN_FIELD_TRANSFORMS,
  TN_FIELD_SCHEDULES
};

/* Properties of each TN_OPT_* type; field TN_FIELD_NONE: unknown type. */
typedef struct tn_option_type {
  int32_t field;
  uint32_t bytes;
  const char *expected; /* "a whole number" */
} tn_option_type;
const tn_option_type *tn_option_type_of(const tn_option *option);

/* A value of any type; the field's type selects the member. */
typedef struct tn_option_value {
  int64_t integer; /* I32, I64 */
  double real;
  const char *text;
  tn_ints ints;
  tn_floats floats;
  tn_transforms transforms;
  tn_schedules schedules;
} tn_option_value;

/* Converts text to a value and checks its range. Lists and texts are allocated in the arena. Messages
 * begin with "name: ". */
tn_status tn_option_parse(const void *handle, tn_arena *arena, const char *folder, const tn_option *option,
                          const char *text, tn_option_value *value);

void tn_option_store(const tn_option *option, void *data, const tn_option_value *value);
tn_option_value tn_option_load(const tn_option *option, const void *data);
bool tn_option_same(const tn_option *option, const void *a, const void *b);

/* Whether the range of an option is well-formed and suits its type. */
bool tn_option_range_valid(const tn_option *option);
/* Checks the value against the range; the message is "name: 0 is out of range, expected >= 1". */
tn_status tn_option_check(const void *handle, const tn_option *option, const tn_option_value *value);

/* The position of an option in its item's table, or -1. */
int64_t tn_options_position(const tn_item *item, const char *name);
