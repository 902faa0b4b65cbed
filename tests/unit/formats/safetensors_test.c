/* safetensors: written files read back, and malicious files are errors with a reason. */
#include "tests/support/folder.h"

#include "core/formats/safetensors.h"

static test_env B;
static folder F;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  folder_make(&F);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

/* A file with a header, a declared header length (SIZE_MAX: the true one), and a number of data bytes. */
static void write_file(const char *json, size_t length, size_t data) {
  size_t n = strlen(json);
  unsigned char *bytes = calloc(1, 8 + n + data + 1);
  assert_non_null(bytes);
  if (length == SIZE_MAX) length = n;
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
  memcpy(bytes + 8, json, n);
  for (size_t i = 0; i < data; i++) bytes[8 + n + i] = (unsigned char)(i + 1);
  folder_write(&F, "x.safetensors", bytes, 8 + n + data);
  free(bytes);
}

static tn_status open_it(tn_safetensors **file) {
  return tn_safetensors_open(&B, folder_path(&F, "x.safetensors"), file);
}

static void refuses_open(tn_status want, const char *part) {
  tn_safetensors *file;
  assert_error(&B, open_it(&file), want, part);
  assert_null(file);
  assert_contains(tn_error_text(&B), "x.safetensors");
}

static void refuses(const char *json, size_t data, const char *part) {
  write_file(json, SIZE_MAX, data);
  refuses_open(TN_EINVAL, part);
}

/* ---- good files ---- */

static void write_shard(const char *name, const char *tensor, float value) {
  char json[128];
  unsigned char bytes[256] = {0};
  int n = snprintf(json, sizeof json, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   tensor);
  bytes[0] = (unsigned char)n;
  memcpy(bytes + 8, json, (size_t)n);
  memcpy(bytes + 8 + n, &value, sizeof value);
  folder_write(&F, name, bytes, 8 + (size_t)n + sizeof value);
}

static void an_index_of_shards_is_one_file(void **state) {
  (void)state;
  static const char index[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"b\":\"m-1.safetensors\","
                              "\"a\":\"m-2.safetensors\"}}";
  tn_safetensors *file;
  float value = 0;
  folder_write(&F, "m.safetensors.index.json", index, strlen(index));
  write_shard("m-1.safetensors", "b", 2);
  assert_error(
      &B, tn_safetensors_open(&B, folder_path(&F, "m.safetensors.index.json"), &file), TN_EINVAL,
      "names the shard m-2.safetensors, which is not beside it; expected all files of its weight_map");
  write_shard("m-2.safetensors", "c", 1);
  assert_error(&B, tn_safetensors_open(&B, folder_path(&F, "m.safetensors.index.json"), &file), TN_EINVAL,
               "the shard m-2.safetensors has no tensor \"a\"; it is of another model, or damaged");
  write_shard("m-2.safetensors", "a", 1);
  assert_ok(&B, tn_safetensors_open(&B, folder_path(&F, "m.safetensors.index.json"), &file));
  assert_int_equal(tn_safetensors_count(file), 2);
  assert_string_equal(tn_safetensors_at(file, 0)->name, "a");
  assert_ok(&B, tn_safetensors_read(file, &B, tn_safetensors_find(file, "b"), &value, sizeof value));
  assert_true(value == 2);
  tn_safetensors_close(file);
}

static void an_index_names_files_beside_it(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"[]", "no index of shards: expected a JSON object with \"weight_map\""},
      {"{\"weight_map\":{\"a\":\"../m.safetensors\"}}", "is '../m.safetensors', expected the name of a file"},
      {"{\"weight_map\":{\"a\":7}}", "is 'no text', expected the name of a file in the same folder"}};
  tn_safetensors *file;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    folder_write(&F, "w.safetensors.index.json", wrong[i][0], strlen(wrong[i][0]));
    assert_error(&B, tn_safetensors_open(&B, folder_path(&F, "w.safetensors.index.json"), &file), TN_EINVAL,
                 wrong[i][1]);
  }
}

