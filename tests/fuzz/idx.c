/* idx files, gzipped or not; the first byte is the proportion of the labels file in the rest of the input. */
#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/sources/sources.h"
#include "tests/fuzz/fuzz.h"

extern const tn_source idx_source;

typedef struct sample {
  tn_sample_host host;
  const tn_description *description;
  fuzz *f;
  void *values[4];
} sample;

static void *field(tn_sample *s, int32_t i, const tn_type *type) {
  sample *self = (sample *)s;
  fuzz_expect(i >= 0 && i < self->description->n_fields && i < 4, "a field that was not described");
  const tn_type *t = type ? type : &self->description->fields[i].type;
  tn_release(self->f, self->values[i]);
  return self->values[i] = tn_alloc(self->f, tn_type_bytes(t) + 1);
}

static void read_some(fuzz *f, void *self) {
  tn_description description = {.struct_size = sizeof description};
  idx_source.describe(&f->env, self, &description);
  sample s = {.host = {.pub = {.env = f->env}, .field = field}, .description = &description, .f = f};
  for (int64_t i = 0; i < 3 && i < description.count; i++) {
    int64_t index = i == 2 ? description.count - 1 : i;
    s.host.pub.index = index;
    fuzz_judge(f, idx_source.read(&s.host.pub, self));
  }
  for (int i = 0; i < 4; i++) tn_release(f, s.values[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char images[64], labels[64];
  void *self = NULL;
  tn_options options;
  if (size == 0) return 0;
  size_t n = (size - 1) * bytes[0] / 255;
  int a = fuzz_file(bytes + 1 + n, size - 1 - n, images), b = fuzz_file(bytes + 1, n, labels);
  fuzz_open(&f);
  tn_arena arena = tn_arena_new(&f);
  tn_status status = tn_options_start(&f, &arena, &idx_source.item, &options);
  options.folder = "/";
  if (status == TN_OK) status = tn_options_set_text(&f, &options, "images", images);
  if (status == TN_OK) status = tn_options_set_text(&f, &options, "labels", labels);
  if (status == TN_OK) status = idx_source.open(&f.env, options.data, TN_SPLIT_TRAIN, 1, &self);
  fuzz_judge(&f, status);
  if (status == TN_OK) {
    read_some(&f, self);
    idx_source.close(&f.env, self);
  }
  tn_arena_free(&arena);
  fuzz_close(&f);
  fuzz_file_end(a);
  fuzz_file_end(b);
  return 0;
}
