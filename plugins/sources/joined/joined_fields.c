/* plugins/sources/joined/joined_fields.c: the fields of the whole: those of the lists `inputs` and `targets`,
 * or all fields of the parts under their own names. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/field_list.h"
#include "plugins/sources/joined/joined.h"

static const char joined_form[] =
    "NAME, NAME: FIELD or NAME: SOURCE.FIELD|SOURCE.FIELD, as in left: a.image, right: b.image";

/* An entry of a list, "NAME: FIELD" or "NAME: PART.FIELD|PART.FIELD"; alone, "NAME" is the field of that
 * name. */
typedef struct joined_entry {
  field_list *list;
  int32_t role;
  field_entry text;
} joined_entry;

/* ---- reading lists ---- */

static int32_t entry_next(joined_entry *e) {
  if (!field_list_next(e->list, &e->text)) return 0;
  if (e->text.value.text == NULL) e->text.value = e->text.name;
  return 1;
}

/* The field's name where the entry has one for this part. 0: it has none. */
static int32_t entry_field_of(const joined_entry *e, const char *part, field_word *field) {
  for (const char *at = e->text.value.text, *end = at + e->text.value.n; at < end;) {
    const char *bar = memchr(at, '|', (size_t)(end - at));
    *field = field_word_trim(at, (size_t)((bar != NULL ? bar : end) - at));
    at = bar != NULL ? bar + 1 : end;
    const char *dot = memchr(field->text, '.', field->n);
    if (dot == NULL) return 1;
    size_t n = (size_t)(dot - field->text);
    if (!field_word_is((field_word){field->text, n}, part)) continue;
    *field = (field_word){dot + 1, field->n - n - 1};
    return 1;
  }
  return 0;
}

int32_t joined_list_names(const char *text, const char *part) {
  field_list list = field_list_of(NULL, "", joined_form, text);
  joined_entry e = {.list = &list};
  field_word field;
  while (entry_next(&e))
    if (entry_field_of(&e, part, &field)) return 1;
  return 0;
}

/* ---- one field ---- */

static tn_status fields_begin(joined *j, const joined_entry *e, int32_t *field) {
  *field = j->n_fields;
  if (*field == JOINED_FIELDS) return field_list_refuse_more(e->list, JOINED_FIELDS);
  TN_TRY(field_list_name(e->list, &e->text, j->names[*field], JOINED_NAME));
  j->n_fields++;
  for (int32_t i = 0; i < *field; i++)
    if (strcmp(j->names[i], j->names[*field]) == 0)
      return tn_fail(
          &j->env, TN_EINVAL, e->list->option,
          "%s: two fields are called '%s'; give each a name of its own, as in inputs = left: a.image, right: "
          "b.image",
          e->list->option, j->names[i]);
  j->fields[*field] = (tn_field){.name = j->names[*field], .role = e->role};
  return TN_OK;
}

static int32_t fields_same_units(const tn_field *a, const tn_field *b, int64_t n) {
  if ((a->scale == NULL) != (b->scale == NULL) || (a->shift == NULL) != (b->shift == NULL)) return 0;
  size_t bytes = n > 0 ? (size_t)n * sizeof(double) : 0;
  return (a->scale == NULL || memcmp(a->scale, b->scale, bytes) == 0) &&
         (a->shift == NULL || memcmp(a->shift, b->shift, bytes) == 0);
}

/* The same field of a further part. Sizes that differ vary. */
static tn_status fields_join(joined *j, const joined_part *p, const tn_field *f, tn_field *whole) {
  tn_type *type = &whole->type;
  if (f->type.dtype != type->dtype || f->type.rank != type->rank)
    return tn_fail(
        &j->env, TN_EINVAL, "sources",
        "sources: field '%s' is %s with %d dimensions in '%s', and %s with %d in '%s'; expected one type",
        whole->name, tn_dtype_name(type->dtype), (int)type->rank, j->parts[0].name,
        tn_dtype_name(f->type.dtype), (int)f->type.rank, p->name);
  if ((f->classes > 0) != (whole->classes > 0))
    return tn_fail(
        &j->env, TN_EINVAL, "sources",
        "sources: field '%s' has classes in one of '%s' and '%s' alone, expected them in both or in none",
        whole->name, j->parts[0].name, p->name);
  for (int32_t d = 0; d < type->rank; d++)
    if (f->type.dims[d] != type->dims[d]) type->dims[d] = -1;
  if (fields_same_units(f, whole, tn_type_count(&f->type))) return TN_OK;
  return tn_fail(
      &j->env, TN_EINVAL, "sources",
      "sources: field '%s' is standardized in '%s' and '%s' by different means or deviations, expected the "
      "same units; leave standardize out",
      whole->name, j->parts[0].name, p->name);
}

static tn_status fields_map(joined *j, joined_part *p, int32_t own, int32_t field) {
  const tn_field *f = tn_description_field(&p->description, own);
  tn_field *whole = &j->fields[field];
  if (p->to[own] != JOINED_DROPPED)
    return tn_fail(&j->env, TN_EINVAL, "inputs",
                   "inputs: field '%s' of source '%s' is both '%s' and '%s', expected one", f->name, p->name,
                   j->names[p->to[own]], whole->name);
  p->to[own] = field;
  if (whole->struct_size != 0) return fields_join(j, p, f, whole);
  whole->struct_size = sizeof *whole;
  whole->type = f->type;
  whole->classes = f->classes;
  whole->class_names = f->class_names;
  whole->scale = f->scale;
  whole->shift = f->shift;
  return TN_OK;
}