static void a_file_is_read(void **state) {
  (void)state;
  tn_safetensors *file;
  float values[2];
  write_file("{\"__metadata__\":{\"format\":\"pt\"},"
             "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
             "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}   ",
             SIZE_MAX, 11);
  assert_ok(&B, open_it(&file));
  assert_int_equal(tn_safetensors_count(file), 2);
  const tn_safetensor *a = tn_safetensors_at(file, 0), *b = tn_safetensors_find(file, "b");
  assert_string_equal(a->name, "a");
  assert_int_equal(a->type.dtype, TN_F32);
  assert_int_equal(a->type.rank, 2);
  assert_int_equal(a->type.dims[1], 2);
  assert_int_equal(b->type.dtype, TN_U8);
  assert_null(tn_safetensors_find(file, "c"));
  assert_string_equal(tn_safetensors_metadata(file, "format"), "pt");
  assert_null(tn_safetensors_metadata(file, "version"));
  unsigned char bytes[3];
  assert_ok(&B, tn_safetensors_read(file, &B, b, bytes, 3));
  assert_int_equal(bytes[0], 9);
  assert_int_equal(bytes[2], 11);
  assert_error(&B, tn_safetensors_read(file, &B, a, values, 4), TN_EINVAL,
               "tensor \"a\" has 8 bytes, expected 4");
  tn_safetensors_close(file);
}

static void a_file_without_tensors_is_read(void **state) {
  (void)state;
  tn_safetensors *file;
  write_file("{}", SIZE_MAX, 0);
  assert_ok(&B, open_it(&file));
  assert_int_equal(tn_safetensors_count(file), 0);
  assert_null(tn_safetensors_find(file, "a"));
  tn_safetensors_close(file);
}

static void scalars_and_empty_tensors_are_read(void **state) {
  (void)state;
  tn_safetensors *file;
  int64_t value;
  write_file("{\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
             "\"e\":{\"dtype\":\"F32\",\"shape\":[5,0],\"data_offsets\":[8,8]},"
             "\"d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
             SIZE_MAX, 8);
  assert_ok(&B, open_it(&file));
  assert_ok(&B, tn_safetensors_read(file, &B, tn_safetensors_find(file, "n"), &value, 8));
  assert_true(value == 0x0807060504030201);
  assert_ok(&B, tn_safetensors_read(file, &B, tn_safetensors_find(file, "e"), NULL, 0));
  tn_safetensors_close(file);
}

static void a_type_that_tenon_lacks_is_listed_and_not_read(void **state) {
  (void)state;
  tn_safetensors *file;
  char bytes[4];
  write_file("{\"q\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]}}", SIZE_MAX, 4);
  assert_ok(&B, open_it(&file));
  const tn_safetensor *q = tn_safetensors_find(file, "q");
  assert_int_equal(q->type.dtype, TN_ANY);
  assert_string_equal(q->stored, "I16");
  assert_error(&B, tn_safetensors_read(file, &B, q, bytes, 4), TN_EUNSUPPORTED, "type I16 is not supported");
  tn_safetensors_close(file);
}

/* ---- hostile files ---- */

static void a_file_too_short_for_a_length_is_refused(void **state) {
  (void)state;
  folder_write(&F, "x.safetensors", "", 0);
  refuses_open(TN_EINVAL, "it has only 0 bytes");
  folder_write(&F, "x.safetensors", "\2\0\0\0\0\0\0", 7);
  refuses_open(TN_EINVAL, "it has only 7 bytes");
}

static void a_header_beyond_the_limit_is_refused_before_it_is_allocated(void **state) {
  (void)state;
  write_file("{}", 100000001, 0);
  refuses_open(TN_EINVAL, "a header of 100000001 bytes, where at most 100000000 are allowed");
  write_file("{}", SIZE_MAX - 1, 0);
  refuses_open(TN_EINVAL, "a header of 18446744073709551614 bytes");
}

