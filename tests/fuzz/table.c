/* Tables: CSV, lines of JSON and packed ones. The first byte chooses the fields, and whether the rest is a
 * table or what the weights say of one. */
#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/sources/sources.h"
#include "tests/fuzz/fuzz.h"

extern const tn_source table_source;

enum { FIELDS = 4, ROWS = 3 };

typedef struct sample {
  tn_sample_host host;
  const tn_description *description;
  fuzz *f;
  void *values[FIELDS];
} sample;

static void *field(tn_sample *s, int32_t i, const tn_type *type) {
  sample *self = (sample *)s;
  fuzz_expect(i >= 0 && i < self->description->n_fields && i < FIELDS, "a field that was not described");
  const tn_type *t = type ? type : &self->description->fields[i].type;
  tn_release(self->f, self->values[i]);
  return self->values[i] = tn_alloc(self->f, tn_type_bytes(t) + 1);
}

static void read_some(fuzz *f, void *self) {
  tn_description description = {.struct_size = sizeof description};
  const char *learnt;
  table_source.describe(&f->env, self, &description);
  fuzz_judge(f, table_source.learnt(&f->env, self, &learnt));
  sample s = {.host = {.pub = {.env = f->env}, .field = field}, .description = &description, .f = f};
  for (int64_t i = 0; i < ROWS && i < description.count; i++) {
    s.host.pub.index = i == ROWS - 1 ? description.count - 1 : i;
    fuzz_judge(f, table_source.read(&s.host.pub, self));
  }
  for (int i = 0; i < FIELDS; i++) tn_release(f, s.values[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char *const inputs[] = {
      "a: number(missing=0)\nb: category(missing=class)\nc: text\nd: sequence(length=4)",
      "x: numbers(*, missing=mean, standardize=yes)\nb: categories(b)\nt: time(a, missing=median)",
      "b: category(order=appearance, unknown=other, missing=class)\nc: categories(c, classes=x|y, "
      "unknown=other)"};
  static const char known[] = "a,b,c\n1,x,y\n2,y,x\n";
  fuzz f;
  char path[64];
  void *self = NULL;
  tn_options options;
  if (size == 0) return 0;
  bool taught = bytes[0] & 0x80;
  char *text = fuzz_text(bytes + 1, size - 1);
  int file = taught ? fuzz_file((const uint8_t *)known, sizeof known - 1, path)
                    : fuzz_file(bytes + 1, size - 1, path);
  fuzz_open(&f);
  tn_arena arena = tn_arena_new(&f);
  tn_status status = tn_options_start(&f, &arena, &table_source.item, &options);
  options.folder = "/";
  if (status == TN_OK) status = tn_options_set_text(&f, &options, "file", path);
  if (status == TN_OK) status = tn_options_set_text(&f, &options, "inputs", inputs[(bytes[0] & 0x7F) % 3]);
  if (status == TN_OK && taught) f.record.learnt = text;
  if (status == TN_OK) status = table_source.open(&f.env, options.data, TN_SPLIT_TRAIN, 1, &self);
  fuzz_judge(&f, status);
  if (status == TN_OK) {
    read_some(&f, self);
    table_source.close(&f.env, self);
  }
  tn_arena_free(&arena);
  fuzz_close(&f);
  fuzz_file_end(file);
  free(text);
  return 0;
}
