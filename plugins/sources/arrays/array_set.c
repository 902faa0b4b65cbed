/* plugins/sources/arrays/array_set.c: see array_set.h. */
#include "plugins/sources/arrays/array_set.h"

#include <string.h>

/* ---- one field ---- */

static tn_status array_field_read(const void *handle, const array_field *f, int64_t row, void *to) {
  double value = 0;
  int64_t misfit = element_read(&f->array.element, f->array.data + row * f->row_bytes, f->type.dtype, to,
                                f->elements, &value);
  if (misfit < 0) return TN_OK;
  return tn_fail(
      handle, TN_EINVAL, NULL,
      "%s: row %lld has %.17g, which %s cannot hold; `as i64` or `as f64` behind the file reads it", f->path,
      (long long)row, value, tn_dtype_name(f->type.dtype));
}

/* Of whole numbers whose range is said; a number below 0 is no class. */
static tn_status array_field_check_classes(const void *handle, const array_field *f, int64_t row,
                                           const void *values) {
  if (f->classes == 0 || (f->type.dtype != TN_I32 && f->type.dtype != TN_I64)) return TN_OK;
  for (int64_t i = 0; i < f->elements; i++) {
    int64_t number = f->type.dtype == TN_I64 ? ((const int64_t *)values)[i] : ((const int32_t *)values)[i];
    if (number >= f->classes)
      return tn_fail(handle, TN_EINVAL, NULL, "%s: row %lld has class %lld, expected 0 to %lld", f->path,
                     (long long)row, (long long)number, (long long)f->classes - 1);
  }
  return TN_OK;
}

tn_status array_field_sample(const void *handle, const array_field *f, int64_t row, void *to) {
  TN_TRY(array_field_read(handle, f, row, to));
  return array_field_check_classes(handle, f, row, to);
}

tn_status array_field_number(const void *handle, const array_field *f, int64_t row, int64_t *number) {
  int64_t wide = 0;
  int32_t narrow = 0;
  TN_TRY(array_field_read(handle, f, row, f->type.dtype == TN_I64 ? (void *)&wide : (void *)&narrow));
  *number = f->type.dtype == TN_I64 ? wide : narrow;
  return TN_OK;
}

/* As what the rows are read: what the field's text says, or what the file has. */
static tn_status array_field_type(const void *handle, const char *option, const field_text *t,
                                  array_field *f) {
  const array *a = &f->array;
  f->elements = array_bytes(a->dims + 1, a->rank - 1, 1);
  f->row_bytes = f->elements * a->element.size;
  f->type = (tn_type){.dtype = t->as_dtype, .rank = a->rank - 1};
  memcpy(f->type.dims, a->dims + 1, (size_t)f->type.rank * sizeof *a->dims);
  if (t->as_dtype == TN_ANY) f->type.dtype = element_dtype(&a->element, f->role);
  if (!element_converts(&a->element, f->type.dtype))
    return tn_fail(handle, TN_EINVAL, option, "%s: %s: has numbers of type %s, which are not read as %s",
                   f->name, f->path, element_name(&a->element), tn_dtype_name(f->type.dtype));
  if (t->as_rank < 0) return TN_OK;
  f->type.rank = t->as_rank;
  memcpy(f->type.dims, t->as_dims, sizeof t->as_dims);
  if (array_bytes(t->as_dims, t->as_rank, 1) == f->elements) return TN_OK;
  return tn_fail(handle, TN_EINVAL, option,
                 "%s: %s: a row has %lld numbers, expected as many as the dimensions behind `as`", f->name,
                 f->path, (long long)f->elements);
}

/* The greatest number of a target of one number a row, + 1. Numbers below 0 are no classes: losses ignore
 * them. */
static tn_status array_field_count_classes(tn_env *env, const char *option, array_field *f) {
  int64_t said = f->classes, number = 0;
  int32_t whole = f->type.dtype == TN_I32 || f->type.dtype == TN_I64;
  if (f->role != TN_FIELD_TARGET || !whole || f->type.rank > 0) return TN_OK;
  for (int64_t row = 0; row < f->array.dims[0]; row++) {
    if (row % (1 << 20) == 0 && tn_env_stopping(env))
      return tn_fail(env, TN_ESTOPPED, NULL, "%s: stopped while it was read", f->path);
    TN_TRY(array_field_number(env, f, row, &number));
    if (said > 0 && number >= said)
      return tn_fail(env, TN_EINVAL, option, "%s: %s: row %lld has class %lld, expected 0 to %lld", f->name,
                     f->path, (long long)row, (long long)number, (long long)said - 1);
    if (number >= f->classes) f->classes = number + 1;
  }
  f->counts = said == 0;
  return TN_OK;
}

static tn_status array_field_open(tn_env *env, const char *option, const field_text *t, array_field *f) {
  array_place place = {.path = t->path,
                       .member = t->member,
                       .preferred = t->name,
                       .raw = t->raw,
                       .raw_rank = t->raw_rank,
                       .skip = t->skip};
  memcpy(place.raw_dims, t->raw_dims, sizeof place.raw_dims);
  memcpy(f->name, t->name, sizeof f->name);
  size_t path = strlen(t->path) + 1;
  f->path = tn_new(env, path);
  if (f->path == NULL) return TN_ENOMEM;
  memcpy(f->path, t->path, path);
  TN_TRY(array_open(env, &place, &f->array));
  TN_TRY(array_field_type(env, option, t, f));
  f->classes = t->classes;
  return array_field_count_classes(env, option, f);
}