static void weights_of_other_programs_are_recognized(void **state) {
  (void)state;
#define FIRST(text, ...)                                                                                     \
  { text, sizeof(text) - 1, __VA_ARGS__ }
  static const struct {
    const char *bytes;
    size_t n;
    const char *what, *command;
  } files[] = {
      FIRST("PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0"
            "archive/data.pkl",
            "a zip archive, such as PyTorch writes", "torch.load(f, map_location='cpu', weights_only=True)"),
      FIRST("PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0w.npy",
            "a .npz archive of NumPy", "save_file(dict(numpy.load(f)), f + '.safetensors')"),
      FIRST("\x80\x02\x8a\nl\xfc\x9c\x46\xf9", "a pickle, such as PyTorch wrote before 1.6", "torch.load"),
      FIRST("\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file, such as Keras writes", "import h5py"),
      FIRST("\x08\x09\x12\x07pytorch\x1a", "an ONNX model", "onnx.load(f).graph.initializer"),
  };
  for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
    folder_write(&F, "x.safetensors", files[i].bytes, files[i].n);
    refuses_open(TN_EINVAL, files[i].what);
    assert_contains(tn_error_text(&B), files[i].command);
    assert_contains(tn_error_text(&B), "x.safetensors'; ");
  }
}

static void a_header_longer_than_the_file_is_refused(void **state) {
  (void)state;
  write_file("{}", 3, 0);
  refuses_open(TN_EINVAL, "cut off: a header of 3 bytes in a file of 10");
  write_file("{}", 99999999, 0);
  refuses_open(TN_EINVAL, "cut off: a header of 99999999 bytes");
}

static void a_header_that_is_no_object_is_refused(void **state) {
  (void)state;
  refuses("", 0, "does not start with '{'");
  refuses("[1]", 0, "does not start with '{'");
  refuses(" {}", 0, "does not start with '{'");
  refuses("null", 0, "does not start with '{'");
}

static void broken_json_is_refused(void **state) {
  (void)state;
  refuses("{\"a\":", 0, "no valid JSON");
  refuses("{}{}", 0, "no valid JSON");
  refuses("{\"a\xff\":1}", 0, "no valid JSON");
  refuses("{\"a\\u0000b\":1}", 0, "no valid JSON");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0,
          "no valid JSON");
}

static void nesting_does_not_exhaust_the_stack(void **state) {
  (void)state;
  enum { DEEP = 200000 };
  char *json = malloc(DEEP + 16);
  assert_non_null(json);
  memcpy(json, "{\"a\":", 5);
  memset(json + 5, '[', DEEP);
  json[5 + DEEP] = '\0';
  refuses(json, 0, "no valid JSON");
  free(json);
}

static void duplicate_keys_are_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
          2, "duplicate object key");
  refuses("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
          "duplicate object key");
}

static void members_must_be_the_three_and_no_more(void **state) {
  (void)state;
  refuses("{\"a\":7}", 0, "tensor \"a\": not an object");
  refuses("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "has no dtype");
  refuses("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "has no shape");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "has no data_offsets");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
          "unknown member \"x\"");
}

static void an_unknown_type_is_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype \"F33\" is unknown");
  refuses("{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype is not a text");
}

static void a_shape_that_is_none_is_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "shape is not a list");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "dimension 0");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1.5],\"data_offsets\":[0,1]}}", 1, "dimension 1");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
          "has 9 dimensions, at most 8");
}

static void a_shape_that_overflows_is_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
          "more bytes than can be counted");
  refuses("{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
          "more bytes than can be counted");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}}", 0,
          "more bytes than can be counted");
}

static void offsets_outside_of_the_data_are_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3,
          "do not lie within the 3 bytes");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", 3, "do not lie within");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,1]}}", 3, "do not lie within");
  refuses(
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9223372036854775806,9223372036854775807]}}",
      3, "do not lie within");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 3, "is not [begin, end]");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,\"1\"]}}", 3, "is not [begin, end]");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":{}}}", 3, "is not [begin, end]");
}

static void offsets_that_do_not_fit_the_shape_are_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
          "data_offsets span 4 bytes, but F32 of its shape needs 8");
}

static void overlaps_and_holes_are_refused(void **state) {
  (void)state;
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
          3, "tensor \"b\": overlaps");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
          2, "overlaps with another tensor");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
          3, "tensor \"b\": begins after a gap of 1 bytes");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "after a gap of 1 bytes");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 5,
          "its last 4 bytes belong to no tensor");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
          2, "tensor \"a\": overlaps");
}

