/* plugins/sources/joined/joined_classes.c: the classes of a field in several sources become one list, in the
 * order in which their names come first. */
#include <string.h>

#include "plugins/sources/joined/joined.h"

/* The field of a part that goes to a field of the whole. */
static const tn_field *classes_field(const joined_part *p, int32_t field) {
  for (int32_t k = 0; k < p->description.n_fields; k++)
    if (p->to[k] == field) return tn_description_field(&p->description, k);
  return NULL;
}

/* The number of a name among the first n; n: it is new. Lists that are equal find it at once. */
static int32_t classes_find(const char *const *names, int32_t n, const char *name, int64_t hint) {
  if (hint < n && strcmp(names[hint], name) == 0) return (int32_t)hint;
  for (int32_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return i;
  return n;
}

static tn_status classes_add_name(joined *j, int32_t field, const char *name) {
  size_t bytes = strlen(name) + 1;
  char *copy = tn_new(&j->env, bytes);
  if (copy == NULL) return TN_ENOMEM;
  memcpy(copy, name, bytes);
  j->class_names[field][j->n_class_names[field]++] = copy;
  return TN_OK;
}

static tn_status classes_add_part(joined *j, joined_part *p, int32_t field) {
  const tn_field *f = classes_field(p, field);
  int32_t is_same = 1, *numbers;
  numbers = p->classes[field] = tn_new(&j->env, (size_t)f->classes * sizeof *numbers);
  if (numbers == NULL) return TN_ENOMEM;
  for (int64_t c = 0; c < f->classes; c++) {
    numbers[c] = classes_find(j->class_names[field], j->n_class_names[field], f->class_names[c], c);
    if (numbers[c] == j->n_class_names[field]) TN_TRY(classes_add_name(j, field, f->class_names[c]));
    is_same = is_same && numbers[c] == c;
  }
  if (!is_same && f->type.dtype != TN_I32)
    return tn_fail(
        &j->env, TN_EINVAL, "sources",
        "sources: field '%s' has other classes in '%s' than in '%s', expected the same, as it is %s and no "
        "class number of i32",
        j->names[field], p->name, j->parts[0].name, tn_dtype_name(f->type.dtype));
  if (!is_same) return TN_OK;
  tn_delete(&j->env, numbers);
  p->classes[field] = NULL;
  return TN_OK;
}

/* Class numbers without names are the same everywhere. */
static tn_status classes_check_unnamed(const joined *j, int32_t field, int64_t names) {
  for (int32_t i = 0; i < j->n_parts; i++) {
    const tn_field *f = classes_field(&j->parts[i], field);
    if (f->class_names == NULL && f->classes != names)
      return tn_fail(&j->env, TN_EINVAL, "sources",
                     "sources: field '%s' has %lld classes without names in '%s', and %lld names in the "
                     "others; expected "
                     "as many, or names for all",
                     j->names[field], (long long)f->classes, j->parts[i].name, (long long)names);
  }
  return TN_OK;
}

tn_status joined_join_classes(joined *j, int32_t field) {
  int64_t sum = 0, most = 0, named = 0;
  for (int32_t i = 0; i < j->n_parts; i++) {
    const tn_field *f = classes_field(&j->parts[i], field);
    sum += f->classes;
    if (f->classes > most) most = f->classes;
    named += f->class_names != NULL;
  }
  j->fields[field].classes = most;
  if (sum == 0 || named == 0) return TN_OK;
  j->class_names[field] = tn_new(&j->env, (size_t)sum * sizeof(char *));
  if (j->class_names[field] == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < j->n_parts; i++)
    if (classes_field(&j->parts[i], field)->class_names != NULL)
      TN_TRY(classes_add_part(j, &j->parts[i], field));
  j->fields[field].classes = j->n_class_names[field];
  j->fields[field].class_names = j->class_names[field];
  return classes_check_unnamed(j, field, j->n_class_names[field]);
}
