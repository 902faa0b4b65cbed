#include <fcntl.h>
#include <png.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source shards_source;

enum { BLOCK = 512, MOST = 1 << 16, SIDE = 4 };

static char *folder;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

/* ---- an archive in memory ---- */

static char archive[MOST];
static size_t used;

static void put_sum(char *block) {
  unsigned sum = 0;
  memset(block + 148, ' ', 8);
  for (int i = 0; i < BLOCK; i++) sum += (unsigned char)block[i];
  snprintf(block + 148, 8, "%06o", sum);
}

static char *put_header(const char *name, size_t size, char type) {
  char *block = archive + used;
  memset(block, 0, BLOCK);
  memcpy(block, name, strlen(name) < 100 ? strlen(name) : 100);
  snprintf(block + 124, 12, "%011zo", size);
  block[156] = type;
  memcpy(block + 257,
         "ustar\0"
         "00",
         8);
  put_sum(block);
  used += BLOCK;
  return block;
}

static void put_bytes(const char *name, char type, const void *bytes, size_t n) {
  size_t padded = (n + BLOCK - 1) / BLOCK * BLOCK;
  put_header(name, n, type);
  assert_true(used + padded <= MOST);
  memset(archive + used, 0, padded);
  if (n > 0) memcpy(archive + used, bytes, n);
  used += padded;
}

static void put(const char *name, const char *text) { put_bytes(name, '0', text, strlen(text)); }

/* Writes the archive and begins another. */
static void write_archive(const char *name) {
  put_header("", 0, 0);
  memset(archive + used - BLOCK, 0, BLOCK);
  write_file(in_folder(folder, name), archive, used);
  used = 0;
}

static void put_sample(int number) {
  char name[64], text[64];
  snprintf(name, sizeof name, "d/%03d.cls", number);
  snprintf(text, sizeof text, "%d", number % 3);
  put(name, text);
  snprintf(name, sizeof name, "d/%03d.txt", number);
  snprintf(text, sizeof text, "n%d", number);
  put(name, text);
}

/* Two archives of 6 samples each. */
static void put_archives(void) {
  for (int file = 0, number = 0; file < 2; file++) {
    for (int i = 0; i < 6; i++) put_sample(number++);
    write_archive(file == 0 ? "a-08.tar" : "a-09.tar");
  }
}

#define TEXTS "inputs", "text: txt"
#define BOTH  "files", in_folder(folder, "a-{08..09}.tar"), TEXTS
#define ONE   "files", in_folder(folder, "a.tar"), TEXTS

static void open_part(probe *p, const char *const *pairs, int32_t split) {
  if (probe_open(p, &shards_source, pairs, split) != TN_OK) fail_msg("%s", probe_error(p));
}

static void expect_sample(probe *p, int64_t index, int number) {
  char text[16];
  int n = snprintf(text, sizeof text, "n%d", number);
  if (probe_read(p, index, 0) != TN_OK) fail_msg("%s", probe_error(p));
  assert_int_equal(p->type[0].dims[0], n);
  for (int i = 0; i < n; i++) assert_int_equal(((const int32_t *)p->value[0])[i], text[i]);
  assert_int_equal(*(const int32_t *)p->value[1], number % 3);
}

static void expect_refused_sample(probe *p, int64_t index, const char *text) {
  assert_int_equal(probe_read(p, index, 0), TN_EINVAL);
  if (strstr(probe_error(p), text) == NULL) fail_msg("'%s' lacks '%s'", probe_error(p), text);
}

static void members_with_one_stem_are_a_sample(void **state) {
  (void)state;
  probe p;
  char name[256];
  put_archives();
  open_part(&p, PAIRS(BOTH), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 12);
  assert_int_equal(p.description.fields[1].classes, 3);
  assert_string_equal(p.description.fields[1].name, "label");
  for (int i = 0; i < 12; i++) {
    expect_sample(&p, i, i);
    probe_expect_class(&p, i, i % 3);
  }
  assert_int_equal(shards_source.name(&p.host.pub.env, p.self, 7, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "a-09.tar: d/007"));
  probe_close(&p);
}