static void metadata_that_is_no_text_is_refused(void **state) {
  (void)state;
  refuses("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
  refuses("{\"__metadata__\":{\"step\":3}}", 0, "__metadata__: \"step\" is not a text");
}

static void a_bool_that_is_none_is_refused(void **state) {
  (void)state;
  tn_safetensors *file;
  char values[2];
  write_file("{\"m\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}", SIZE_MAX, 2);
  assert_ok(&B, open_it(&file));
  assert_error(&B, tn_safetensors_read(file, &B, tn_safetensors_at(file, 0), values, 2), TN_EINVAL,
               "m: element 1 is 2, expected 0 or 1");
  tn_safetensors_close(file);
}

static void what_is_no_file_is_refused(void **state) {
  (void)state;
  tn_safetensors *file;
  assert_error(&B, tn_safetensors_open(&B, F.path, &file), TN_EINVAL, "not a regular file");
  assert_error(&B, tn_safetensors_open(&B, folder_path(&F, "none"), &file), TN_EIO, "cannot be opened");
  assert_int_equal(mkfifo(folder_path(&F, "pipe"), 0644), 0);
  assert_error(&B, tn_safetensors_open(&B, F.shown, &file), TN_EINVAL, "not a regular file");
}

static void a_file_that_shrinks_is_an_error(void **state) {
  (void)state;
  tn_safetensors *file;
  char values[4];
  write_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", SIZE_MAX, 4);
  assert_ok(&B, open_it(&file));
  assert_int_equal(truncate(folder_path(&F, "x.safetensors"), 20), 0);
  assert_error(&B, tn_safetensors_read(file, &B, tn_safetensors_at(file, 0), values, 4), TN_EIO,
               "ended at byte");
  tn_safetensors_close(file);
}

static void every_prefix_and_every_changed_byte_of_a_file_is_handled(void **state) {
  (void)state;
  static const char json[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
  unsigned char bytes[8 + sizeof(json) + 1];
  const size_t n = 8 + sizeof(json) - 1 + 2;
  memset(bytes, 0, sizeof(bytes));
  bytes[0] = (unsigned char)(sizeof(json) - 1);
  memcpy(bytes + 8, json, sizeof(json) - 1);
  for (size_t cut = 0; cut < n; cut++) {
    folder_write(&F, "x.safetensors", bytes, cut);
    refuses_open(TN_EINVAL, "");
  }
  for (size_t i = 0; i < n; i++) {
    tn_safetensors *file;
    bytes[i] ^= 0x15;
    folder_write(&F, "x.safetensors", bytes, n);
    if (open_it(&file) == TN_OK) tn_safetensors_close(file);
    bytes[i] ^= 0x15;
  }
}

/* ---- writing ---- */

static const tn_safetensor_named two[] = {{"w", {TN_F32, 2, {2, 3}}}, {"n", {TN_I64, 0, {0}}}};
static const tn_safetensor_note note = {"format", "pt"};
static const float weights[6] = {1, 2, 3, 4, 5, 6};
static const int64_t count = -7;

static tn_status write_two(void) {
  tn_safetensors_writer *writer;
  TN_TRY(tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), two, 2, &note, 1, &writer));
  tn_status status = tn_safetensors_append(writer, weights, 4);
  if (status == TN_OK) status = tn_safetensors_append(writer, weights + 1, 20);
  if (status == TN_OK) status = tn_safetensors_append(writer, &count, 8);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

static void what_is_written_reads_back(void **state) {
  (void)state;
  tn_safetensors *file;
  float got[6];
  int64_t n;
  assert_ok(&B, write_two());
  assert_ok(&B, open_it(&file));
  assert_int_equal(tn_safetensors_count(file), 2);
  const tn_safetensor *w = tn_safetensors_find(file, "w");
  assert_int_equal(w->offset % 8, 0);
  assert_true(tn_type_equal(&w->type, &two[0].type));
  assert_ok(&B, tn_safetensors_read(file, &B, w, got, sizeof(got)));
  assert_memory_equal(got, weights, sizeof(got));
  assert_ok(&B, tn_safetensors_read(file, &B, tn_safetensors_find(file, "n"), &n, 8));
  assert_int_equal(n, -7);
  assert_string_equal(tn_safetensors_metadata(file, "format"), "pt");
  tn_safetensors_close(file);
}

enum { LARGE = 70000 };

/* A tensor of several pieces, one of a few bytes and one without elements; returns the sum of the writer. */
static uint32_t write_large(const float *values, uint64_t *bytes) {
  static const tn_safetensor_named named[] = {
      {"a", {TN_F32, 1, {LARGE}}}, {"b", {TN_F32, 2, {0, 3}}}, {"c", {TN_U8, 1, {3}}}};
  tn_safetensors_writer *writer;
  uint32_t crc;
  assert_ok(&B, tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), named, 3, &note, 1, &writer));
  assert_ok(&B, tn_safetensors_append(writer, values, LARGE * sizeof *values));
  assert_ok(&B, tn_safetensors_append(writer, "xyz", 3));
  tn_safetensors_sum(writer, bytes, &crc);
  assert_ok(&B, tn_safetensors_commit(writer));
  return crc;
}

