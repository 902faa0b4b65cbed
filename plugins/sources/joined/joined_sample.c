/* plugins/sources/joined/joined_sample.c: reads a sample of a part into fields of the whole. The part gets a
 * handle of its own, whose function tn_sample_field knows where the part's fields go. */
#include "plugins/sources/joined/joined.h"

#include <stdio.h>
#include <string.h>

typedef struct joined_sample {
  tn_sample pub; /* first: the part has its address */
  tn_sample *whole;
  const joined_part *part;
  void *given[JOINED_FIELDS]; /* by the part's field: its memory; NULL: not asked for */
  tn_type type[JOINED_FIELDS];
} joined_sample;

static void *sample_give_dropped(joined_sample *s, int32_t field) {
  const tn_type *t = &s->type[field];
  size_t bytes = tn_type_bytes(t);
  tn_delete(s->whole, s->given[field]);
  s->given[field] = tn_new(s->whole, bytes > 0 ? bytes : 1);
  return s->given[field];
}

/* tn_sample_field of a part. */
static void *sample_give_field(tn_sample *sample, int32_t field, const tn_type *type) {
  joined_sample *s = (joined_sample *)(void *)sample;
  const tn_description *d = &s->part->description;
  if (field < 0 || field >= d->n_fields) {
    tn_fail(s->whole, TN_EABI, NULL, "source '%s' asks for field %d of %d", s->part->name, (int)field,
            (int)d->n_fields);
    return NULL;
  }
  s->type[field] = type != NULL ? *type : tn_description_field(d, field)->type;
  int32_t to = s->part->to[field];
  if (to == JOINED_DROPPED) return sample_give_dropped(s, field);
  return s->given[field] = tn_sample_field(s->whole, to, &s->type[field]);
}

static int32_t sample_is_stopping(const tn_sample *sample) {
  return tn_sample_stopping(((const joined_sample *)(const void *)sample)->whole);
}

/* Numbers of classes become those of the whole; numbers outside of the classes, as of missing labels, stay.
 */
static void sample_number_classes(const joined_sample *s, int32_t field) {
  int32_t to = s->part->to[field];
  const int32_t *numbers = to != JOINED_DROPPED ? s->part->classes[to] : NULL;
  int32_t *values = s->given[field];
  int64_t classes = tn_description_field(&s->part->description, field)->classes;
  if (numbers == NULL || values == NULL) return;
  for (int64_t i = 0; i < tn_type_count(&s->type[field]); i++)
    if (values[i] >= 0 && values[i] < classes) values[i] = numbers[values[i]];
}

static void sample_finish(joined_sample *s, tn_status status) {
  for (int32_t i = 0; i < s->part->description.n_fields; i++) {
    if (status == TN_OK) sample_number_classes(s, i);
    if (s->part->to[i] == JOINED_DROPPED) tn_delete(s->whole, s->given[i]);
  }
}

tn_status joined_read_part(tn_sample *whole, const joined_part *part, int64_t index, uint64_t key) {
  joined_sample s = {.pub = *whole, .whole = whole, .part = part};
  tn_api api = *whole->env.api;
  api.field = sample_give_field;
  s.pub.env.api = &api;
  s.pub.struct_size = sizeof s.pub;
  s.pub.index = index;
  s.pub.key = key;
  s.pub.stopping = sample_is_stopping;
  tn_status status = part->source->read(&s.pub, part->self);
  sample_finish(&s, status);
  return status;
}

int32_t joined_class_field(const joined *j) {
  for (int32_t i = 0; i < j->n_fields; i++)
    if (j->fields[i].role == TN_FIELD_TARGET && j->fields[i].classes > 0) return i;
  return -1;
}

/* The field whose classes the part's class_of gives. */
static int32_t sample_class_field(const joined_part *part) {
  for (int32_t i = 0; i < part->description.n_fields; i++) {
    const tn_field *f = tn_description_field(&part->description, i);
    if (f->role == TN_FIELD_TARGET && f->classes > 0) return i;
  }
  return -1;
}

tn_status joined_class_of(tn_env *env, const joined *j, int32_t field, const joined_part *part, int64_t index,
                          int64_t *number) {
  int32_t own = sample_class_field(part);
  int32_t tells = part->description.count >= 0 && part->source->class_of != NULL;
  if (!tells || own < 0 || part->to[own] != field)
    return tn_fail(env, TN_EUNSUPPORTED, "sources", "source '%s' does not tell the classes of '%s'",
                   part->name, j->fields[field].name);
  TN_TRY(part->source->class_of(env, part->self, index, number));
  const int32_t *numbers = part->classes[field];
  if (numbers != NULL && *number >= 0 && *number < tn_description_field(&part->description, own)->classes)
    *number = numbers[*number];
  return TN_OK;
}

tn_status joined_name_of(tn_env *env, const joined_part *part, int64_t index, char *text, size_t size) {
  if (part->source->name != NULL) return part->source->name(env, part->self, index, text, size);
  snprintf(text, size, "%s: sample %lld", part->name, (long long)index);
  return TN_OK;
}
