/* Memory in a file without a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/file/unnamed_file.h"
#include "tests/support/test_env.h"

enum { BYTES = 1 << 20 };

typedef struct disk {
  test_env t;
  char folder[64];
} disk;

static int set_up(void **state) {
  disk *d = calloc(1, sizeof *d);
  test_env_start(&d->t);
  strcpy(d->folder, "/tmp/tenon-unnamed-XXXXXX");
  if (mkdtemp(d->folder) == NULL) return 1;
  *state = d;
  return 0;
}

static int tear_down(void **state) {
  disk *d = *state;
  int left = rmdir(d->folder);
  int64_t live = d->t.live;
  free(d);
  return left != 0 || live != 0;
}

static int is_zero(const char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (bytes[i] != 0) return 0;
  return 1;
}

/* tear_down can remove the folder while the memory is in use elsewhere: nothing lies in it. */
static void memory_is_zero_and_the_folder_empty(void **state) {
  disk *d = *state;
  void *a, *b;
  assert_int_equal(tn_unnamed_file_map(&d->t.env, d->folder, BYTES, &a), TN_OK);
  assert_int_equal(tn_unnamed_file_map(&d->t.env, d->folder, BYTES, &b), TN_OK);
  assert_int_equal(rmdir(d->folder), 0);
  assert_true(is_zero(a, BYTES));
  memset(a, 7, BYTES);
  assert_true(is_zero(b, BYTES));
  tn_unnamed_file_unmap(a, BYTES);
  tn_unnamed_file_unmap(b, BYTES);
  tn_unnamed_file_unmap(NULL, BYTES);
  assert_non_null(mkdtemp(strcpy(d->folder, "/tmp/tenon-unnamed-XXXXXX")));
}

static void no_bytes_are_no_file(void **state) {
  disk *d = *state;
  void *at = d;
  assert_int_equal(tn_unnamed_file_map(&d->t.env, "/nowhere", 0, &at), TN_OK);
  assert_null(at);
}

static void fails(disk *d, const char *folder, size_t bytes, const char *reason) {
  void *at = d;
  assert_int_equal(tn_unnamed_file_map(&d->t.env, folder, bytes, &at), TN_EIO);
  assert_null(at);
  assert_non_null(strstr(tn_error_text(&d->t.env), folder));
  if (strstr(tn_error_text(&d->t.env), reason) == NULL) fail_msg("%s", tn_error_text(&d->t.env));
}

static void a_folder_that_takes_no_file_is_named(void **state) {
  disk *d = *state;
  fails(d, "/tmp/tenon-is-not-there", BYTES, "No such file or directory");
  fails(d, "/dev/null", BYTES, "Not a directory");
  fails(d, "/proc", BYTES, "cannot be the place of a file of 1048576 bytes");
}

/* More than any disk has. Nothing is written, and no page is missing later. */
static void a_full_disk_is_an_error_at_once(void **state) {
  disk *d = *state;
  fails(d, d->folder, (size_t)1 << 60, "cannot be the place of a file of 1152921504606846976 bytes");
}

/* The signal of the limit would end the process. */
static void the_limit_of_file_sizes_is_an_error(void **state) {
  disk *d = *state;
  struct rlimit before, limit;
  void (*handler)(int) = signal(SIGXFSZ, SIG_DFL);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = (struct rlimit){BYTES / 2, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  fails(d, d->folder, BYTES, "ulimit -f");
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(memory_is_zero_and_the_folder_empty),  TEST(no_bytes_are_no_file),
      TEST(a_folder_that_takes_no_file_is_named), TEST(a_full_disk_is_an_error_at_once),
      TEST(the_limit_of_file_sizes_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
