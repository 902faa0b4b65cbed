/* Whole files, new files, folders, paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "tests/support/test_env.h"

typedef struct place {
  test_env t;
  char folder[64], path[128];
} place;

static int set_up(void **state) {
  place *p = calloc(1, sizeof(*p));
  test_env_start(&p->t);
  strcpy(p->folder, "/tmp/tenon-file-XXXXXX");
  if (mkdtemp(p->folder) == NULL) return 1;
  snprintf(p->path, sizeof(p->path), "%s/data.bin", p->folder);
  *state = p;
  return 0;
}

static int tear_down(void **state) {
  place *p = *state;
  unlink(p->path);
  rmdir(p->folder);
  int64_t live = p->t.live;
  free(p);
  return live != 0;
}

static int count_entries(const char *folder) {
  int n = 0;
  DIR *d = opendir(folder);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n - 2; /* "." and ".." */
}

static void what_is_written_reads_back(void **state) {
  place *p = *state;
  char *bytes;
  size_t count;
  assert_int_equal(tn_file_write_atomic(p, p->path, "a\0b", 3), TN_OK);
  assert_true(tn_file_exists(p->path));
  assert_int_equal(tn_file_read(p, p->path, 3, &bytes, &count), TN_OK);
  assert_int_equal(count, 3);
  assert_memory_equal(bytes, "a\0b", 4);
  tn_release(p, bytes);
  assert_int_equal(count_entries(p->folder), 1);
}

static void an_empty_file_reads_as_an_empty_text(void **state) {
  place *p = *state;
  char *bytes;
  size_t count = 9;
  assert_int_equal(tn_file_write_atomic(p, p->path, NULL, 0), TN_OK);
  assert_int_equal(tn_file_read(p, p->path, 0, &bytes, &count), TN_OK);
  assert_int_equal(count, 0);
  assert_string_equal(bytes, "");
  tn_release(p, bytes);
}

static void a_file_without_a_size_of_its_own_is_read_to_its_end(void **state) {
  place *p = *state;
  char *bytes;
  size_t count;
  assert_int_equal(tn_file_read(p, "/proc/self/status", 1 << 20, &bytes, &count), TN_OK);
  assert_true(count > 0);
  assert_int_equal(strlen(bytes), count);
  tn_release(p, bytes);
}

static void a_file_beyond_the_limit_is_refused(void **state) {
  place *p = *state;
  char *bytes, expected[256];
  size_t count;
  assert_int_equal(tn_file_write_atomic(p, p->path, "12345", 5), TN_OK);
  assert_int_equal(tn_file_read(p, p->path, 4, &bytes, &count), TN_EINVAL);
  snprintf(expected, sizeof(expected), "%s: larger than the 4 bytes that such a file may have", p->path);
  assert_string_equal(tn_error_text(p), expected);
  assert_null(bytes);
}

static void a_missing_file_and_a_folder_are_errors_with_reasons(void **state) {
  place *p = *state;
  char *bytes, expected[256];
  size_t count;
  assert_int_equal(tn_file_read(p, p->path, 4, &bytes, &count), TN_EIO);
  snprintf(expected, sizeof(expected), "%s: cannot be opened: No such file or directory", p->path);
  assert_string_equal(tn_error_text(p), expected);
  assert_int_equal(tn_file_read(p, p->folder, 4, &bytes, &count), TN_EINVAL);
  snprintf(expected, sizeof(expected), "%s: is not a regular file but a folder", p->folder);
  assert_string_equal(tn_error_text(p), expected);
  assert_false(tn_file_exists(p->path));
}

static void cannot_be_read(place *p, const char *kind) {
  char *bytes, expected[256];
  size_t count;
  assert_int_equal(tn_file_read(p, p->path, 4, &bytes, &count), TN_EINVAL);
  snprintf(expected, sizeof(expected), "%s: is not a regular file but a %s", p->path, kind);
  assert_string_equal(tn_error_text(p), expected);
}

static void cannot_be_replaced(place *p, const char *kind) {
  char expected[256];
  struct stat before, after;
  assert_int_equal(lstat(p->path, &before), 0);
  assert_int_equal(tn_file_write_atomic(p, p->path, "new", 3), TN_EINVAL);
  snprintf(expected, sizeof(expected), "%s: is a %s, which a new file cannot replace", p->path, kind);
  assert_ptr_equal(strstr(tn_error_text(p), expected), tn_error_text(p));
  assert_int_equal(lstat(p->path, &after), 0);
  assert_true(before.st_ino == after.st_ino);
  assert_int_equal(count_entries(p->folder), 1);
}

