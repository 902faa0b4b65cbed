/* Plugin descriptors with any sizes, versions, kinds, names and option tables, in memory of exactly the
 * declared size. An accepted descriptor must be usable: its options get their defaults, take texts, and
 * print. (Pointers are valid: a plugin with invalid pointers already runs in the process.) */
#include "core/config/options/options.h"
#include "core/plugin/kinds.h"
#include "core/plugin/registry.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_PARTS = 64, MOST_ITEM_BYTES = 1024 };

/* Decodes the input; the decoded objects are freed at the end. */
typedef struct maker {
  const uint8_t *at, *end;
  void *parts[MOST_PARTS];
  int n;
} maker;

static uint8_t byte(maker *m) { return m->at < m->end ? *m->at++ : 0; }

static uint32_t number(maker *m) {
  uint32_t low = byte(m);
  return low | (uint32_t)byte(m) << 8;
}

static void *part(maker *m, size_t bytes) {
  void *block = calloc(1, bytes > 0 ? bytes : 1);
  fuzz_expect(block != NULL && m->n < MOST_PARTS, "no memory");
  return m->parts[m->n++] = block;
}

/* NULL, or a text of at most 80 bytes. */
static const char *text(maker *m) {
  size_t n = byte(m);
  if (n > 80 || m->n >= MOST_PARTS - 4) return n % 2 ? "x" : NULL;
  char *copy = part(m, n + 1);
  for (size_t i = 0; i < n; i++) copy[i] = (char)byte(m);
  return copy;
}

static tn_option *option_table(maker *m, uint32_t *stride) {
  size_t rows = byte(m) % 5u;
  *stride = 8u * (byte(m) % 12u) + (byte(m) == 7);
  size_t step = *stride < sizeof(tn_option) ? sizeof(tn_option) : *stride;
  char *table = part(m, (rows + 1) * step);
  for (size_t i = 0; i < rows && *stride >= sizeof(tn_option); i++) {
    tn_option row = {.name = text(m), .type = byte(m) % 14u, .flags = byte(m) % 2u};
    row.offset = byte(m);
    row.bytes = byte(m) % 24u;
    row.default_text = text(m);
    row.range = text(m);
    memcpy(table + i * *stride, &row, sizeof row);
  }
  return (tn_option *)(void *)table;
}

/* Behind the header every word is NULL or points to a text, which is enough for a callback that is never
 * called. */
static const tn_item *item(maker *m) {
  tn_item head = {.struct_size = number(m) % MOST_ITEM_BYTES, .kind = byte(m) % (TN_KINDS + 1u)};
  const tn_kind *kind = tn_kind_find(head.kind);
  if (kind && byte(m) % 8 != 0) head.struct_size = (uint32_t)kind->bytes;
  head.name = text(m);
  head.doc = text(m);
  if (byte(m) % 2) head.options = option_table(m, &head.option_stride);
  head.options_bytes = number(m) % 600;
  size_t bytes = head.struct_size > sizeof(uint32_t) ? head.struct_size : sizeof(uint32_t);
  char *block = part(m, bytes);
  memcpy(block, &head, bytes < sizeof head ? bytes : sizeof head);
  for (size_t at = sizeof head; at + sizeof(char *) <= bytes; at += sizeof(char *)) {
    const char *word = byte(m) % 4 ? "y = x" : NULL;
    memcpy(block + at, &word, sizeof word);
  }
  return (const tn_item *)(const void *)block;
}

static const tn_plugin *plugin(maker *m) {
  static const tn_item *items[5];
  tn_plugin head = {.struct_size = sizeof head,
                    .major = TN_ABI_MAJOR,
                    .minor = TN_ABI_MINOR,
                    .build = TN_BUILD_TEXT,
                    .name = "p",
                    .version = "1",
                    .licence = "MIT",
                    .items = items};
  uint8_t spoil = byte(m);
  int n = byte(m) % 5;
  for (int i = 0; i < n; i++) items[i] = item(m);
  items[n] = NULL;
  if (spoil == 1) head.struct_size = number(m) % (2 * sizeof head);
  if (spoil == 2) head.major = (uint16_t)number(m);
  if (spoil == 3) head.minor = (uint16_t)number(m);
  if (spoil == 4) head.requires = number(m);
  if (spoil == 5) head.name = text(m);
  if (spoil == 6) head.build = text(m);
  if (spoil == 7) head.items = NULL;
  size_t bytes = head.struct_size > sizeof(uint32_t) ? head.struct_size : sizeof(uint32_t);
  char *block = part(m, bytes);
  memcpy(block, &head, bytes < sizeof head ? bytes : sizeof head);
  return (const tn_plugin *)(const void *)block;
}

static void use(fuzz *f, tn_arena *arena, const tn_item *taken, const char *value) {
  tn_options options;
  tn_text printed = tn_text_new(f);
  tn_status status = tn_options_start(f, arena, taken, &options);
  fuzz_judge(f, status);
  for (int64_t i = 0; status == TN_OK && tn_options_at(taken, i); i++)
    fuzz_judge(f, tn_options_set_text(f, &options, tn_options_at(taken, i)->name, value ? value : "1"));
  if (status == TN_OK) fuzz_judge(f, tn_options_finish(f, &options));
  if (status == TN_OK) tn_options_print(&printed, taken, options.data);
  tn_text_free(&printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  maker m = {.at = bytes, .end = bytes + size};
  const tn_plugin *given = plugin(&m), *taken = NULL;
  const char *value = text(&m);
  fuzz_open(&f);
  tn_arena arena = tn_arena_new(&f);
  tn_status status = tn_negotiate_plugin(&f, &arena, given, TN_ABI_MAJOR, TN_ABI_MINOR, "/p/fuzz.so", &taken);
  fuzz_judge(&f, status);
  for (int i = 0; status == TN_OK && taken->items[i]; i++) use(&f, &arena, taken->items[i], value);
  tn_arena_free(&arena);
  fuzz_close(&f);
  for (int i = 0; i < m.n; i++) free(m.parts[i]);
  return 0;
}
