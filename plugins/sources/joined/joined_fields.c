/* plugins/sources/joined/joined_fields.c: the fields of the whole: those of the lists `inputs` and `targets`,
 * or all fields of the parts under their own names. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/sources/joined/joined.h"

/* An entry of a list, "NAME: FIELD" or "NAME: PART.FIELD|PART.FIELD"; alone, "NAME" is the field of that
 * name. */
typedef struct joined_entry {
  const char *option; /* "inputs", "targets" */
  int32_t role;
  const char *name, *from;
  size_t name_n, from_n;
} joined_entry;

/* ---- reading lists ---- */

static void entry_trim(const char **text, size_t *n) {
  while (*n > 0 && isspace((unsigned char)**text)) {
    ++*text;
    --*n;
  }
  while (*n > 0 && isspace((unsigned char)(*text)[*n - 1])) --*n;
}

/* Takes the next entry and moves *list behind it. 0: the list has ended. */
static int32_t entry_next(const char **list, joined_entry *e) {
  for (size_t n; **list != '\0'; *list += n + ((*list)[n] != '\0')) {
    n = strcspn(*list, ",\n");
    const char *text = *list, *colon;
    size_t length = n;
    entry_trim(&text, &length);
    if (length == 0) continue;
    colon = memchr(text, ':', length);
    e->name = e->from = text;
    e->name_n = e->from_n = length;
    if (colon != NULL) {
      e->name_n = (size_t)(colon - text);
      e->from = colon + 1;
      e->from_n = length - e->name_n - 1;
      entry_trim(&e->name, &e->name_n);
      entry_trim(&e->from, &e->from_n);
    }
    *list += n + ((*list)[n] != '\0');
    return 1;
  }
  return 0;
}

static int32_t text_is(const char *text, size_t n, const char *word) {
  return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* The field's name where the entry has one for this part; NULL: it has none. */
static const char *entry_field_of(const joined_entry *e, const char *part, size_t *n) {
  for (const char *at = e->from, *end = e->from + e->from_n; at < end;) {
    const char *bar = memchr(at, '|', (size_t)(end - at)), *text = at;
    size_t length = (size_t)((bar != NULL ? bar : end) - at);
    at += length + 1;
    entry_trim(&text, &length);
    const char *dot = memchr(text, '.', length);
    if (dot != NULL && !text_is(text, (size_t)(dot - text), part)) continue;
    const char *field = dot != NULL ? dot + 1 : text;
    *n = length - (size_t)(field - text);
    return field;
  }
  return NULL;
}

int32_t joined_list_names(const char *list, const char *part) {
  joined_entry e;
  size_t n;
  while (entry_next(&list, &e))
    if (entry_field_of(&e, part, &n) != NULL) return 1;
  return 0;
}

/* ---- one field ---- */

static tn_status fields_begin(joined *j, const joined_entry *e, int32_t *field) {
  if (j->n_fields == JOINED_FIELDS)
    return tn_fail(&j->env, TN_EINVAL, "sources",
                   "sources: there are more than %d fields, expected at most so many", JOINED_FIELDS);
  size_t letters = 0;
  while (letters < e->name_n && (isalnum((unsigned char)e->name[letters]) || e->name[letters] == '_'))
    letters++;
  if (letters == 0 || letters < e->name_n || letters >= JOINED_NAME || e->from_n == 0)
    return tn_fail(
        &j->env, TN_EINVAL, e->option,
        "%s: '%.*s', expected NAME, NAME: FIELD or NAME: SOURCE.FIELD, as in left: a.image, right: b.image",
        e->option, (int)e->name_n, e->name);
  *field = j->n_fields++;
  snprintf(j->names[*field], JOINED_NAME, "%.*s", (int)e->name_n, e->name);
  for (int32_t i = 0; i < *field; i++)
    if (strcmp(j->names[i], j->names[*field]) == 0)
      return tn_fail(
          &j->env, TN_EINVAL, e->option,
          "%s: two fields are called '%s'; give each a name of its own, as in inputs = left: a.image, right: "
          "b.image",
          e->option, j->names[i]);
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

static int32_t fields_of_name(const joined_part *p, const char *name, size_t n) {
  for (int32_t i = 0; i < p->description.n_fields; i++)
    if (text_is(name, n, tn_description_field(&p->description, i)->name)) return i;
  return -1;
}

/* ---- entries of lists ---- */

static tn_status entry_fail_unknown(const joined *j, const joined_entry *e, const joined_part *p,
                                    const char *name, size_t n) {
  char known[512] = "";
  for (int32_t i = 0; i < p->description.n_fields; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
             tn_description_field(&p->description, i)->name);
  }
  return tn_fail(&j->env, TN_EINVAL, e->option, "%s: source '%s' has no field '%.*s'; it has %s", e->option,
                 p->name, (int)n, name, known);
}

/* Of zip, an entry that names no source is of the first one that has the field. */
static tn_status entry_map(joined *j, const joined_entry *e, int32_t alike, int32_t field) {
  const joined_part *lacks = NULL;
  const char *lacked = NULL;
  size_t lacked_n = 0;
  int32_t found = 0;
  for (int32_t i = 0; i < j->n_parts && (alike || found == 0); i++) {
    size_t n = 0;
    const char *name = entry_field_of(e, j->parts[i].name, &n);
    int32_t own = name != NULL ? fields_of_name(&j->parts[i], name, n) : -1;
    if (own >= 0) TN_TRY(fields_map(j, &j->parts[i], own, field));
    found += own >= 0;
    if (own >= 0 || (name == NULL && !alike)) continue;
    lacks = &j->parts[i];
    lacked = name != NULL ? name : e->from;
    lacked_n = name != NULL ? n : e->from_n;
    if (alike) return entry_fail_unknown(j, e, lacks, lacked, lacked_n);
  }
  if (found > 0) return TN_OK;
  if (lacks != NULL) return entry_fail_unknown(j, e, lacks, lacked, lacked_n);
  return tn_fail(&j->env, TN_EINVAL, e->option, "%s: '%.*s' names none of the sources", e->option,
                 (int)e->from_n, e->from);
}

static tn_status fields_of_list(joined *j, const char *option, const char *list, int32_t role,
                                int32_t alike) {
  joined_entry e = {.option = option, .role = role};
  while (entry_next(&list, &e)) {
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
      joined_entry e = {.option = "sources", .role = role, .name = f->name, .from = f->name};
      int32_t field;
      e.name_n = e.from_n = strlen(f->name);
      if (f->role != role || j->parts[i].to[k] != JOINED_DROPPED) continue;
      TN_TRY(fields_begin(j, &e, &field));
      TN_TRY(alike ? entry_map(j, &e, alike, field) : fields_map(j, &j->parts[i], k, field));
    }
  return alike ? fields_check_extra(j, role) : TN_OK;
}

static int32_t list_is_empty(const char *list) { return list[strspn(list, ", \t\n")] == '\0'; }

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
