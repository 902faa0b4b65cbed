/* .npy files: the bytes that NumPy writes, and invalid files. */
#include "tests/support/folder.h"

#include "core/formats/npy.h"

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

/* A file of the given version, header text and number of data bytes 1, 2, 3 ... */
static void write_file(int version, const char *header, size_t data) {
  unsigned char bytes[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version};
  size_t n = strlen(header), start = version == 1 ? 10 : 12;
  bytes[8] = (unsigned char)n;
  bytes[9] = (unsigned char)(n >> 8);
  memcpy(bytes + start, header, n);
  for (size_t i = 0; i < data; i++) bytes[start + n + i] = (unsigned char)(i + 1);
  folder_write(&F, "x.npy", bytes, start + n + data);
}

static tn_status read_it(tn_type *type, void **data) {
  return tn_npy_read(&B, folder_path(&F, "x.npy"), type, data);
}

static void refuses_file(tn_status want, const char *part) {
  tn_type type;
  void *data;
  assert_error(&B, read_it(&type, &data), want, part);
  assert_null(data);
  assert_contains(tn_error_text(&B), "x.npy");
}

static void refuses(const char *header, size_t data, tn_status want, const char *part) {
  write_file(1, header, data);
  refuses_file(want, part);
}

/* ---- good files ---- */

static void all_three_versions_are_read(void **state) {
  (void)state;
  for (int version = 1; version <= 3; version++) {
    tn_type type;
    void *data;
    write_file(version, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   \n", 6);
    assert_ok(&B, read_it(&type, &data));
    assert_int_equal(type.dtype, TN_U8);
    assert_int_equal(type.rank, 2);
    assert_int_equal(type.dims[0], 2);
    assert_int_equal(type.dims[1], 3);
    assert_int_equal(((unsigned char *)data)[5], 6);
    tn_release(&B, data);
  }
}

static void every_type_is_read(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    int32_t dtype;
  } types[] = {{"|u1", TN_U8},  {"|i1", TN_I8},  {"<i4", TN_I32}, {"<i8", TN_I64},
               {"<f2", TN_F16}, {"<f4", TN_F32}, {"<f8", TN_F64}};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    char header[128];
    tn_type type;
    void *data;
    snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
             types[i].descr);
    write_file(1, header, 2 * tn_dtype_size(types[i].dtype));
    assert_ok(&B, read_it(&type, &data));
    assert_int_equal(type.dtype, types[i].dtype);
    tn_release(&B, data);
  }
}

static void scalars_and_empty_arrays_are_read(void **state) {
  (void)state;
  tn_type type;
  void *data;
  write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }", 4);
  assert_ok(&B, read_it(&type, &data));
  assert_int_equal(type.rank, 0);
  assert_int_equal(*(int32_t *)data, 0x04030201);
  tn_release(&B, data);
  write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 0), }", 0);
  assert_ok(&B, read_it(&type, &data));
  assert_int_equal(type.dims[1], 0);
  tn_release(&B, data);
}

static void keys_in_any_order_and_old_long_integers_are_read(void **state) {
  (void)state;
  tn_type type;
  void *data;
  write_file(1, "{\"shape\":(4L,),\"descr\":\"|u1\",\"fortran_order\":False}", 4);
  assert_ok(&B, read_it(&type, &data));
  assert_int_equal(type.dims[0], 4);
  tn_release(&B, data);
}

static void fortran_order_of_one_dimension_is_the_same_thing(void **state) {
  (void)state;
  tn_type type;
  void *data;
  write_file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (4,), }", 4);
  assert_ok(&B, read_it(&type, &data));
  tn_release(&B, data);
}

/* ---- valid but unsupported files ---------------------------------------------------------------- */

static void other_types_are_declined_with_a_remedy(void **state) {
  (void)state;
  static const char *const descrs[] = {">f4", "<u2", "<c8", "|S5", "<U3", "<M8[ns]", "|O", "<f16"};
  for (size_t i = 0; i < sizeof(descrs) / sizeof(descrs[0]); i++) {
    char header[128];
    snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }", descrs[i]);
    refuses(header, 4, TN_EUNSUPPORTED, "convert it with astype");
  }
  refuses("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, TN_EUNSUPPORTED,
          "structured types");
}