static void every_way_to_write_a_name_is_read(void **state) {
  (void)state;
  char longest[300], pax[400], name[400];
  probe p;
  memset(longest, 'x', 250);
  strcpy(longest + 250, ".txt");
  put_bytes("././@LongLink", 'L', longest, strlen(longest) + 1); /* GNU */
  put(longest, "gnu");
  int n = snprintf(pax, sizeof pax, "265 path=%.250sy.txt\n10 size=3\n", longest);
  put_bytes("pax", 'x', pax, (size_t)n);
  put("short.cls", "pax");
  char *block = put_header("end.txt", 0, '0'); /* ustar */
  memcpy(block + 345, "folder", 6);
  put_sum(block);
  put("./with.dot.txt", "no ending of the field");
  put("__meta__.txt", "no sample");
  put(".hidden.txt", "no sample");
  write_archive("a.tar");
  open_part(&p, PAIRS(ONE, "targets", ""), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 3);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((const int32_t *)p.value[0])[0], 'g');
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_int_equal(((const int32_t *)p.value[0])[0], 'p');
  assert_int_equal(probe_read(&p, 2, 0), TN_OK);
  assert_int_equal(p.type[0].dims[0], 0);
  assert_int_equal(shards_source.name(&p.host.pub.env, p.self, 2, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "a.tar: folder/end"));
  probe_close(&p);
}

static void put_picture(const char *name, int side) {
  png_image image = {
      .version = PNG_IMAGE_VERSION, .width = (png_uint_32)side, .height = SIDE, .format = PNG_FORMAT_RGB};
  uint8_t pixels[SIDE * 8 * 3], file[4096];
  png_alloc_size_t n = sizeof file;
  for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)i;
  assert_true(png_image_write_to_memory(&image, file, &n, 0, pixels, 0, NULL));
  put_bytes(name, '0', file, n);
}

static void pictures_and_numbers_are_fields(void **state) {
  (void)state;
  probe p;
  const char *const *pairs =
      PAIRS("files", in_folder(folder, "a.tar"), "inputs", "view: left.PNG|jpg, at: json(box.at)", "targets",
            "kind: class(json(kind)), all: json(box.scale)", "classes", "[7]");
  put_picture("0.left.png", SIDE);
  put("0.json", "{\"box\": {\"at\": [1, 2.5], \"scale\": 3}, \"kind\": 6}");
  put_picture("1.left.png", SIDE);
  put("1.json", "{\"box\": {\"at\": [1], \"scale\": 3}, \"kind\": 7}");
  put_picture("2.left.png", SIDE + 1);
  put("2.json", "{\"box\": {\"at\": [1, true], \"scale\": 3}, \"kind\": 7}");
  put_picture("3.left.png", SIDE);
  put("3.json", "{\"box\": {\"at\": [1, 2], \"scale\": \"x\"}, \"kind\": 1");
  write_archive("a.tar");
  open_part(&p, pairs, TN_SPLIT_TRAIN);
  assert_int_equal(p.description.fields[0].type.dims[2], SIDE);
  assert_int_equal(p.description.fields[1].type.dims[0], 2);
  assert_int_equal(p.description.fields[2].classes, 7);
  assert_int_equal(p.description.fields[3].type.rank, 0);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((const uint8_t *)p.value[0])[1], 3);
  assert_float_equal(((const float *)p.value[1])[1], 2.5f, 0);
  assert_int_equal(*(const int32_t *)p.value[2], 6);
  assert_float_equal(*(const float *)p.value[3], 3, 0);
  expect_refused_sample(&p, 1, "a.tar: 1.json: 'box.at' has 1 numbers, expected 2 as in the first sample");
  expect_refused_sample(&p, 2, "a.tar: 2.left.PNG|jpg: has 5 x 4 pixels, expected 4 x 4 like the others");
  expect_refused_sample(&p, 3, "a.tar: 3.json: damaged JSON at byte");
  probe_close(&p);
}

