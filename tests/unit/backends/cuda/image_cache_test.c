/* tests/unit/backends/cuda/image_cache_test.c: compiled code on disk is read back, and damaged files are
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/modules/image_cache.h"

static const char code[] = "the code of a kernel";
static const char key[TN_CUDA_KEY] = "0123456789abcdef0123456789abcdef";
static char folder[64], path[160], error[TN_CUDA_ERROR_TEXT];

static int open_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/tenon-images-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/%s.cubin", folder, key);
  return 0;
}

static int close_folder(void **state) {
  (void)state;
  (void)chmod(folder, 0700);
  (void)unlink(path);
  return rmdir(folder);
}

static bool keep(void) {
  tn_cuda_image image = {(void *)(uintptr_t)code, sizeof code};
  return tn_cuda_image_write(folder, key, &image, error);
}

/* Whether the image is there; *damaged: there is a file without a valid image. */
static bool is_kept(bool *damaged) {
  tn_cuda_image image;
  bool found = tn_cuda_image_read(folder, key, &image, damaged);
  if (found) {
    assert_int_equal(image.n, sizeof code);
    assert_memory_equal(image.bytes, code, sizeof code);
  } else {
    assert_null(image.bytes);
  }
  free(image.bytes);
  return found;
}

static void an_image_is_read_back(void **state) {
  (void)state;
  bool damaged;
  assert_false(is_kept(&damaged));
  assert_false(damaged);
  assert_true(keep());
  assert_true(is_kept(&damaged));
  assert_false(damaged);
  assert_true(keep());
  assert_true(is_kept(&damaged));
}

static void every_changed_byte_is_noticed(void **state) {
  (void)state;
  struct stat info;
  assert_true(keep());
  assert_int_equal(stat(path, &info), 0);
  for (off_t i = 0; i < info.st_size; i++) {
    unsigned char byte, other;
    bool damaged;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, i), 1);
    other = byte ^ 0x20;
    assert_int_equal(pwrite(fd, &other, 1, i), 1);
    assert_false(is_kept(&damaged));
    assert_true(damaged);
    assert_int_equal(pwrite(fd, &byte, 1, i), 1);
    close(fd);
  }
  bool damaged;
  assert_true(is_kept(&damaged));
}

static void a_file_that_is_too_short_is_noticed(void **state) {
  (void)state;
  struct stat info;
  assert_true(keep());
  assert_int_equal(stat(path, &info), 0);
  for (off_t n = info.st_size - 1; n >= 0; n--) {
    bool damaged;
    assert_int_equal(truncate(path, n), 0);
    assert_false(is_kept(&damaged));
    assert_true(damaged);
  }
}

static void a_pipe_or_link_is_not_read(void **state) {
  (void)state;
  bool damaged;
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(is_kept(&damaged));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("/dev/zero", path), 0);
  assert_false(is_kept(&damaged));
}

static void a_folder_that_cannot_be_written_is_named(void **state) {
  (void)state;
  if (geteuid() == 0) {
    strcat(folder, "/none"); /* root writes anywhere */
    assert_false(keep());
    folder[strlen(folder) - 5] = '\0';
  } else {
    assert_int_equal(chmod(folder, 0500), 0);
    assert_false(keep());
  }
  assert_non_null(strstr(error, key));
  assert_non_null(strstr(error, geteuid() == 0 ? "No such file" : "Permission denied"));
}

static void no_folder_keeps_nothing(void **state) {
  (void)state;
  tn_cuda_image image = {(void *)(uintptr_t)code, sizeof code};
  bool damaged;
  assert_true(tn_cuda_image_write("", key, &image, error));
  assert_false(tn_cuda_image_read("", key, &image, &damaged));
}

static void a_key_depends_on_texts_arch_and_compiler(void **state) {
  (void)state;
  static tn_cuda_libraries a = {.nvrtc_version = 13000, .path = {"", "/a/libnvrtc.so.13", ""}};
  static tn_cuda_libraries b = {.nvrtc_version = 12080, .path = {"", "/a/libnvrtc.so.13", ""}};
  tn_cuda_compiler compilers[] = {
      {&a, "sm_90", {{0, 0}}}, {&a, "sm_80", {{0, 0}}}, {&b, "sm_90", {{0, 0}}}, {&a, "sm_90", {{0, 1}}}};
  char keys[5][TN_CUDA_KEY], again[TN_CUDA_KEY];
  for (int i = 0; i < 4; i++) tn_cuda_image_key(&compilers[i], "kernel", keys[i]);
  tn_cuda_image_key(&compilers[0], "kerne1", keys[4]);
  tn_cuda_image_key(&compilers[0], "kernel", again);
  assert_string_equal(again, keys[0]);
  for (int i = 0; i < 5; i++)
    for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)

int main(void) {
  const struct CMUnitTest tests[] = {test(an_image_is_read_back),
                                     test(every_changed_byte_is_noticed),
                                     test(a_file_that_is_too_short_is_noticed),
                                     test(a_pipe_or_link_is_not_read),
                                     test(a_folder_that_cannot_be_written_is_named),
                                     test(no_folder_keeps_nothing),
                                     test(a_key_depends_on_texts_arch_and_compiler)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