static void fortran_order_is_declined_with_a_remedy(void **state) {
  (void)state;
  refuses("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", 4, TN_EUNSUPPORTED,
          "numpy.ascontiguousarray");
}

static void too_many_dimensions_are_declined(void **state) {
  (void)state;
  refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 1, TN_EUNSUPPORTED,
          "more than 8 dimensions");
}

static void other_versions_are_declined(void **state) {
  (void)state;
  write_file(4, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", 1);
  refuses_file(TN_EUNSUPPORTED, "version 4.0 of the .npy format");
  write_file(0, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", 1);
  refuses_file(TN_EUNSUPPORTED, "version 0.0");
}

/* ---- hostile files ---- */

static void what_is_no_npy_file_is_refused(void **state) {
  (void)state;
  folder_write(&F, "x.npy", "", 0);
  refuses_file(TN_EINVAL, "not a .npy file");
  folder_write(&F, "x.npy", "PK\3\4 a whole archive", 21);
  refuses_file(TN_EINVAL, "not a .npy file");
  folder_write(&F, "x.npy", "\x93NUMPY\1\0", 8);
  refuses_file(TN_EINVAL, "not a .npy file");
}

static void a_header_longer_than_the_file_is_refused(void **state) {
  (void)state;
  folder_write(&F, "x.npy", "\x93NUMPY\1\0\x50\0{'descr'", 18);
  refuses_file(TN_EINVAL, "cut off in its header");
  folder_write(&F, "x.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{'descr'", 20);
  refuses_file(TN_EINVAL, "a header of 4294967295 bytes, where at most 65536 are allowed");
}

static void a_damaged_header_is_refused_where_it_is_damaged(void **state) {
  (void)state;
  static const struct {
    const char *header, *part;
  } bad[] = {
      {"   ", "expected '{'"},
      {"[1]", "expected '{'"},
      {"{", "expected a text in quotes"},
      {"{descr: 1}", "expected a text in quotes"},
      {"{'descr", "expected a short text in quotes"},
      {"{'descr' '|u1'}", "expected ':'"},
      {"{'descr': 4}", "expected a text in quotes"},
      {"{'descr': '|u1' 'shape': (1,)}", "expected ',' or '}'"},
      {"{'descr': '|u1'}", "each once"},
      {"{}", "each once"},
      {"{'descr': '|u1', 'descr': '|u1', 'shape': (1,), 'fortran_order': False}", "each once"},
      {"{'descr': '|u1', 'colour': 'red', 'shape': (1,), 'fortran_order': False}", "each once"},
      {"{'shape': 1}", "expected a shape in brackets"},
      {"{'shape': (1", "expected ',' or ')'"},
      {"{'shape': (1 2)}", "expected ',' or ')'"},
      {"{'shape': (-1,)}", "expected a dimension"},
      {"{'shape': (,)}", "expected a dimension"},
      {"{'shape': (9223372036854775808,)}", "at most 63 bits"},
      {"{'fortran_order': 0}", "expected True or False"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} import os", "expected its end"},
      {"{'descr': '0123456789012345678901234567890123456789'}", "expected a short text in quotes"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) refuses(bad[i].header, 1, TN_EINVAL, bad[i].part);
}

static void a_nul_byte_in_the_header_is_refused(void **state) {
  (void)state;
  static const char bytes[] = "\x93NUMPY\1\0\x04\0{}\0}x";
  folder_write(&F, "x.npy", bytes, sizeof(bytes) - 1);
  refuses_file(TN_EINVAL, "expected text without NUL bytes");
}

static void a_shape_that_overflows_is_refused(void **state) {
  (void)state;
  refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8, TN_EINVAL,
          "more bytes than can be counted");
  refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }", 0, TN_EINVAL,
          "more bytes than can be counted");
}

static void data_that_does_not_fit_the_shape_is_refused_before_it_is_allocated(void **state) {
  (void)state;
  refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 3, TN_EINVAL,
          "has 3 bytes of data, but its shape needs 4");
  refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 5, TN_EINVAL, "has 5 bytes of data");
  refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,), }", 5, TN_EINVAL,
          "its shape needs 1000000000000");
}

static void a_bool_that_is_none_is_refused(void **state) {
  (void)state;
  refuses("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", 2, TN_EINVAL, "element 1 is 2");
}

