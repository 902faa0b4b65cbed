/* tests/unit/plugins/sources/hostile_test.c: every reader gets files that are empty, cut, changed, of another
 * encoding, or unpack to much more: it reads them, or refuses them with a message that names the file, and
 * asks for no more memory than such a file may need. Bytes that a fuzzer found are in tests/fuzz/seeds. */
#include <ftw.h>
#include <zlib.h>

#include "tests/unit/plugins/sources/kinds.h"

/* A picture may have 100 million pixels. */
enum { MOST_FILES = 8, MOST_FIELDS = 8, MOST_SAMPLES = 40, MOST_ASKED = 300 << 20 };

/* ---- contents ---- */

/* A file as it was, and the place for a damaged one. */
static byte_list whole, hostile;
static byte_list bomb; /* 40 MiB of zeros, packed by gzip */

static void make_nothing(void) {}
static void make_half(void) { add(&hostile, whole.v, whole.n / 2); }
static void make_one_byte_less(void) { add(&hostile, whole.v, whole.n - 1); }
static void make_longer(void) {
  add(&hostile, whole.v, whole.n);
  add(&hostile, whole.v, whole.n / 2);
}

static void make_other_start(void) {
  add(&hostile, whole.v, whole.n);
  memset(hostile.v, 0xff, whole.n < 16 ? whole.n : 16);
}

static void make_changed(void) {
  add(&hostile, whole.v, whole.n);
  for (size_t i = 13; i < whole.n; i += 61) hostile.v[i] ^= (uint8_t)(1 << i % 8);
}

static void make_nuls(void) {
  for (size_t i = 0; i < whole.n; i++) add(&hostile, "", 1);
}

/* NUL behind each byte: UTF-16 of text. */
static void make_wide(void) {
  add(&hostile, "\xff\xfe", 2);
  for (size_t i = 0; i < whole.n && i < 4000; i++) add_little(&hostile, whole.v[i], 2);
}

static void make_latin1(void) {
  for (size_t i = 0; i < whole.n; i++)
    add(&hostile, i % 3 == 2 && whole.v[i] >= 'a' ? "\xe9" : (char *)&whole.v[i], 1);
}

static void make_long_line(void) {
  for (int i = 0; i < 100000; i++) add(&hostile, "a", 1);
}

static void make_bomb(void) { add(&hostile, bomb.v, bomb.n); }

static void pack_bomb(void) {
  static uint8_t zeros[1 << 20];
  z_stream z = {.next_out = bomb.v, .avail_out = sizeof bomb.v};
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
  for (int i = 0; i < 40; i++) {
    z.next_in = zeros;
    z.avail_in = sizeof zeros;
    assert_int_equal(deflate(&z, Z_NO_FLUSH), Z_OK);
  }
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  bomb.n = sizeof bomb.v - z.avail_out;
  deflateEnd(&z);
}

static const struct {
  const char *name;
  void (*make)(void);
} contents[] = {{"nothing", make_nothing},
                {"half", make_half},
                {"one byte less", make_one_byte_less},
                {"longer", make_longer},
                {"other start", make_other_start},
                {"changed", make_changed},
                {"NULs", make_nuls},
                {"UTF-16", make_wide},
                {"Latin-1", make_latin1},
                {"one long line", make_long_line},
                {"a bomb", make_bomb}};

/* ---- files ---- */

static char *files[MOST_FILES];
static int n_files;

static const char *ending_of(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot : "";
}

/* The first file of each ending. */
static int take_file(const char *path, const struct stat *info, int type, struct FTW *where) {
  (void)info, (void)where;
  if (type != FTW_F) return 0;
  for (int i = 0; i < n_files; i++)
    if (strcmp(ending_of(files[i]), ending_of(path)) == 0) return 0;
  assert_in_range(n_files, 0, MOST_FILES - 1);
  files[n_files++] = strdup(path);
  return 0;
}