/* A .npy file of 2 x n numbers u8 behind each other, from `first` on. */
static void put_array(const char *name, int n, int first) {
  char file[256];
  int used_bytes =
      10 +
      snprintf(file + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 2), }%*s", n, 40, "");
  memcpy(file, "\x93NUMPY\x01\x00", 8);
  file[8] = (char)(used_bytes - 10);
  file[9] = 0;
  for (int i = 0; i < 2 * n; i++) file[used_bytes++] = (char)(first + i);
  put_bytes(name, '0', file, (size_t)used_bytes);
}

static void arrays_lists_and_texts_are_fields(void **state) {
  (void)state;
  probe p;
  const char *const *pairs = PAIRS("files", in_folder(folder, "a.tar"), "inputs",
                                   "a: npy, b: list(json(boxes)), c: tokens(json(caption))", "targets",
                                   "d: text(json(caption))", "tokenizer", "bytes", "length", "4", "pad", "9");
  put_array("0.npy", 3, 1);
  put("0.json", "{\"boxes\": [[1, 2], [3, 4]], \"caption\": \"on\"}");
  put_array("1.npy", 3, 7);
  put("1.json", "{\"boxes\": [[5, 6]], \"caption\": \"across\"}");
  put_array("2.npy", 2, 7);
  put("2.json", "{\"boxes\": [[5, 6, 7]], \"caption\": 3}");
  put("3.npy", "none");
  put("3.json", "{\"boxes\": [[5, 6], [1]], \"caption\": 3}");
  write_archive("a.tar");
  open_part(&p, pairs, TN_SPLIT_TRAIN);
  const tn_field *f = p.description.fields;
  assert_true(f[0].type.dtype == TN_U8 && f[0].type.dims[0] == 3 && f[0].type.dims[1] == 2);
  assert_true(f[1].type.dtype == TN_F32 && f[1].type.dims[0] == -1 && f[1].type.dims[1] == 2);
  assert_true(f[2].type.dtype == TN_I32 && f[2].type.dims[0] == 4);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(((const uint8_t *)p.value[0])[5], 6);
  assert_float_equal(((const float *)p.value[1])[3], 4, 0);
  assert_memory_equal(p.value[2], ((const int32_t[]){'o', 'n', 9, 9}), 16);
  assert_memory_equal(p.value[3], ((const int32_t[]){'o', 'n', 9, 9}), 16);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_int_equal(p.type[1].dims[0], 1);
  assert_memory_equal(p.value[2], ((const int32_t[]){'a', 'c', 'r', 'o'}), 16);
  expect_refused_sample(&p, 2,
                        "a.tar: 2.npy: 'a' has 2 numbers, expected 3 as in the first sample (dimension 0");
  expect_refused_sample(&p, 3, "a.tar: 3.npy: does not begin with");
  const char *learnt;
  assert_int_equal(shards_source.learnt(&p.host.pub.env, p.self, &learnt), TN_OK);
  assert_non_null(strstr(learnt, "model"));
  probe_close(&p);
  pairs = PAIRS("files", in_folder(folder, "a.tar"), "inputs", "b: json(boxes)", "targets", "");
  open_part(&p, pairs, TN_SPLIT_TRAIN);
  expect_refused_sample(&p, 1, "a.tar: 1.json: 'boxes' has 1 numbers, expected 2");
  expect_refused_sample(&p, 2, "'boxes' has 1 numbers, expected 2");
  expect_refused_sample(&p, 3,
                        "has no 'boxes', expected a number or lists of numbers of equal lengths there");
  probe_close(&p);
}

static void archives_are_predicted(void **state) {
  (void)state;
  probe p;
  char name[256];
  put_archives();
  open_part(&p, PAIRS(BOTH), TN_SPLIT_TRAIN);
  probe_close(&p);
  const char *const paths[] = {in_folder(folder, "a-09.tar"), in_folder(folder, "a-08.tar")};
  probe_open_files(&p, &shards_source, PAIRS(BOTH), paths, 2);
  assert_int_equal(p.description.count, 12);
  assert_int_equal(p.description.n_fields, 1);
  assert_int_equal(shards_source.name(&p.host.pub.env, p.self, 0, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "a-09.tar: d/006"));
  probe_close(&p);
}