/* ---- all fields ---- */

static int32_t array_set_find(const array_set *set, const char *name) {
  int32_t i = 0;
  while (i < set->n && strcmp(set->fields[i].name, name) != 0) i++;
  return i;
}

/* All fields have as many rows as the first one. */
static tn_status array_set_check_rows(tn_env *env, const char *option, array_set *set, const array_field *f) {
  if (set->rows == 0) set->rows = f->array.dims[0];
  if (set->rows == f->array.dims[0]) return TN_OK;
  const array_field *first = &set->fields[0];
  return tn_fail(env, TN_EINVAL, option,
                 "%s of field '%s' has %lld rows, but %s of field '%s' has %lld, expected as many", f->path,
                 f->name, (long long)f->array.dims[0], first->path, first->name, (long long)set->rows);
}

static tn_status array_set_add(tn_env *env, const char *option, const char *folder, const char *text,
                               int32_t role, array_set *set) {
  field_list list = field_list_of(env, option, FIELD_TEXT_FORM, text);
  field_entry entry;
  field_text field;
  while (field_list_next(&list, &entry)) {
    TN_TRY(field_text_read(&list, &entry, folder, &field));
    if (array_set_find(set, field.name) < set->n) return field_list_refuse_twice(&list, field.name);
    if (set->n == ARRAY_FIELDS) return field_list_refuse_more(&list, ARRAY_FIELDS);
    array_field *f = &set->fields[set->n++];
    f->role = role;
    TN_TRY(array_field_open(env, option, &field, f));
    TN_TRY(array_set_check_rows(env, option, set, f));
  }
  return TN_OK;
}

tn_status array_set_open(tn_env *env, const char *folder, const char *inputs, const char *targets,
                         array_set *set) {
  TN_TRY(array_set_add(env, "inputs", folder, inputs, TN_FIELD_INPUT, set));
  if (set->n == 0)
    return tn_fail(env, TN_EINVAL, "inputs", "inputs names no field, expected one, as in image: photos.npy");
  return array_set_add(env, "targets", folder, targets, TN_FIELD_TARGET, set);
}

/* The file of `valid` for the field of the same name in `like`. */
static tn_status array_set_open_one(tn_env *env, const field_list *list, const field_text *text,
                                    const array_set *like, array_set *set) {
  int32_t i = array_set_find(like, text->name);
  if (i == like->n)
    return tn_fail(env, TN_EINVAL, "valid", "valid: the field '%s' is neither in inputs nor in targets",
                   text->name);
  array_field *f = &set->fields[i];
  if (f->path != NULL) return field_list_refuse_twice(list, text->name);
  f->role = like->fields[i].role;
  TN_TRY(array_field_open(env, "valid", text, f));
  if (tn_type_equal(&f->type, &like->fields[i].type)) return TN_OK;
  return tn_fail(env, TN_EINVAL, "valid",
                 "valid: %s of field '%s' has rows of another type or size than %s, expected the same",
                 f->path, f->name, like->fields[i].path);
}

/* The fields get the order and the roles of the first set. */
tn_status array_set_open_same(tn_env *env, const char *folder, const char *valid, const array_set *like,
                              array_set *set) {
  field_list list = field_list_of(env, "valid", FIELD_TEXT_FORM, valid);
  field_entry entry;
  field_text text;
  set->n = like->n;
  while (field_list_next(&list, &entry)) {
    TN_TRY(field_text_read(&list, &entry, folder, &text));
    TN_TRY(array_set_open_one(env, &list, &text, like, set));
  }
  for (int32_t i = 0; i < set->n; i++) {
    if (set->fields[i].path == NULL)
      return tn_fail(env, TN_EINVAL, "valid", "valid: the field '%s' is missing, expected its file",
                     like->fields[i].name);
    TN_TRY(array_set_check_rows(env, "valid", set, &set->fields[i]));
  }
  return TN_OK;
}

void array_set_close(const void *handle, array_set *set) {
  for (int32_t i = 0; i < set->n; i++) {
    array_close(handle, &set->fields[i].array);
    tn_delete(handle, set->fields[i].path);
  }
  set->n = 0;
}

tn_status array_set_join_classes(tn_env *env, array_set *a, array_set *b) {
  for (int32_t i = 0; i < a->n; i++) {
    array_field *own = &a->fields[i], *other = &b->fields[i];
    if (own->counts && other->classes > own->classes) own->classes = other->classes;
    if (other->counts && other->classes > own->classes)
      return tn_fail(env, TN_EINVAL, "valid", "valid: %s of field '%s' has class %lld, expected 0 to %lld",
                     other->path, other->name, (long long)other->classes - 1, (long long)own->classes - 1);
    other->classes = own->classes;
  }
  return TN_OK;
}