static void read_one(tn_safetensors *file, const char *name, void *to, size_t bytes) {
  assert_ok(&B, tn_safetensors_read(file, &B, tn_safetensors_find(file, name), to, bytes));
}

/* In any order, once or twice or not at all. */
static void a_file_is_summed_while_it_is_read(void **state) {
  static const char *const orders[] = {"", "a", "c", "ac", "ca", "caabc", "bac"};
  (void)state;
  float *values = calloc(LARGE, sizeof *values), *got = calloc(LARGE, sizeof *got);
  assert_true(values != NULL && got != NULL);
  for (int i = 0; i < LARGE; i++) values[i] = (float)i;
  uint64_t written, bytes;
  uint32_t crc = 0, expected = write_large(values, &written);
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    tn_safetensors *file;
    assert_ok(&B, open_it(&file));
    assert_ok(&B, tn_safetensors_sum_reads(file, &B));
    for (const char *c = orders[i]; *c != '\0'; c++) {
      const char name[2] = {*c, '\0'};
      read_one(file, name, got, *c == 'a' ? LARGE * sizeof *got : *c == 'c' ? 3 : 0);
      if (*c == 'a') assert_memory_equal(got, values, LARGE * sizeof *got);
    }
    assert_ok(&B, tn_safetensors_sum_rest(file, &B, &bytes, &crc));
    tn_safetensors_close(file);
    assert_int_equal(bytes, written);
    assert_int_equal(crc, expected);
  }
  free(values);
  free(got);
}

static void the_written_header_is_as_the_format_says(void **state) {
  (void)state;
  static const char wanted[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                               "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]}}";
  char bytes[512];
  assert_ok(&B, write_two());
  FILE *file = fopen(folder_path(&F, "x.safetensors"), "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  size_t header = (sizeof(wanted) - 1 + 7) / 8 * 8;
  assert_int_equal(n, 8 + header + 32);
  assert_int_equal((unsigned char)bytes[0], header);
  assert_memory_equal(bytes + 8, wanted, sizeof(wanted) - 1);
}

static void names_are_escaped(void **state) {
  (void)state;
  static const tn_safetensor_named odd = {"a\"b\\c\n\xc3\xa9", {TN_BF16, 1, {1}}};
  tn_safetensors_writer *writer;
  tn_safetensors *file;
  assert_ok(&B, tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), &odd, 1, NULL, 0, &writer));
  assert_ok(&B, tn_safetensors_append(writer, "xy", 2));
  assert_ok(&B, tn_safetensors_commit(writer));
  assert_ok(&B, open_it(&file));
  assert_non_null(tn_safetensors_find(file, odd.name));
  tn_safetensors_close(file);
}

static void a_file_without_tensors_is_written(void **state) {
  (void)state;
  tn_safetensors_writer *writer;
  tn_safetensors *file;
  assert_ok(&B, tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), NULL, 0, NULL, 0, &writer));
  assert_ok(&B, tn_safetensors_commit(writer));
  assert_ok(&B, open_it(&file));
  tn_safetensors_close(file);
}

static void refuses_writing(const tn_safetensor_named *tensors, int32_t n, const char *part) {
  tn_safetensors_writer *writer;
  tn_status status = tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), tensors, n, NULL, 0, &writer);
  assert_error(&B, status, TN_EINVAL, part);
  assert_null(writer);
  assert_int_equal(access(F.shown, F_OK), -1);
}