static void make_socket(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  assert_true(strlen(path) < sizeof name.sun_path);
  strcpy(name.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
  close(fd);
}

/* Opening a FIFO without a writer would wait for ever. */
static void other_kinds_of_files_are_neither_read_nor_replaced(void **state) {
  place *p = *state;
  alarm(120); /* ends the hang */
  assert_int_equal(mkfifo(p->path, 0600), 0);
  cannot_be_read(p, "FIFO");
  cannot_be_replaced(p, "FIFO");
  unlink(p->path);
  make_socket(p->path);
  cannot_be_read(p, "socket");
  cannot_be_replaced(p, "socket");
  unlink(p->path);
  assert_int_equal(symlink("/dev/null", p->path), 0);
  cannot_be_read(p, "device");
  cannot_be_replaced(p, "device");
  alarm(0);
}

/* The file that a link points to is not written to. */
static void a_link_is_replaced_itself(void **state) {
  place *p = *state;
  char target[128], *bytes;
  size_t count;
  struct stat info;
  snprintf(target, sizeof target, "%s/target", p->folder);
  assert_int_equal(tn_file_write_atomic(p, target, "theirs", 6), TN_OK);
  assert_int_equal(symlink(target, p->path), 0);
  assert_int_equal(tn_file_write_atomic(p, p->path, "ours", 4), TN_OK);
  assert_int_equal(lstat(p->path, &info), 0);
  assert_true(S_ISREG(info.st_mode));
  assert_int_equal(tn_file_read(p, target, 10, &bytes, &count), TN_OK);
  assert_string_equal(bytes, "theirs");
  tn_release(p, bytes);
  unlink(target);
}

static void an_abandoned_file_leaves_the_old_one_and_nothing_else(void **state) {
  place *p = *state;
  tn_new_file file;
  char *bytes;
  size_t count;
  assert_int_equal(tn_file_write_atomic(p, p->path, "old", 3), TN_OK);
  assert_int_equal(tn_file_begin(p, p->path, &file), TN_OK);
  assert_int_equal(tn_file_append(p, &file, "new", 3), TN_OK);
  assert_int_equal(count_entries(p->folder), 2);
  tn_file_abandon(p, &file);
  tn_file_abandon(p, &file);
  assert_int_equal(count_entries(p->folder), 1);
  assert_int_equal(tn_file_read(p, p->path, 10, &bytes, &count), TN_OK);
  assert_string_equal(bytes, "old");
  tn_release(p, bytes);
}

static void two_writers_of_one_file_do_not_meet(void **state) {
  place *p = *state;
  tn_new_file a, b;
  char *bytes;
  size_t count;
  assert_int_equal(tn_file_begin(p, p->path, &a), TN_OK);
  assert_int_equal(tn_file_begin(p, p->path, &b), TN_OK);
  assert_int_equal(tn_file_append(p, &a, "a", 1), TN_OK);
  assert_int_equal(tn_file_append(p, &b, "b", 1), TN_OK);
  assert_int_equal(tn_file_commit(p, &b), TN_OK);
  assert_int_equal(tn_file_commit(p, &a), TN_OK);
  assert_int_equal(tn_file_read(p, p->path, 10, &bytes, &count), TN_OK);
  assert_string_equal(bytes, "a");
  tn_release(p, bytes);
  assert_int_equal(count_entries(p->folder), 1);
}

static void a_file_in_a_missing_folder_cannot_begin(void **state) {
  place *p = *state;
  tn_new_file file;
  assert_int_equal(tn_file_begin(p, "/tmp/tenon-no-such-folder/x", &file), TN_EIO);
  assert_string_equal(tn_error_text(p),
                      "/tmp/tenon-no-such-folder/x: cannot be created: No such file or directory");
  tn_file_abandon(p, &file);
}

static void folders_are_made_with_their_parents(void **state) {
  place *p = *state;
  char deep[192], expected[256];
  snprintf(deep, sizeof(deep), "%s/a/b/", p->folder);
  assert_int_equal(tn_folder_make(p, deep), TN_OK);
  assert_int_equal(tn_folder_make(p, deep), TN_OK);
  assert_true(tn_file_exists(deep));
  assert_int_equal(tn_folder_sync(p, deep), TN_OK);
  rmdir(deep);
  snprintf(deep, sizeof(deep), "%s/a", p->folder);
  rmdir(deep);
  assert_int_equal(tn_file_write_atomic(p, p->path, "x", 1), TN_OK);
  assert_int_equal(tn_folder_make(p, p->path), TN_EIO);
  snprintf(expected, sizeof(expected), "%s: cannot be made a folder: File exists", p->path);
  assert_string_equal(tn_error_text(p), expected);
  snprintf(deep, sizeof(deep), "%s/sub", p->path);
  assert_int_equal(tn_folder_make(p, deep), TN_EIO);
}

static void a_private_folder_is_writable_by_its_user_alone(void **state) {
  place *p = *state;
  char deep[192];
  struct stat st;
  snprintf(deep, sizeof(deep), "%s/a/b", p->folder);
  assert_int_equal(tn_folder_make_private(p, deep), TN_OK);
  assert_int_equal(tn_folder_make_private(p, deep), TN_OK);
  assert_int_equal(stat(deep, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  assert_int_equal(chmod(deep, 0770), 0);
  assert_int_equal(tn_folder_make_private(p, deep), TN_EIO);
  assert_non_null(strstr(tn_error_text(p), "is not a folder of this user alone"));
  rmdir(deep);
  assert_int_equal(symlink(p->folder, deep), 0);
  assert_int_equal(tn_folder_make_private(p, deep), TN_EIO);
  assert_int_equal(unlink(deep), 0);
  snprintf(deep, sizeof(deep), "%s/a", p->folder);
  rmdir(deep);
  assert_int_equal(tn_file_write_atomic(p, p->path, "x", 1), TN_OK);
  assert_int_equal(tn_folder_make_private(p, p->path), TN_EIO);
}

static void is_joined(void *handle, const char *folder, const char *name, const char *expected) {
  char *path = tn_path_join(handle, folder, name);
  assert_string_equal(path, expected);
  tn_release(handle, path);
}

static void has_folder(void *handle, const char *path, const char *expected) {
  char *folder = tn_path_folder(handle, path);
  assert_string_equal(folder, expected);
  tn_release(handle, folder);
}

static void paths_join_and_part(void **state) {
  is_joined(*state, "a", "b", "a/b");
  is_joined(*state, "a/", "b", "a/b");
  is_joined(*state, "/", "b", "/b");
  is_joined(*state, "a", "/b", "/b");
  is_joined(*state, "", "b", "b");
  has_folder(*state, "a/b", "a");
  has_folder(*state, "a/b/", "a");
  has_folder(*state, "a//b", "a");
  has_folder(*state, "a", ".");
  has_folder(*state, "/a", "/");
  has_folder(*state, "/", "/");
  has_folder(*state, "", ".");
}

static tn_status write_and_read(test_env *t, void *path) {
  char *bytes;
  size_t count;
  TN_TRY(tn_file_write_atomic(t, path, "text", 4));
  TN_TRY(tn_file_read(t, path, 100, &bytes, &count));
  tn_release(t, bytes);
  return TN_OK;
}

static void refused_memory_leaves_no_temporary(void **state) {
  place *p = *state;
  assert_true(test_env_starve(write_and_read, p->path) > 3);
  assert_int_equal(count_entries(p->folder), 1);
}

/* Not "check its permissions": the file is fine. */
static void a_lack_of_descriptors_names_the_limit(void **state) {
  place *p = *state;
  struct rlimit before, few;
  char *bytes;
  size_t n;
  FILE *file = fopen(p->path, "w");
  assert_non_null(file);
  fclose(file);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  few = (struct rlimit){3, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  tn_status status = tn_file_read(&p->t, p->path, 100, &bytes, &n);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_int_equal(status, TN_EIO);
  assert_non_null(strstr(tn_error_text(&p->t), "too many files are open, see `ulimit -n`"));
}

#define with_place(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      with_place(what_is_written_reads_back),
      with_place(an_empty_file_reads_as_an_empty_text),
      with_place(a_file_without_a_size_of_its_own_is_read_to_its_end),
      with_place(a_file_beyond_the_limit_is_refused),
      with_place(a_missing_file_and_a_folder_are_errors_with_reasons),
      with_place(an_abandoned_file_leaves_the_old_one_and_nothing_else),
      with_place(other_kinds_of_files_are_neither_read_nor_replaced),
      with_place(a_link_is_replaced_itself),
      with_place(two_writers_of_one_file_do_not_meet),
      with_place(a_file_in_a_missing_folder_cannot_begin),
      with_place(folders_are_made_with_their_parents),
      with_place(a_private_folder_is_writable_by_its_user_alone),
      with_place(paths_join_and_part),
      with_place(refused_memory_leaves_no_temporary),
      with_place(a_lack_of_descriptors_names_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