static void what_is_no_file_is_refused(void **state) {
  (void)state;
  tn_type type;
  void *data;
  assert_error(&B, tn_npy_read(&B, F.path, &type, &data), TN_EINVAL, "not a regular file");
  assert_error(&B, tn_npy_read(&B, folder_path(&F, "none"), &type, &data), TN_EIO, "cannot be opened");
}

/* ---- writing ---- */

/* numpy.save of numpy.arange(3, dtype='f4') */
static const char arange[] = "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
                             "                                                            \n"
                             "\0\0\0\0\0\0\x80?\0\0\0@";

static void the_written_bytes_are_those_of_numpy(void **state) {
  (void)state;
  static const float values[] = {0, 1, 2};
  static const tn_type type = {TN_F32, 1, {3}};
  char bytes[256];
  assert_ok(&B, tn_npy_write(&B, folder_path(&F, "x.npy"), &type, values));
  FILE *file = fopen(F.shown, "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  assert_int_equal(n, sizeof(arange) - 1);
  assert_memory_equal(bytes, arange, n);
}

static void every_rank_reads_back(void **state) {
  (void)state;
  static const int64_t values[2] = {5, -6};
  for (int32_t rank = 0; rank <= TN_MAX_RANK; rank++) {
    tn_type type = {TN_I64, rank, {1, 1, 1, 1, 1, 1, 1, 1}}, got;
    void *data;
    if (rank > 0) type.dims[rank - 1] = 2;
    for (int32_t i = rank; i < TN_MAX_RANK; i++) type.dims[i] = 0;
    assert_ok(&B, tn_npy_write(&B, folder_path(&F, "x.npy"), &type, values));
    assert_ok(&B, read_it(&got, &data));
    assert_true(tn_type_equal(&type, &got));
    assert_memory_equal(data, values, tn_type_bytes(&type));
    tn_release(&B, data);
  }
}

static void what_numpy_lacks_is_not_written(void **state) {
  (void)state;
  static const tn_type half = {TN_BF16, 1, {1}}, any = {TN_ANY, 0, {0}}, negative = {TN_F32, 1, {-2}};
  assert_error(&B, tn_npy_write(&B, folder_path(&F, "x.npy"), &half, "xx"), TN_EUNSUPPORTED,
               "NumPy has no type bf16; cast the value to f32 first");
  assert_error(&B, tn_npy_write(&B, F.shown, &any, "xx"), TN_EUNSUPPORTED, "no type any");
  assert_error(&B, tn_npy_write(&B, F.shown, &negative, "xx"), TN_EINVAL, "can be counted");
  assert_int_equal(access(F.shown, F_OK), -1);
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  static const float values[] = {0, 1, 2};
  static const tn_type type = {TN_F32, 1, {3}};
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 60 && status != TN_OK; left++) {
    tn_type got;
    void *data = NULL;
    test_env_allow(&B, left);
    status = tn_npy_write(&B, folder_path(&F, "x.npy"), &type, values);
    if (status == TN_OK) status = read_it(&got, &data);
    test_env_allow(&B, -1);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    tn_release(&B, data);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(all_three_versions_are_read),
      CASE(every_type_is_read),
      CASE(scalars_and_empty_arrays_are_read),
      CASE(keys_in_any_order_and_old_long_integers_are_read),
      CASE(fortran_order_of_one_dimension_is_the_same_thing),
      CASE(other_types_are_declined_with_a_remedy),
      CASE(fortran_order_is_declined_with_a_remedy),
      CASE(too_many_dimensions_are_declined),
      CASE(other_versions_are_declined),
      CASE(what_is_no_npy_file_is_refused),
      CASE(a_header_longer_than_the_file_is_refused),
      CASE(a_damaged_header_is_refused_where_it_is_damaged),
      CASE(a_nul_byte_in_the_header_is_refused),
      CASE(a_shape_that_overflows_is_refused),
      CASE(data_that_does_not_fit_the_shape_is_refused_before_it_is_allocated),
      CASE(a_bool_that_is_none_is_refused),
      CASE(what_is_no_file_is_refused),
      CASE(the_written_bytes_are_those_of_numpy),
      CASE(every_rank_reads_back),
      CASE(what_numpy_lacks_is_not_written),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