/* ---- archives that are read in order ---- */

/* Packs a file by gzip, as NAME.gz; `cut` bytes are left out at the end. */
static void pack(const char *name, size_t cut) {
  char path[1024];
  static uint8_t bytes[MOST];
  FILE *file = fopen(in_folder(folder, name), "rb");
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  snprintf(path, sizeof path, "%s.gz", in_folder(folder, name));
  gzFile packed = gzopen(path, "wb");
  assert_int_equal(gzwrite(packed, bytes, (unsigned)n), (int)n);
  gzclose(packed);
  file = fopen(path, "rb");
  n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  write_file(path, bytes, n - cut);
}

static void put_packed(void) {
  put_archives();
  pack("a-08.tar", 0);
  pack("a-09.tar", 0);
}

#define PACKED "files", in_folder(folder, "a-*.tar.gz"), "inputs", "text: txt", "classes", "[3]"

/* The number of a sample, by its text. */
static int number_at(probe *p, int64_t index) {
  char text[16] = "";
  if (probe_read(p, index, 0) != TN_OK) fail_msg("%s", probe_error(p));
  for (int i = 0; i < p->type[0].dims[0]; i++) text[i] = (char)((const int32_t *)p->value[0])[i];
  int number = atoi(text + 1);
  assert_int_equal(*(const int32_t *)p->value[1], number % 3);
  return number;
}

static void packed_archives_are_read_in_order(void **state) {
  (void)state;
  probe p;
  char name[256];
  put_packed();
  open_part(&p, PAIRS(PACKED, "valid", in_folder(folder, "a-*.tar.gz")), TN_SPLIT_VALID);
  assert_int_equal(p.description.count, -1);
  for (int i = 0; i < 30; i++) assert_int_equal(number_at(&p, i), i % 12);
  assert_int_equal(number_at(&p, 7), 7); /* it is kept */
  assert_int_equal(shards_source.name(&p.host.pub.env, p.self, 7, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "a-09.tar.gz: d/007"));
  assert_int_equal(number_at(&p, 1500), 0);
  assert_int_equal(number_at(&p, 3), 3); /* from the start again */
  probe_close(&p);
}

static void a_buffer_shuffles_and_any_sample_can_be_reached(void **state) {
  (void)state;
  probe p;
  int first[36], seen[12] = {0}, moved = 0;
  put_packed();
  open_part(&p, PAIRS(PACKED, "shuffle_buffer", "5"), TN_SPLIT_TRAIN);
  for (int i = 0; i < 36; i++) {
    first[i] = number_at(&p, i);
    seen[first[i]]++;
    moved += first[i] != i % 12;
  }
  for (int i = 0; i < 12; i++) assert_in_range(seen[i], 1, 5);
  assert_true(moved > 20);
  probe_close(&p);
  open_part(&p, PAIRS(PACKED, "shuffle_buffer", "5"), TN_SPLIT_TRAIN);
  assert_int_equal(number_at(&p, 20), first[20]);
  assert_int_equal(number_at(&p, 4), first[4]);
  assert_int_equal(number_at(&p, 35), first[35]);
  probe_close(&p);
  open_part(&p, PAIRS(BOTH, "classes", "[3]", "shuffle_buffer", "12"), TN_SPLIT_TRAIN); /* not packed */
  assert_int_equal(p.description.count, -1);
  probe_close(&p);
}

