/* tests/fuzz/source.c: see source.h. */
#include "tests/fuzz/source.h"

#include "core/config/options/options.h"
#include "core/plugin/handles.h"

enum { FIELDS = 8, SAMPLES = 4, NAME_BYTES = 256 };

typedef struct sample {
  tn_sample_host host;
  tn_scratch scratch;
  tn_description description;
  fuzz *f;
  tn_type types[FIELDS];
  void *values[FIELDS];
} sample;

static void *sample_field(tn_sample *s, int32_t i, const tn_type *type) {
  sample *self = (sample *)s;
  fuzz_expect(i >= 0 && i < self->description.n_fields && i < FIELDS, "a field that was not described");
  self->types[i] = type != NULL ? *type : tn_description_field(&self->description, i)->type;
  tn_release(self->f, self->values[i]);
  return self->values[i] = tn_alloc(self->f, tn_type_bytes(&self->types[i]) + 1);
}

/* A number below 0 is no class: losses ignore it. */
static void sample_check_classes(const sample *s) {
  for (int32_t i = 0; i < s->description.n_fields && i < FIELDS; i++) {
    const tn_field *field = tn_description_field(&s->description, i);
    if (field->classes == 0 || s->values[i] == NULL || s->types[i].dtype != TN_I32) continue;
    const int32_t *v = s->values[i];
    for (int64_t k = 0; k < tn_type_count(&s->types[i]); k++)
      fuzz_expect(v[k] < field->classes, "a class number beyond the classes");
  }
}

static void sample_read(sample *s, const tn_source *source, void *self, int64_t index) {
  char name[NAME_BYTES];
  int64_t number;
  s->host.pub.index = index;
  tn_status status = source->read(&s->host.pub, self);
  fuzz_judge(s->f, status);
  if (status == TN_OK) sample_check_classes(s);
  if (source->name != NULL) fuzz_judge(s->f, source->name(&s->f->env, self, index, name, sizeof name));
  if (source->class_of != NULL) fuzz_judge(s->f, source->class_of(&s->f->env, self, index, &number));
}

static void source_read_some(fuzz *f, const tn_source *source, void *self) {
  sample s = {.host = {.pub = {.env = f->env}, .field = sample_field}, .f = f};
  const char *learnt;
  s.description.struct_size = sizeof s.description;
  s.host.pub.scratch = &s.scratch;
  fuzz_judge(f, source->describe(&f->env, self, &s.description));
  if (source->learnt != NULL) fuzz_judge(f, source->learnt(&f->env, self, &learnt));
  int64_t count = s.description.count;
  for (int64_t i = 0; i < SAMPLES && (count < 0 || i < count); i++)
    sample_read(&s, source, self, count >= 0 && i == SAMPLES - 1 ? count - 1 : i);
  for (int i = 0; i < FIELDS; i++) tn_release(f, s.values[i]);
  tn_release(f, s.scratch.memory);
}

void fuzz_source(fuzz *f, const tn_source *source, const fuzz_option *options, size_t n) {
  void *self = NULL;
  tn_options set;
  tn_arena arena = tn_arena_new(f);
  tn_status status = tn_options_start(f, &arena, &source->item, &set);
  set.folder = "/";
  for (size_t i = 0; status == TN_OK && i < n; i++)
    status = tn_options_set_text(f, &set, options[i].name, options[i].value);
  fuzz_judge(f, status);
  if (status == TN_OK) status = source->open(&f->env, set.data, TN_SPLIT_TRAIN, 1, &self);
  fuzz_judge(f, status);
  if (status == TN_OK) {
    source_read_some(f, source, self);
    source->close(&f->env, self);
  }
  tn_arena_free(&arena);
}