static void names_and_types_that_no_file_can_hold_are_refused(void **state) {
  (void)state;
  const tn_safetensor_named twins[] = {{"a", {TN_U8, 1, {1}}}, {"a", {TN_U8, 1, {1}}}};
  const tn_safetensor_named reserved = {"__metadata__", {TN_U8, 1, {1}}}, latin = {"\xe9", {TN_U8, 1, {1}}};
  const tn_safetensor_named any = {"a", {TN_ANY, 1, {1}}}, negative = {"a", {TN_U8, 1, {-1}}};
  const tn_safetensor_named vast = {"a", {TN_F32, 2, {1ll << 40, 1ll << 40}}};
  refuses_writing(twins, 2, "cannot be called \"a\"");
  refuses_writing(&reserved, 1, "cannot be called \"__metadata__\"");
  refuses_writing(&latin, 1, "not UTF-8");
  refuses_writing(&any, 1, "that no file can hold");
  refuses_writing(&negative, 1, "that no file can hold");
  refuses_writing(&vast, 1, "that no file can hold");
}

static void data_that_does_not_match_the_header_leaves_no_file(void **state) {
  (void)state;
  tn_safetensors_writer *writer;
  char more[64] = {0};
  assert_ok(&B, tn_safetensors_begin(&B, folder_path(&F, "x.safetensors"), two, 2, NULL, 0, &writer));
  assert_ok(&B, tn_safetensors_append(writer, more, 31));
  assert_error(&B, tn_safetensors_append(writer, more, 2), TN_EINTERNAL,
               "more data than its header declares");
  assert_error(&B, tn_safetensors_commit(writer), TN_EINTERNAL,
               "31 bytes of data, but its header declares 32");
  assert_int_equal(access(folder_path(&F, "x.safetensors"), F_OK), -1);
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
  (void)state;
  tn_safetensors_writer *writer;
  assert_error(&B, tn_safetensors_begin(&B, folder_path(&F, "none/x"), two, 2, NULL, 0, &writer), TN_EIO,
               "cannot be created");
  assert_null(writer);
  tn_safetensors_abandon(NULL);
  tn_safetensors_close(NULL);
}

static tn_status write_and_read(void) {
  tn_safetensors *file;
  TN_TRY(write_two());
  TN_TRY(open_it(&file));
  tn_safetensors_close(file);
  return TN_OK;
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 60 && status != TN_OK; left++) {
    test_env_allow(&B, left);
    status = write_and_read();
    test_env_allow(&B, -1);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(a_file_is_read),
      CASE(an_index_of_shards_is_one_file),
      CASE(an_index_names_files_beside_it),
      CASE(a_file_without_tensors_is_read),
      CASE(scalars_and_empty_tensors_are_read),
      CASE(a_type_that_tenon_lacks_is_listed_and_not_read),
      CASE(a_file_too_short_for_a_length_is_refused),
      CASE(a_header_beyond_the_limit_is_refused_before_it_is_allocated),
      CASE(weights_of_other_programs_are_recognized),
      CASE(a_header_longer_than_the_file_is_refused),
      CASE(a_header_that_is_no_object_is_refused),
      CASE(broken_json_is_refused),
      CASE(nesting_does_not_exhaust_the_stack),
      CASE(duplicate_keys_are_refused),
      CASE(members_must_be_the_three_and_no_more),
      CASE(an_unknown_type_is_refused),
      CASE(a_shape_that_is_none_is_refused),
      CASE(a_shape_that_overflows_is_refused),
      CASE(offsets_outside_of_the_data_are_refused),
      CASE(offsets_that_do_not_fit_the_shape_are_refused),
      CASE(overlaps_and_holes_are_refused),
      CASE(metadata_that_is_no_text_is_refused),
      CASE(a_bool_that_is_none_is_refused),
      CASE(what_is_no_file_is_refused),
      CASE(a_file_that_shrinks_is_an_error),
      CASE(every_prefix_and_every_changed_byte_of_a_file_is_handled),
      CASE(what_is_written_reads_back),
      CASE(a_file_is_summed_while_it_is_read),
      CASE(the_written_header_is_as_the_format_says),
      CASE(names_are_escaped),
      CASE(a_file_without_tensors_is_written),
      CASE(names_and_types_that_no_file_can_hold_are_refused),
      CASE(data_that_does_not_match_the_header_leaves_no_file),
      CASE(a_folder_that_is_not_there_is_an_error),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
