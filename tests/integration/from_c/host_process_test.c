/* tests/integration/from_c/host_process_test.c: what an application's process has of the library's work:
 * programs that it starts meanwhile inherit no descriptor, and its limit of file sizes is an error, not its
 * end. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tenon/run.h"
#include "tenon/session.h"

static const char digits[] = "[run]\nname = digits\nepochs = 2\nthreads = 2\nobservers = csv\n"
                             "[backend]\nuse = cpu\n"
                             "[data]\nsource = idx\nfolder = %s\nbatch = 8\nworkers = 2\n"
                             "transforms = to_float\n[data.valid]\nbatch = 10\n"
                             "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                             "    conv: conv2d(6, kernel=5, stride=2)\n          relu\n          flatten\n"
                             "    fc:   linear(10)\nloss = cross_entropy\n[optimizer]\nlr = 0.05\n";

static char folder[64];
static const char *program;

static tn_status open_run(tn_context *context, tn_run **run) {
  char path[128];
  snprintf(path, sizeof path, "%s/digits.ini", folder);
  const tn_run_options options = {.struct_size = sizeof options, .output = folder};
  return tn_run_open(context, path, &options, run);
}

/* Its exit code. */
static int run_in_child(void (*body)(void)) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) body();
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* ---- descriptors ---- */

enum { BETWEEN = 60 /* allocations */ };

static int n_inherited, n_open;

/* In a program that was started: the descriptors that it has. */
static int count_descriptors(void) {
  int n = 0;
  for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

/* The largest number of descriptors that a program would inherit now. */
static void look_at_descriptors(void) {
  int n = 0;
  for (int fd = 0; fd < 64; fd++) {
    int flags = fcntl(fd, F_GETFD);
    n += flags >= 0 && (flags & FD_CLOEXEC) == 0;
  }
  if (n > __atomic_load_n(&n_open, __ATOMIC_RELAXED)) __atomic_store_n(&n_open, n, __ATOMIC_RELAXED);
}

static int descriptors_of_a_child(void) {
  extern char **environ;
  char *const arguments[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--descriptors", NULL};
  pid_t child;
  int status = 0;
  if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0) return -1;
  while (waitpid(child, &status, 0) < 0) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Called wherever the library allocates, also by its threads and while its files are open. */
static void *allocate_and_start_a_program(void *user, void *block, size_t bytes) {
  static int calls;
  (void)user;
  if (bytes == 0) {
    free(block);
    return NULL;
  }
  look_at_descriptors();
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % BETWEEN == 0) {
    int n = descriptors_of_a_child();
    if (n > __atomic_load_n(&n_inherited, __ATOMIC_RELAXED))
      __atomic_store_n(&n_inherited, n, __ATOMIC_RELAXED);
  }
  return realloc(block, bytes);
}

static void programs_inherit_no_descriptor(void **state) {
  (void)state;
  const tn_context_options options = {.struct_size = sizeof options, .realloc = allocate_and_start_a_program};
  look_at_descriptors();
  int before = descriptors_of_a_child(), open_before = n_open;
  tn_context *context = NULL;
  tn_run *run = NULL;
  tn_session *session = NULL;
  char *json = NULL;
  assert_in_range(before, 3, 100);
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  assert_int_equal(open_run(context, &run), TN_OK);
  if (tn_run_train(run, &json) != TN_OK) fail_msg("%s", tn_error_text(run));
  tn_string_free(run, json);
  assert_int_equal(tn_session_open(run, NULL, &session), TN_OK);
  tn_session_close(session);
  tn_run_close(run);
  tn_context_close(context);
  assert_int_equal(n_inherited, before);
  assert_int_equal(n_open, open_before);
}

/* ---- standard streams ---- */

static int n_standard;

/* The standard streams that are a file to write to. */
static void *allocate_and_look_at_streams(void *user, void *block, size_t bytes) {
  (void)user;
  for (int fd = 0; fd <= 2; fd++) {
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) __atomic_store_n(&n_standard, 1, __ATOMIC_RELAXED);
  }
  if (bytes > 0) return realloc(block, bytes);
  free(block);
  return NULL;
}

static _Noreturn void train_without_streams(void) {
  const tn_context_options options = {.struct_size = sizeof options, .realloc = allocate_and_look_at_streams};
  tn_context *context = NULL;
  tn_run *run = NULL;
  char *json = NULL;
  for (int fd = 0; fd <= 2; fd++) close(fd);
  if (tn_context_open(&options, &context) != TN_OK || open_run(context, &run) != TN_OK ||
      tn_run_train(run, &json) != TN_OK)
    _exit(2);
  tn_string_free(run, json);
  tn_run_close(run);
  _exit(n_standard != 0 ? 3 : 0);
}

/* As of a daemon. A file of number 1 or 2 would take the text that is printed. */
static void no_file_takes_the_place_of_a_standard_stream(void **state) {
  (void)state;
  assert_int_equal(run_in_child(train_without_streams), 0);
}

/* ---- the limit of file sizes ---- */

static _Noreturn void train_with_small_files(void) {
  const struct rlimit limit = {2048, 2048};
  tn_context *context = NULL;
  tn_run *run = NULL;
  char *json = NULL;
  signal(SIGXFSZ, SIG_DFL);
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || tn_context_open(NULL, &context) != TN_OK ||
      open_run(context, &run) != TN_OK)
    _exit(2);
  tn_status status = tn_run_train(run, &json);
  _exit(status == TN_EIO && strstr(tn_error_text(run), "ulimit -f") != NULL ? 0 : 3);
}

/* The default of SIGXFSZ ends the process. */
static void a_limit_of_file_sizes_is_an_error(void **state) {
  (void)state;
  assert_int_equal(run_in_child(train_with_small_files), 0);
}

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

/* An array of bytes: one dimension of `n`, and two of 28 where it has pictures. */
static int write_idx(const char *name, int rank, int n) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "we");
  if (file == NULL) return -1;
  const unsigned char head[] = {0, 0, 8, (unsigned char)rank, 0, 0, 0, (unsigned char)n, 0, 0, 0, 28, 0,
                                0, 0, 28};
  fwrite(head, 1, 4 + 4 * (size_t)rank, file);
  for (int i = 0; i < (rank == 3 ? 28 * 28 * n : n); i++) fputc(i % 10, file);
  return fclose(file);
}

static int make_folder(void **state) {
  char path[128];
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tenon-process-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  if (write_idx("train-images-idx3-ubyte", 3, 48) != 0 || write_idx("train-labels-idx1-ubyte", 1, 48) != 0 ||
      write_idx("t10k-images-idx3-ubyte", 3, 20) != 0 || write_idx("t10k-labels-idx1-ubyte", 1, 20) != 0)
    return -1;
  snprintf(path, sizeof path, "%s/digits.ini", folder);
  FILE *file = fopen(path, "we");
  return file == NULL || fprintf(file, digits, folder) < 0 || fclose(file) != 0 ? -1 : 0;
}

static int remove_folder(void **state) {
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--descriptors") == 0) return count_descriptors();
  program = argv[0];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_inherit_no_descriptor),
      cmocka_unit_test(no_file_takes_the_place_of_a_standard_stream),
      cmocka_unit_test(a_limit_of_file_sizes_is_an_error),
  };
  return cmocka_run_group_tests_name("host process", tests, make_folder, remove_folder);
}
