/* plugins/sources/random_fields.c: the fields of the source random: their text, and their numbers. */
#include "plugins/sources/random_fields.h"
#include "plugins/sources/field_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const int32_t field_dtypes[] = {TN_F32, TN_F64, TN_I32, TN_I64, TN_I8, TN_U8, TN_BOOL};

static const char field_form[] = "NAME: TYPE[DIMENSIONS] with f32, f64, i32, i64, i8, u8 or bool, as in ids: "
                                 "i64[26], and behind whole numbers "
                                 "LEAST..GREATEST, as in label: i32[] 0..4";

/* Copies the word at *at, and goes on behind it and blanks. */
static int field_take_word(const char **at, char word[RANDOM_NAME]) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  size_t n = strspn(*at, letters);
  if (n == 0 || n >= RANDOM_NAME) return 0;
  memcpy(word, *at, n);
  word[n] = '\0';
  *at += n;
  *at += strspn(*at, " \t");
  return 1;
}

static int field_take_mark(const char **at, char mark) {
  if (**at != mark) return 0;
  (*at)++;
  *at += strspn(*at, " \t");
  return 1;
}

/* "[3, 32]", or "[]". */
static int field_take_dims(const char **at, tn_type *type) {
  if (!field_take_mark(at, '[')) return 0;
  while (!field_take_mark(at, ']')) {
    char *end;
    long long dim = strtoll(*at, &end, 10);
    if (end == *at || dim < 1 || dim > INT32_MAX || type->rank == TN_MAX_RANK - 1) return 0;
    type->dims[type->rank++] = dim;
    *at = end + strspn(end, " \t");
    if (!field_take_mark(at, ',') && **at != ']') return 0;
  }
  return 1;
}

static int field_take_type(const char **at, tn_type *type) {
  char word[RANDOM_NAME];
  if (!field_take_word(at, word)) return 0;
  for (size_t i = 0; i < sizeof field_dtypes / sizeof *field_dtypes; i++) {
    if (strcmp(tn_dtype_name(field_dtypes[i]), word) != 0) continue;
    type->dtype = field_dtypes[i];
    return field_take_dims(at, type);
  }
  return 0;
}

static int field_is_whole(const tn_field *field) {
  int32_t dtype = field->type.dtype;
  return dtype == TN_I32 || dtype == TN_I64 || dtype == TN_I8 || dtype == TN_U8;
}

static int field_take_number(const char **at, int64_t *number) {
  char *end;
  *number = strtoll(*at, &end, 10);
  int taken = end != *at && *number >= INT32_MIN && *number <= INT32_MAX;
  *at = end;
  return taken;
}

/* "0..4" behind the type of whole numbers; without it those below `classes`. */
static int field_take_range(const char **at, const tn_field *field, int64_t classes, int64_t *low,
                            int64_t *high) {
  int is_signed = field->type.dtype == TN_I8, is_byte = is_signed || field->type.dtype == TN_U8;
  int64_t least = is_signed ? INT8_MIN : 0, most = is_signed ? INT8_MAX : UINT8_MAX;
  *low = 0;
  *high = is_byte && classes - 1 > most ? most : classes - 1;
  if (!field_is_whole(field) || strspn(*at, "-0123456789") == 0) return 1;
  if (!field_take_number(at, low) || strncmp(*at, "..", 2) != 0) return 0;
  *at += 2;
  if (!field_take_number(at, high)) return 0;
  *at += strspn(*at, " \t");
  return *low <= *high && (!is_byte || (*low >= least && *high <= most));
}

static int field_is_class(const tn_field *field) {
  return field->role == TN_FIELD_TARGET && (field->type.dtype == TN_I32 || field->type.dtype == TN_I64);
}

static tn_status field_add(const field_list *list, const field_entry *entry, int32_t role, int64_t classes,
                           random_fields *fields) {
  if (fields->n == RANDOM_FIELDS) return field_list_refuse_more(list, RANDOM_FIELDS);
  char *name = fields->names[fields->n];
  tn_field *field = &fields->v[fields->n];
  int64_t *low = &fields->low[fields->n], *high = &fields->high[fields->n];
  *field = (tn_field){.struct_size = sizeof *field, .name = name, .role = role};
  TN_TRY(field_list_name(list, entry, name, RANDOM_NAME));
  const char *at = entry->value.text, *end = at + entry->value.n;
  if (!field_take_type(&at, &field->type) || !field_take_range(&at, field, classes, low, high) || at < end)
    return field_list_refuse(list, entry);
  for (int32_t i = 0; i < fields->n; i++)
    if (strcmp(fields->names[i], name) == 0) return field_list_refuse_twice(list, name);
  if (field_is_class(field) && *low >= 0) field->classes = *high + 1;
  fields->n++;
  return TN_OK;
}

tn_status random_fields_parse(tn_env *env, const char *option, const char *text, int32_t role,
                              int64_t classes, random_fields *fields) {
  field_list list = field_list_of(env, option, field_form, text);
  field_entry entry;
  while (field_list_next(&list, &entry)) TN_TRY(field_add(&list, &entry, role, classes, fields));
  return TN_OK;
}

/* ---- numbers ---- */

/* One of two normal numbers (Box and Muller, Ann. Math. Stat. 1958). */
static double field_normal(tn_rng *rng) {
  double u = 1 - tn_rng_uniform(rng), angle = 6.283185307179586 * tn_rng_uniform(rng);
  return sqrt(-2 * log(u)) * cos(angle);
}

static double field_float(tn_rng *rng, int32_t role) {
  return role == TN_FIELD_TARGET ? tn_rng_uniform(rng) : field_normal(rng);
}

void random_fields_fill(tn_rng *rng, const random_fields *fields, int32_t i, void *out) {
  const tn_field *field = &fields->v[i];
  int64_t n = tn_type_count(&field->type), low = fields->low[i], count = fields->high[i] - low + 1;
  for (int64_t k = 0; k < n; k++) {
    switch (field->type.dtype) {
    case TN_F32: ((float *)out)[k] = (float)field_float(rng, field->role); break;
    case TN_F64: ((double *)out)[k] = field_float(rng, field->role); break;
    case TN_I32: ((int32_t *)out)[k] = (int32_t)(low + tn_rng_below(rng, count)); break;
    case TN_I64: ((int64_t *)out)[k] = low + tn_rng_below(rng, count); break;
    case TN_I8: ((int8_t *)out)[k] = (int8_t)(low + tn_rng_below(rng, count)); break;
    case TN_U8: ((uint8_t *)out)[k] = (uint8_t)(low + tn_rng_below(rng, count)); break;
    default: ((uint8_t *)out)[k] = (uint8_t)tn_rng_below(rng, 2); break;
    }
  }
}
