/* core/config/options/set.c: setting one option, from text or from numbers. */
#include <math.h>
#include <string.h>

#include "core/config/options/habits.h"
#include "core/config/options/option_value.h"

enum { NAMES_LISTED = 12, NAMES_COMPARED = 64 };

/* Fails with a list of the item's first options, for a name without a near match. */
static tn_status option_list_names(const void *handle, const tn_item *item, const char *name) {
  tn_text names = tn_text_new(handle);
  for (int64_t i = 0; i <= NAMES_LISTED && tn_options_at(item, i) != NULL; i++)
    tn_text_addf(&names, "%s%s", i > 0 ? ", " : "", i < NAMES_LISTED ? tn_options_at(item, i)->name : "...");
  tn_status status = tn_failf(handle, TN_EINVAL, "%s: unknown option of %s, expected one of %s", name,
                              item->name, names.v != NULL ? names.v : "its own");
  tn_text_free(&names);
  return status;
}

static tn_status option_fail_unknown(const void *handle, const tn_item *item, const char *name) {
  const char *names[NAMES_COMPARED];
  size_t n = 0;
  for (; n < NAMES_COMPARED && tn_options_at(item, (int64_t)n) != NULL; n++)
    names[n] = tn_options_at(item, (int64_t)n)->name;
  if (n == 0 && tn_option_needless(name) != NULL)
    return tn_failf(handle, TN_EINVAL, "%s: unknown, %s takes no options; leave it out, %s", name, item->name,
                    tn_option_needless(name));
  if (n == 0) return tn_failf(handle, TN_EINVAL, "%s: unknown, %s takes no options", name, item->name);
  const char *habit = tn_option_habit(name, names, n), *needless = tn_option_needless(name);
  const char *nearest = habit != NULL ? habit : tn_text_nearest(name, names, n);
  if (habit == NULL && needless != NULL)
    return tn_failf(handle, TN_EINVAL, "%s: unknown option of %s; leave it out, %s", name, item->name,
                    needless);
  if (nearest == NULL) return option_list_names(handle, item, name);
  return tn_failf(handle, TN_EINVAL, "%s: unknown option of %s, did you mean '%s'?", name, item->name,
                  nearest);
}

/* Finds an option that has not been set yet. */
static tn_status option_take(const void *handle, const tn_options *options, const char *name,
                             int64_t *position) {
  *position = tn_options_position(options->item, name);
  if (*position < 0) return option_fail_unknown(handle, options->item, name);
  if (options->given[*position]) return tn_failf(handle, TN_EINVAL, "%s: given twice", name);
  return TN_OK;
}

static void option_set(tn_options *options, int64_t position, const tn_option_value *value) {
  tn_option_store(tn_options_at(options->item, position), options->data, value);
  options->given[position] = true;
}

tn_status tn_options_set_text(const void *handle, tn_options *options, const char *name, const char *text) {
  tn_option_value value = {0};
  int64_t position;
  TN_TRY(option_take(handle, options, name, &position));
  const tn_option *option = tn_options_at(options->item, position);
  TN_TRY(tn_option_parse(handle, options->arena, options->folder, option, text, &value));
  option_set(options, position, &value);
  return TN_OK;
}

/* A list of items. */
static tn_status option_set_items(const void *handle, tn_options *options, const char *name, uint32_t type,
                                  const char *what, const tn_option_value *value) {
  int64_t position;
  TN_TRY(option_take(handle, options, name, &position));
  const tn_option *option = tn_options_at(options->item, position);
  if (option->type != type)
    return tn_failf(handle, TN_EINVAL, "%s: %s were given, expected %s", name, what,
                    tn_option_type_of(option)->expected);
  option_set(options, position, value);
  return TN_OK;
}

tn_status tn_options_set_transforms(const void *handle, tn_options *options, const char *name,
                                    const tn_transforms *transforms) {
  return option_set_items(handle, options, name, TN_OPT_TRANSFORMS, "transforms",
                          &(tn_option_value){.transforms = *transforms});
}

tn_status tn_options_set_schedules(const void *handle, tn_options *options, const char *name,
                                   const tn_schedules *schedules) {
  return option_set_items(handle, options, name, TN_OPT_SCHEDULES, "schedules",
                          &(tn_option_value){.schedules = *schedules});
}

/* Numbers from the caller: ints or floats; the other pointer is NULL. */
typedef struct option_numbers {
  const int64_t *ints;
  const double *floats;
  int64_t n;
  bool list;
} option_numbers;

static tn_status option_to_ints(const tn_options *options, const option_numbers *given, tn_ints *ints) {
  int64_t *v = tn_arena_alloc(options->arena, tn_size_mul((size_t)given->n, sizeof(*v)));
  if (v == NULL) return TN_ENOMEM;
  if (given->n > 0) memcpy(v, given->ints, (size_t)given->n * sizeof(*v));
  *ints = (tn_ints){given->n, v};
  return TN_OK;
}

