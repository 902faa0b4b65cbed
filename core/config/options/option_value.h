/* core/config/options/option_value.h: one option's value between its text and its field. Private to the
 * option files of this room. */
#ifndef TN_CORE_CONFIG_OPTIONS_OPTION_VALUE_H
#define TN_CORE_CONFIG_OPTIONS_OPTION_VALUE_H

#include "core/config/options/options.h"

/* C types of fields. */
enum {
  TN_FIELD_NONE,
  TN_FIELD_I32,
  TN_FIELD_I64,
  TN_FIELD_F64,
  TN_FIELD_TEXT,
  TN_FIELD_INTS,
  TN_FIELD_FLOATS
};

/* What each TN_OPT_* type is made of; field TN_FIELD_NONE: no such type. */
typedef struct tn_option_type {
  int32_t field;
  uint32_t bytes;
  const char *expected; /* "a whole number" */
} tn_option_type;
const tn_option_type *tn_option_type_of(const tn_option *option);

/* The member that the field's type says is the one that counts. */
typedef struct tn_option_value {
  int64_t whole; /* I32, I64 */
  double real;
  const char *text;
  tn_ints ints;
  tn_floats floats;
} tn_option_value;

/* Text to value, range included. Lists and texts land in the arena. Errors begin with "name: ". */
tn_status tn_option_parse(const void *handle, tn_arena *arena, const char *folder, const tn_option *option,
                          const char *text, tn_option_value *value);

void tn_option_store(const tn_option *option, void *data, const tn_option_value *value);
tn_option_value tn_option_load(const tn_option *option, const void *data);
bool tn_option_same(const tn_option *option, const void *a, const void *b);

/* Whether the range of an option is well formed and fits its type. */
bool tn_option_range_valid(const tn_option *option);
/* Whether the value lies in the range; else "name: 0 is out of range, expected >= 1". */
tn_status tn_option_check(const void *handle, const tn_option *option, const tn_option_value *value);

/* Position of an option in its item's table; -1: none. */
int64_t tn_options_position(const tn_item *item, const char *name);

/* The words of "a|b|c": position of a word or -1; the word at a position, its length in *n, or NULL. */
int32_t tn_words_find(const char *words, const char *word);
const char *tn_words_at(const char *words, int32_t position, size_t *n);

#endif