static void a_damaged_part_of_a_stream_is_a_sample_that_names_it(void **state) {
  (void)state;
  probe p;
  put_packed();
  pack("a-08.tar", 20);
  open_part(&p, PAIRS(PACKED, "shuffle_buffer", "1"), TN_SPLIT_TRAIN);
  int faults = 0, good = 0;
  for (int i = 0; i < 12; i++) {
    tn_status status = probe_read(&p, i, 0);
    good += status == TN_OK;
    faults +=
        status == TN_EINVAL && strstr(probe_error(&p), "a-08.tar.gz: the packed data are damaged") != NULL;
    assert_true(status == TN_OK || status == TN_EINVAL);
  }
  assert_true(faults >= 1 && good >= 6 && faults + good == 12);
  probe_close(&p);
}

static void standard_input_is_read_once(void **state) {
  (void)state;
  probe p;
  for (int i = 0; i < 6; i++) put_sample(i);
  write_archive("a.tar");
  int kept = dup(STDIN_FILENO), fd = open(in_folder(folder, "a.tar"), O_RDONLY);
  dup2(fd, STDIN_FILENO);
  close(fd);
  open_part(&p, PAIRS("files", "-", TEXTS, "classes", "[3]", "shuffle_buffer", "1"), TN_SPLIT_TRAIN);
  for (int i = 0; i < 6; i++) assert_int_equal(number_at(&p, i), i);
  assert_int_equal(number_at(&p, 2), 2);
  assert_int_equal(probe_read(&p, 6, 0), TN_EIO);
  assert_non_null(strstr(probe_error(&p), "standard input has ended after 6 samples"));
  probe_close(&p);
  dup2(kept, STDIN_FILENO);
  close(kept);
}

static void a_stream_lacks_what_an_index_tells(void **state) {
  (void)state;
  put_packed();
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "a-*.tar.gz"), TEXTS), TN_SPLIT_TRAIN,
                TN_EINVAL, "is read in order, so that classes are not counted");
  probe_refused(&shards_source, PAIRS(PACKED, "split", "0.5"), TN_SPLIT_VALID, TN_EINVAL,
                "is read in order and cannot be divided");
  probe_refused(&shards_source, PAIRS(BOTH, "valid", in_folder(folder, "a-*.tar.gz")), TN_SPLIT_TRAIN,
                TN_EINVAL, "are not counted; set classes");
  probe_starve(&shards_source, PAIRS(PACKED, "shuffle_buffer", "2"));
}

static void samples_that_lack_or_repeat_a_member_are_named(void **state) {
  (void)state;
  probe p;
  put_sample(0);
  put("d/001.txt", "n1");
  put_sample(2);
  put("d/002.cls", "1");
  put("d/003.txt", "n3");
  put("d/003.cls", "cat");
  put("d/004.txt", "n4");
  put("d/004.cls", "-1");
  write_archive("a.tar");
  open_part(&p, PAIRS(ONE), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 5);
  expect_sample(&p, 0, 0);
  expect_refused_sample(&p, 1,
                        "a.tar: d/001: has no member that ends with .cls, expected one for field 'label'");
  expect_refused_sample(&p, 2, "a.tar: d/002: has several members that end with .cls");
  expect_refused_sample(&p, 3, "a.tar: d/003.cls: is 'cat', expected a whole number, the class");
  expect_refused_sample(&p, 4, "a.tar: d/004.cls: is class -1, expected 0 to 2");
  probe_close(&p);
}

static void links_and_sparse_files_are_skipped(void **state) {
  (void)state;
  probe p;
  put_bytes("d", '5', "", 0);
  put_sample(0);
  put_bytes("d/001.txt", '2', "", 0);
  put_bytes("pax", 'x', "25 GNU.sparse.realsize=1\n", 25);
  put("d/001.txt", "piece");
  put_bytes("d/002.txt", 'S', "piece", 5);
  put_sample(3);
  write_archive("a.tar");
  open_part(&p, PAIRS(ONE), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 2);
  expect_sample(&p, 1, 3);
  probe_close(&p);
}

/* Writes the first `n` bytes of the archive, with one changed. */
static void write_damaged(size_t n, size_t changed) {
  archive[changed] ^= (char)(changed > 0);
  write_file(in_folder(folder, "a.tar"), archive, n);
}

