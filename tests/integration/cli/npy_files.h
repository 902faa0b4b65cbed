/* tests/integration/cli/npy_files.h: .npy files of the tests. */
#pragma once

#include <math.h>

#include "program.h"

/* A .npy file of version 1.0: `rows` rows with the dims of the text `dims` ("1, 6, 6"), of type `descr`
 * ("<f4"). */
static inline void write_array(const char *path, const char *descr, int64_t rows, const char *dims,
                               const void *values, size_t n_bytes) {
  char bytes[16384];
  char header[128];
  int length =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %s), }", descr,
               (long long)rows, dims);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  size_t padded = ((size_t)length + 10 + 1 + 63) / 64 * 64 - 10;
  bytes[8] = (char)(padded & 0xff);
  bytes[9] = (char)(padded >> 8);
  memset(bytes + 10, ' ', padded);
  memcpy(bytes + 10, header, (size_t)length);
  bytes[10 + padded - 1] = '\n';
  assert_true(10 + padded + n_bytes <= sizeof bytes);
  if (n_bytes > 0) memcpy(bytes + 10 + padded, values, n_bytes);
  file_write_bytes(path, bytes, 10 + padded + n_bytes);
}

static inline void write_npy(const char *path, int64_t rows, const char *dims, const float *values,
                             size_t n) {
  write_array(path, "<f4", rows, dims, values, n * sizeof *values);
}

/* The rows of a .npy file of f32 whose header says `shape`. */
static inline const float *read_npy(const char *path, const char *shape, size_t count) {
  size_t n;
  const char *bytes = file_read(path, &n);
  assert_memory_equal(bytes, "\x93NUMPY", 6);
  size_t start = 10 + (size_t)(unsigned char)bytes[8] + ((size_t)(unsigned char)bytes[9] << 8);
  char expected[64];
  snprintf(expected, sizeof expected, "'shape': (%s)", shape);
  if (strstr(bytes + 10, expected) == NULL) fail_msg("expected %s in %s", expected, bytes + 10);
  assert_int_equal(n - start, count * sizeof(float));
  return (const float *)(const void *)(bytes + start);
}

/* The values of a .npy file of f32. */
static inline const float *read_values(const char *path, size_t *count) {
  size_t n;
  const char *bytes = file_read(path, &n);
  size_t start = 10 + (size_t)(unsigned char)bytes[8] + ((size_t)(unsigned char)bytes[9] << 8);
  *count = (n - start) / sizeof(float);
  return (const float *)(const void *)(bytes + start);
}

/* The numbers of two such files are equal within a part of the largest. */
static inline void check_equal(const char *what, const char *found, const char *wanted, double tolerance) {
  size_t n, expected_n;
  double largest = 0;
  const float *is = read_values(found, &n), *expected = read_values(wanted, &expected_n);
  assert_int_equal(n, expected_n);
  assert_true(n > 0);
  for (size_t i = 0; i < n; i++)
    if (isfinite(expected[i])) largest = fmax(largest, fabs((double)expected[i]));
  for (size_t i = 0; i < n; i++) {
    int equal = is[i] == expected[i] || (isnan(is[i]) && isnan(expected[i]));
    if (!equal && !(fabs((double)is[i] - (double)expected[i]) <= tolerance * largest))
      fail_msg("%s: result %zu is %.9g, expected %.9g", what, i, (double)is[i], (double)expected[i]);
  }
}
