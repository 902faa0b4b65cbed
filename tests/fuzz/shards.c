/* Tar archives of samples. The first byte says whether every block gets a checksum that fits, so that changed
 * headers are read as well, whether the archive is read in order, and which fields it
 * has. */
#include <stdio.h>

#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/sources/sources.h"
#include "tests/fuzz/fuzz.h"

extern const tn_source shards_source;

enum { FIELDS = 8, MOST_SAMPLES = 4 };

typedef struct sample {
  tn_sample_host host;
  tn_scratch scratch;
  const tn_description *description;
  fuzz *f;
  void *values[FIELDS];
} sample;

static void *field(tn_sample *s, int32_t i, const tn_type *type) {
  sample *self = (sample *)s;
  fuzz_expect(i >= 0 && i < FIELDS, "a field that was not described");
  const tn_type *t = type ? type : &self->description->fields[i].type;
  tn_release(self->f, self->values[i]);
  return self->values[i] = tn_alloc(self->f, tn_type_bytes(t) + 1);
}

static void read_some(fuzz *f, void *self) {
  tn_description description = {.struct_size = sizeof description};
  sample s = {.host = {.pub = {.env = f->env}, .field = field}, .description = &description, .f = f};
  char name[256];
  s.host.pub.scratch = &s.scratch;
  shards_source.describe(&f->env, self, &description);
  for (int64_t i = 0; i < MOST_SAMPLES && (description.count < 0 || i < description.count); i++) {
    int64_t number;
    s.host.pub.index = i;
    fuzz_judge(f, shards_source.read(&s.host.pub, self));
    fuzz_judge(f, shards_source.name(&f->env, self, i, name, sizeof name));
    fuzz_judge(f, shards_source.class_of(&f->env, self, i, &number));
  }
  for (int i = 0; i < FIELDS; i++) tn_release(f, s.values[i]);
  tn_release(f, s.scratch.memory);
}

static tn_status set_options(fuzz *f, tn_options *options, const char *path, uint8_t choice) {
  const char *const pairs[][2] = {
      {"inputs", choice & 4 ? "x: npy, y: list(json(l)), z: tokens(txt), w: text(json(t))"
                            : "image: jpg|png, text: txt, at: json(a.b)"},
      {"tokenizer", "bytes"},
      {"shuffle_buffer", choice & 2 ? "2" : "0"},
      {"targets", "label: cls, kind: class(json(k))"},
      {"max_pixels", "65536"},
      {"classes", "[10, 10]"},
      {"size", "0"}};
  options->folder = "/";
  TN_TRY(tn_options_set_text(f, options, "files", path));
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    TN_TRY(tn_options_set_text(f, options, pairs[i][0], pairs[i][1]));
  return TN_OK;
}

static void fit_sums(uint8_t *bytes, size_t size) {
  enum { BLOCK = 512, SUM = 148, DIGITS = 8 };
  for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) {
    unsigned sum = 0;
    char text[DIGITS + 1];
    memset(bytes + SUM, ' ', DIGITS);
    for (int i = 0; i < BLOCK; i++) sum += bytes[i];
    snprintf(text, sizeof text, "%06o", sum & 0777777);
    memcpy(bytes + SUM, text, DIGITS - 1);
  }
}

static int make_archive(const uint8_t *bytes, size_t size, char path[64]) {
  if (size == 0) return fuzz_file(bytes, 0, path);
  uint8_t *copy = malloc(size);
  fuzz_expect(copy != NULL, "no memory for the input");
  memcpy(copy, bytes + 1, size - 1);
  if (bytes[0] & 1) fit_sums(copy, size - 1);
  int file = fuzz_file(copy, size - 1, path);
  free(copy);
  return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  void *self = NULL;
  tn_options options;
  int file = make_archive(bytes, size, path);
  fuzz_open(&f);
  tn_arena arena = tn_arena_new(&f);
  tn_status status = tn_options_start(&f, &arena, &shards_source.item, &options);
  if (status == TN_OK) status = set_options(&f, &options, path, size > 0 ? bytes[0] : 0);
  if (status == TN_OK) status = shards_source.open(&f.env, options.data, TN_SPLIT_TRAIN, 1, &self);
  fuzz_judge(&f, status);
  if (status == TN_OK) {
    read_some(&f, self);
    shards_source.close(&f.env, self);
  }
  tn_arena_free(&arena);
  fuzz_close(&f);
  fuzz_file_end(file);
  return 0;
}