static int32_t fields_of_name(const joined_part *p, field_word name) {
  for (int32_t i = 0; i < p->description.n_fields; i++)
    if (field_word_is(name, tn_description_field(&p->description, i)->name)) return i;
  return -1;
}

/* ---- entries of lists ---- */

static tn_status entry_fail_unknown(const joined *j, const joined_entry *e, const joined_part *p,
                                    field_word name) {
  char known[512] = "";
  for (int32_t i = 0; i < p->description.n_fields; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
             tn_description_field(&p->description, i)->name);
  }
  return tn_fail(&j->env, TN_EINVAL, e->list->option, "%s: source '%s' has no field '%.*s'; it has %s",
                 e->list->option, p->name, (int)name.n, name.text, known);
}

/* Of zip, an entry that names no source is of the first one that has the field. */
static tn_status entry_map(joined *j, const joined_entry *e, int32_t alike, int32_t field) {
  const joined_part *lacks = NULL;
  field_word lacked = e->text.value;
  int32_t found = 0;
  for (int32_t i = 0; i < j->n_parts && (alike || found == 0); i++) {
    field_word name = e->text.value;
    int32_t named = entry_field_of(e, j->parts[i].name, &name);
    int32_t own = named ? fields_of_name(&j->parts[i], name) : -1;
    if (own >= 0) TN_TRY(fields_map(j, &j->parts[i], own, field));
    found += own >= 0;
    if (own >= 0 || (!named && !alike)) continue;
    lacks = &j->parts[i];
    lacked = named ? name : e->text.value;
    if (alike) break;
  }
  if (lacks != NULL && (alike || found == 0)) return entry_fail_unknown(j, e, lacks, lacked);
  if (found > 0) return TN_OK;
  return tn_fail(&j->env, TN_EINVAL, e->list->option, "%s: '%.*s' names none of the sources", e->list->option,
                 (int)e->text.value.n, e->text.value.text);
}

static tn_status fields_of_list(joined *j, const char *option, const char *text, int32_t role,
                                int32_t alike) {
  field_list list = field_list_of(&j->env, option, joined_form, text);
  joined_entry e = {.list = &list, .role = role};
  while (entry_next(&e)) {
    int32_t field;
    TN_TRY(fields_begin(j, &e, &field));
    TN_TRY(entry_map(j, &e, alike, field));
  }
  return TN_OK;
}

/* ---- without a list ---- */

/* Concat: the fields of the first part, which all others have as well, and have no more. */
static tn_status fields_check_extra(const joined *j, int32_t role) {
  for (int32_t i = 1; i < j->n_parts; i++)
    for (int32_t k = 0; k < j->parts[i].description.n_fields; k++) {
      const tn_field *f = tn_description_field(&j->parts[i].description, k);
      if (f->role == role && j->parts[i].to[k] == JOINED_DROPPED)
        return tn_fail(
            &j->env, TN_EINVAL, "sources",
            "sources: '%s' has a field '%s', which '%s' lacks; name the fields that all have in inputs and "
            "targets",
            j->parts[i].name, f->name, j->parts[0].name);
    }
  return TN_OK;
}

static tn_status fields_of_role(joined *j, int32_t role, int32_t alike) {
  for (int32_t i = 0; i < (alike ? 1 : j->n_parts); i++)
    for (int32_t k = 0; k < j->parts[i].description.n_fields; k++) {
      const tn_field *f = tn_description_field(&j->parts[i].description, k);
      field_list own = field_list_of(&j->env, "sources", joined_form, f->name);
      field_word name = {f->name, strlen(f->name)};
      joined_entry e = {&own, role, {name, name, name, 1}};
      int32_t field;
      if (f->role != role || j->parts[i].to[k] != JOINED_DROPPED) continue;
      TN_TRY(fields_begin(j, &e, &field));
      TN_TRY(alike ? entry_map(j, &e, alike, field) : fields_map(j, &j->parts[i], k, field));
    }
  return alike ? fields_check_extra(j, role) : TN_OK;
}

static int32_t list_is_empty(const char *text) {
  field_list list = field_list_of(NULL, "", joined_form, text);
  field_entry entry;
  return !field_list_next(&list, &entry);
}

tn_status joined_find_fields(joined *j, const joined_options *o, int32_t alike) {
  for (int32_t i = 0; i < j->n_parts; i++)
    for (int32_t k = 0; k < JOINED_FIELDS; k++) j->parts[i].to[k] = JOINED_DROPPED;
  TN_TRY(fields_of_list(j, "inputs", o->inputs, TN_FIELD_INPUT, alike));
  if (!j->reads_files) TN_TRY(fields_of_list(j, "targets", o->targets, TN_FIELD_TARGET, alike));
  if (list_is_empty(o->inputs)) TN_TRY(fields_of_role(j, TN_FIELD_INPUT, alike));
  if (list_is_empty(o->targets) && !j->reads_files) TN_TRY(fields_of_role(j, TN_FIELD_TARGET, alike));
  if (j->n_fields > 0) return TN_OK;
  return tn_fail(&j->env, TN_EINVAL, "sources", "sources: they have no fields, expected an input");
}