static tn_status option_to_floats(const tn_options *options, const option_numbers *given, tn_floats *floats) {
  double *v = tn_arena_alloc(options->arena, tn_size_mul((size_t)given->n, sizeof(*v)));
  if (v == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < given->n; i++)
    v[i] = given->ints != NULL ? (double)given->ints[i] : given->floats[i];
  *floats = (tn_floats){given->n, v};
  return TN_OK;
}

/* A choice as a number: the position of its word. */
static tn_status option_check_choice(const void *handle, const tn_option *option, int64_t position) {
  int32_t n = 0;
  size_t length;
  while (tn_alternatives_at(option->range, n, &length) != NULL) n++;
  if (position >= 0 && position < n) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: %lld is no position in %s, expected 0 .. %d", option->name,
                  (long long)position, option->range, (int)n - 1);
}

/* Checks the limits of flags, choices, dtypes, sizes and durations, which are not part of the option's range.
 */
static tn_status option_check_type(const void *handle, const tn_option *option,
                                   const tn_option_value *value) {
  if (option->type == TN_OPT_FLAG && value->integer != 0 && value->integer != 1)
    return tn_failf(handle, TN_EINVAL, "%s: %lld is neither 1 nor 0, for yes or no", option->name,
                    (long long)value->integer);
  if (option->type == TN_OPT_ENUM) return option_check_choice(handle, option, value->integer);
  if (option->type == TN_OPT_DTYPE && (value->integer < 0 || value->integer >= TN_DTYPES))
    return tn_failf(handle, TN_EINVAL, "%s: %lld is not an element type, expected 0 .. %d, such as TN_F32",
                    option->name, (long long)value->integer, TN_DTYPES - 1);
  if (option->type == TN_OPT_SIZE && value->integer < 0)
    return tn_failf(handle, TN_EINVAL, "%s: %lld is not a size, expected bytes from 0 on", option->name,
                    (long long)value->integer);
  if (option->type == TN_OPT_DURATION && !(value->real >= 0 && value->real < INFINITY))
    return tn_failf(handle, TN_EINVAL, "%s: %g is not a duration, expected seconds from 0 on", option->name,
                    value->real);
  return TN_OK;
}

static tn_status option_convert(const void *handle, const tn_options *options, const tn_option *option,
                                const option_numbers *given, tn_option_value *value) {
  bool scalar = !given->list, integer = given->ints != NULL;
  switch (option->type) {
  case TN_OPT_FLAG:
  case TN_OPT_INT:
  case TN_OPT_ENUM:
  case TN_OPT_DTYPE:
  case TN_OPT_SIZE:
    if (!scalar || !integer) break;
    value->integer = *given->ints;
    return option_check_type(handle, option, value);
  case TN_OPT_FLOAT:
  case TN_OPT_DURATION:
    if (!scalar) break;
    value->real = integer ? (double)*given->ints : *given->floats;
    return option_check_type(handle, option, value);
  case TN_OPT_INTS:
    if (!integer) break;
    return option_to_ints(options, given, &value->ints);
  case TN_OPT_FLOATS: return option_to_floats(options, given, &value->floats);
  default: break;
  }
  return tn_failf(handle, TN_EINVAL, "%s: %s was given, expected %s", option->name,
                  scalar ? (integer ? "a whole number" : "a fraction")
                         : (integer ? "a list of whole numbers" : "a list of fractions"),
                  tn_option_type_of(option)->expected);
}

static tn_status option_set_numbers(const void *handle, tn_options *options, const char *name,
                                    const option_numbers *given) {
  tn_option_value value = {0};
  int64_t position;
  TN_TRY(option_take(handle, options, name, &position));
  const tn_option *option = tn_options_at(options->item, position);
  if (given->n < 0)
    return tn_failf(handle, TN_EINVAL, "%s: a list of %lld entries, expected 0 or more", name,
                    (long long)given->n);
  TN_TRY(option_convert(handle, options, option, given, &value));
  TN_TRY(tn_option_check(handle, option, &value));
  option_set(options, position, &value);
  return TN_OK;
}

tn_status tn_options_set_int(const void *handle, tn_options *options, const char *name, int64_t value) {
  option_numbers given = {.ints = &value, .n = 1};
  return option_set_numbers(handle, options, name, &given);
}

tn_status tn_options_set_float(const void *handle, tn_options *options, const char *name, double value) {
  option_numbers given = {.floats = &value, .n = 1};
  return option_set_numbers(handle, options, name, &given);
}

tn_status tn_options_set_ints(const void *handle, tn_options *options, const char *name, int64_t n,
                              const int64_t *v) {
  static const int64_t none = 0; /* an empty list may come as NULL */
  option_numbers given = {.ints = v != NULL ? v : &none, .n = n, .list = true};
  return option_set_numbers(handle, options, name, &given);
}

tn_status tn_options_set_floats(const void *handle, tn_options *options, const char *name, int64_t n,
                                const double *v) {
  option_numbers given = {.floats = v, .n = n, .list = true};
  return option_set_numbers(handle, options, name, &given);
}