/* Four blocks a sample: two headers and two members. */
static void damage_is_a_sample_that_names_it(void **state) {
  (void)state;
  static const struct {
    size_t bytes, changed;
    int good;
    const char *text;
  } cases[] = {
      {12 * BLOCK, 8 * BLOCK, 2, "a.tar: its header at byte 4096 is damaged: the checksum is wrong"},
      {12 * BLOCK, 10 * BLOCK, 2, "a.tar: its header at byte 5120 is damaged: the checksum is wrong"},
      {11 * BLOCK + 1, 0, 2, "a.tar: it is cut off at byte 5633, inside the member 'd/002.txt'"},
      {8 * BLOCK + 7, 0, 2, "a.tar: it is cut off at byte 4103, inside a header"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    probe p;
    for (int k = 0; k < 3; k++) put_sample(k);
    used = 0;
    write_damaged(cases[i].bytes, cases[i].changed);
    open_part(&p, PAIRS(ONE), TN_SPLIT_TRAIN);
    assert_int_equal(p.description.count, cases[i].good + 1);
    for (int k = 0; k < cases[i].good; k++) expect_sample(&p, k, k);
    expect_refused_sample(&p, cases[i].good, cases[i].text);
    probe_close(&p);
  }
}

static void archives_without_an_end_are_read(void **state) {
  (void)state;
  probe p;
  for (int k = 0; k < 3; k++) put_sample(k);
  used = 0;
  write_damaged(11 * BLOCK + 2, 0); /* no padding either */
  open_part(&p, PAIRS(ONE), TN_SPLIT_TRAIN);
  assert_int_equal(p.description.count, 3);
  expect_sample(&p, 2, 2);
  assert_int_equal(truncate(in_folder(folder, "a.tar"), 11 * BLOCK), 0);
  expect_refused_sample(&p, 2, "ends at byte 0 of 2: the file has become shorter");
  probe_close(&p);
}

static void wrong_archives_and_options_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *inputs, *text;
  } wrong[] = {
      {"text", "inputs: line 1: 'text' is no field, expected NAME: ENDING|ENDING"},
      {"a b: txt", "'a b: txt' is no field, expected NAME"},
      {"x: gif", "no field is read from members '.gif', expected a picture"},
      {"x: jpg|txt", "no field is read from members '.txt' and those before it"},
      {"x: class(jpg)", "class(jpg), expected class(json(KEY)) or class(txt)"},
      {"x: json()", "expected NAME"},
      {"x: txt, x: txt", "the field 'x' appears twice"},
      {"label: txt", "the field 'label' appears twice"},
      {"", "inputs: names no field"},
      {"x: jpg", "holds no member that ends with .jpg, as field 'x' has it"},
      {"x: list(txt)", "list(txt), expected list(json(KEY)) or list(npy)"},
      {"x: tokens(txt)", "field 'x': expected tokenizer = FILE"},
  };
  put("d/0.txt", "n");
  write_archive("a.tar");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    probe_refused(&shards_source,
                  PAIRS("files", in_folder(folder, "a.tar"), "inputs", wrong[i].inputs, "targets",
                        i == 9 ? "" : "label: cls"),
                  TN_SPLIT_TRAIN, TN_EINVAL, wrong[i].text);
  probe_refused(&shards_source, PAIRS(ONE), TN_SPLIT_TRAIN, TN_EINVAL,
                "field 'label': no member .cls is a class number");
  write_file(in_folder(folder, "b.tar"), "GIF89a", 6);
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "b.tar")), TN_SPLIT_TRAIN, TN_EINVAL,
                "b.tar: it is cut off at byte 6, inside a header");
  memset(archive, 'x', BLOCK);
  write_file(in_folder(folder, "b.tar"), archive, BLOCK);
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "b.tar")), TN_SPLIT_TRAIN, TN_EINVAL,
                "b.tar: it is no tar archive: the checksum of its first header is wrong");
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "c.tar")), TN_SPLIT_TRAIN, TN_EIO,
                "c.tar: cannot open");
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "c*.tar")), TN_SPLIT_TRAIN, TN_EINVAL,
                "files: no file is called");
  probe_refused(&shards_source, PAIRS("files", in_folder(folder, "{3..1}.tar")), TN_SPLIT_TRAIN, TN_EINVAL,
                "the range {3..1} of files, expected {FIRST..LAST}");
}