static void read_whole(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  whole.n = fread(whole.v, 1, sizeof whole.v, file);
  fclose(file);
}

/* ---- reading ---- */

static void *limited(void *context, void *block, size_t bytes) {
  const char *name = context;
  if (bytes > MOST_ASKED) fail_msg("%s asks for %zu bytes at once", name, bytes);
  if (bytes > 0) return realloc(block, bytes);
  free(block);
  return NULL;
}

static void expect_told(const kind *k, const char *path, const char *what, tn_status status,
                        const char *text) {
  const char *name = strrchr(path, '/') + 1;
  bool refused = status == TN_EINVAL || status == TN_EUNAVAILABLE || status == TN_EUNSUPPORTED;
  if (status == TN_OK || (refused && strstr(text, name) != NULL)) return;
  fail_msg("%s: %s, %s: status %d, '%s'", k->name, name, what, (int)status, text);
}

/* A sample whose fields have memory of exactly their sizes. */
typedef struct reading {
  tn_sample_host host; /* first member: the callback casts it to a reading */
  tn_scratch scratch;
  tn_description description;
  void *value[MOST_FIELDS];
} reading;

static void *reading_field(tn_sample *s, int32_t i, const tn_type *type) {
  reading *r = (reading *)s;
  assert_in_range(i, 0, MOST_FIELDS - 1);
  tn_release(&env, r->value[i]);
  return r->value[i] =
             tn_alloc(&env, tn_type_bytes(type != NULL ? type : &r->description.fields[i].type) + 1);
}

static void read_all(const kind *k, void *self, const char *path, const char *what) {
  reading r = {.host = {.pub = {.env = env}, .field = reading_field}};
  char name[256];
  r.host.pub.scratch = &r.scratch;
  r.description.struct_size = sizeof r.description;
  assert_int_equal(k->source->describe(&env, self, &r.description), TN_OK);
  int64_t count = r.description.count;
  for (int64_t i = 0; i < (count >= 0 && count < MOST_SAMPLES ? count : MOST_SAMPLES); i++) {
    tn_error_clear(&env);
    r.host.pub.index = i;
    tn_status status = k->source->read(&r.host.pub, self);
    if (k->source->name != NULL) {
      assert_int_equal(k->source->name(&env, self, i, name, sizeof name), TN_OK);
      tn_wrap(&env, status, "%s", name); /* as the loader does */
    }
    expect_told(k, path, what, status, tn_error_text(&env));
  }
  for (int i = 0; i < MOST_FIELDS; i++) tn_release(&env, r.value[i]);
  tn_release(&env, r.scratch.memory);
}

static void read_samples(const kind *k, const char *path, const char *what) {
  void *self;
  tn_status status = k->source->open(&env, kind_options(k), TN_SPLIT_TRAIN, 1, &self);
  expect_told(k, path, what, status, tn_error_text(&env));
  if (status != TN_OK) return;
  read_all(k, self, path, what);
  k->source->close(&env, self);
}

static void read_contents(const kind *k, const char *path) {
  read_whole(path);
  for (size_t c = 0; c < sizeof contents / sizeof *contents; c++) {
    contents[c].make();
    write_bytes(path, &hostile);
    read_samples(k, path, contents[c].name);
  }
  write_file(path, whole.v, whole.n);
}

static void hostile_files_are_read_or_refused(void **state) {
  (void)state;
  pack_bomb();
  for (int i = 0; i < N_KINDS; i++) {
    const kind *k = &kinds[i];
    kind_begin(k);
    record.allocator = (tn_allocator){(void *)(uintptr_t)k->name, limited};
    if (record.parts->n == 0) nftw(folder, take_file, 8, FTW_PHYS);
    for (int f = 0; f < n_files; f++) {
      read_contents(k, files[f]);
      free(files[f]);
    }
    n_files = 0;
    kind_end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_files_are_read_or_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