static void choices_and_patterns_name_files(void **state) {
  (void)state;
  static const char *const patterns[] = {"a-{08..09}.tar", "{a,x}-0{8,9}.tar", "a-*.tar", "a-0[89].t?r"};
  probe p;
  put_archives();
  write_file(in_folder(folder, "x-08.tar"), "", 0);
  write_file(in_folder(folder, "x-09.tar"), "", 0);
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    open_part(&p, PAIRS("files", in_folder(folder, patterns[i]), TEXTS), TN_SPLIT_TRAIN);
    assert_int_equal(p.description.count, 12);
    probe_close(&p);
  }
}

static void parts_are_disjoint_and_complete(void **state) {
  (void)state;
  probe p;
  int seen[12] = {0};
  put_archives();
  for (int32_t split = 0; split < 2; split++) {
    open_part(&p, PAIRS(BOTH, "split", "0.25"), split);
    assert_int_equal(p.description.count, split == TN_SPLIT_VALID ? 3 : 9);
    for (int64_t i = 0; i < p.description.count; i++) {
      assert_int_equal(probe_read(&p, i, 0), TN_OK);
      const int32_t *text = p.value[0];
      seen[p.type[0].dims[0] == 2 ? text[1] - '0' : 10 + text[2] - '0']++;
    }
    probe_close(&p);
  }
  for (int i = 0; i < 12; i++) assert_int_equal(seen[i], 1);
}

static void other_archives_may_be_for_validation(void **state) {
  (void)state;
  probe p;
  put_archives();
  put("d/000.txt", "n0");
  put("d/000.cls", "0");
  write_archive("v.tar");
  open_part(&p, PAIRS(BOTH, "valid", in_folder(folder, "v.tar")), TN_SPLIT_VALID);
  assert_int_equal(p.description.count, 1);
  assert_int_equal(p.description.fields[1].classes, 3); /* of files as well */
  expect_sample(&p, 0, 0);
  probe_close(&p);
  probe_refused(&shards_source, PAIRS(BOTH), TN_SPLIT_VALID, TN_EUNAVAILABLE, "set valid to other archives");
  probe_refused(&shards_source, PAIRS(BOTH, "valid", in_folder(folder, "v.tar"), "split", "0.5"),
                TN_SPLIT_TRAIN, TN_EINVAL, "split = 0.5 has no effect beside valid");
}

static void every_refused_allocation_is_survived(void **state) {
  (void)state;
  put_archives();
  probe_starve(&shards_source, PAIRS(BOTH));
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, start, stop)
  const struct CMUnitTest tests[] = {
      CASE(members_with_one_stem_are_a_sample),
      CASE(every_way_to_write_a_name_is_read),
      CASE(pictures_and_numbers_are_fields),
      CASE(samples_that_lack_or_repeat_a_member_are_named),
      CASE(links_and_sparse_files_are_skipped),
      CASE(damage_is_a_sample_that_names_it),
      CASE(archives_without_an_end_are_read),
      CASE(wrong_archives_and_options_are_refused),
      CASE(choices_and_patterns_name_files),
      CASE(parts_are_disjoint_and_complete),
      CASE(other_archives_may_be_for_validation),
      CASE(every_refused_allocation_is_survived),
      CASE(arrays_lists_and_texts_are_fields),
      CASE(archives_are_predicted),
      CASE(packed_archives_are_read_in_order),
      CASE(a_buffer_shuffles_and_any_sample_can_be_reached),
      CASE(a_damaged_part_of_a_stream_is_a_sample_that_names_it),
      CASE(standard_input_is_read_once),
      CASE(a_stream_lacks_what_an_index_tells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
