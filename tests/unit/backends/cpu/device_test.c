/* tests/unit/backends/cpu/device_test.c: calls the backend's functions in the order in which a host calls
 * them. */
#include "tests/unit/backends/cpu/rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

enum { MOST_BLOCKS = 16 };

typedef struct host {
  char text[256];
  int32_t left; /* allocations that still succeed */
  int32_t blocks;
} host;

static tn_status host_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  host *h = (host *)(void *)((const tn_env *)handle)->record;
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(h->text, sizeof h->text, format, args);
  va_end(args);
  return code;
}
static void *host_alloc(const void *handle, size_t bytes) {
  host *h = (host *)(void *)((const tn_env *)handle)->record;
  if (h->left-- <= 0) return NULL;
  h->blocks++;
  return calloc(1, bytes);
}
static void host_free(const void *handle, void *block) {
  if (block != NULL) ((host *)(void *)((const tn_env *)handle)->record)->blocks--;
  free(block);
}
static const tn_api table = {
    .struct_size = sizeof table, .fail = host_fail, .alloc = host_alloc, .free = host_free};

static tn_env env_of(host *h) { return (tn_env){&table, (tn_error_record *)(void *)h}; }

static void square_chunk(void *arg, int64_t chunk) { ((int64_t *)arg)[chunk] = chunk * chunk; }

static void a_device_is_opened_used_and_closed(void **state) {
  (void)state;
  const tn_backend *b = &tn_cpu_backend;
  host h = {.left = MOST_BLOCKS};
  tn_env env = env_of(&h);
  tn_cpu_options options = {.threads = 3};
  void *backend, *device;
  tn_device_properties properties;
  assert_int_equal(b->open(&env, &options, &backend), TN_OK);
  assert_int_equal(b->properties(&env, backend, 0, &properties), TN_OK);
  assert_int_equal(properties.threads, 3);
  assert_int_equal(properties.host_addressable, 1);
  assert_int_equal(properties.memory_bytes, 0); /* the host's */
  assert_string_not_equal(properties.name, "");
  assert_int_equal(properties.processors, 3);
  assert_true(properties.bytes_per_s == 3e10 && properties.launch_s > 0);
  assert_true(properties.vector_flops_per_s >= 3 * 8e9);
  assert_true(properties.matrix_flops_per_s[TN_F32] == 2 * properties.matrix_flops_per_s[TN_F64]);
  assert_non_null(strstr(properties.details, "\"vector_bits\": "));
  assert_int_equal(b->device_open(&env, backend, 0, &device), TN_OK);
  int64_t squares[100];
  b->parallel(&env, device, 100, square_chunk, squares);
  for (int64_t i = 0; i < 100; i++) assert_int_equal(squares[i], i * i);
  b->device_close(&env, device);
  b->close(&env, backend);
  assert_int_equal(h.blocks, 0);
}

static void running_out_of_memory_while_opening_leaves_nothing(void **state) {
  (void)state;
  tn_cpu_options options = {.threads = 3};
  int32_t failures = 0;
  for (int32_t left = 0; left < MOST_BLOCKS; left++) {
    host h = {.left = left};
    tn_env env = env_of(&h);
    void *backend = NULL, *device = NULL;
    tn_status status = tn_cpu_backend.open(&env, &options, &backend);
    if (status == TN_OK) status = tn_cpu_backend.device_open(&env, backend, 0, &device);
    failures += status == TN_ENOMEM;
    tn_cpu_backend.device_close(&env, device);
    tn_cpu_backend.close(&env, backend);
    assert_int_equal(h.blocks, 0);
  }
  assert_in_range(failures, 1, MOST_BLOCKS - 1);
}

/* ---- the rate of memory ---- */

static tn_status host_make_folder(const void *handle, const char *path) {
  (void)handle;
  return mkdir(path, 0700) == 0 || errno == EEXIST ? TN_OK : TN_EIO;
}
static void host_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle;
  (void)level;
  (void)format;
}

/* The name of the only file in a folder; false: the folder is empty. */
static bool find_file(const char *folder, char *name, size_t size) {
  bool found = false;
  DIR *files = opendir(folder);
  for (struct dirent *e; files != NULL && (e = readdir(files)) != NULL;)
    if (e->d_name[0] != '.') found = snprintf(name, size, "%s/%s", folder, e->d_name) > 0;
  if (files != NULL) closedir(files);
  return found;
}

/* On a busy machine nothing is kept. */
static bool measure(tn_env *env, const char *cache, const char *file) {
  struct stat info;
  char name[512];
  for (int i = 0; i < 50; i++) {
    tn_cpu_bandwidth(env, cache, "processor", 1);
    if (file != NULL ? lstat(file, &info) == 0 : find_file(cache, name, sizeof name)) return true;
  }
  return false;
}

/* A link of the name under which this process writes: the file that it leads to stays as it is. */
static void a_link_of_the_temporary_name_is_not_followed(void **state) {
  (void)state;
  tn_api full = table;
  host h = {.left = 1000};
  char folder[] = "/tmp/tenon-bandwidth-XXXXXX", cache[64], victim[64], file[512], link[600], text[16] = "";
  struct stat info;
  full.make_folder = host_make_folder;
  full.log = host_log;
  tn_env env = {&full, (tn_error_record *)(void *)&h};
  assert_non_null(mkdtemp(folder));
  snprintf(cache, sizeof cache, "%s/cache", folder);
  snprintf(victim, sizeof victim, "%s/victim", folder);
  if (!measure(&env, cache, NULL)) skip();
  assert_true(find_file(cache, file, sizeof file));
  assert_int_equal(remove(file), 0);
  FILE *f = fopen(victim, "w");
  assert_non_null(f);
  assert_true(fputs("mine", f) >= 0 && fclose(f) == 0);
  static const char *const ends[] = {"", "-0.tmp"};
  for (int i = 0; i < 2; i++) {
    snprintf(link, sizeof link, "%s.%ld%s", file, (long)getpid(), ends[i]);
    assert_int_equal(symlink(victim, link), 0);
  }
  bool kept = measure(&env, cache, file);
  if (kept) assert_int_equal(lstat(file, &info), 0);
  if (kept) assert_true(S_ISREG(info.st_mode));
  f = fopen(victim, "r");
  assert_non_null(f);
  assert_non_null(fgets(text, sizeof text, f));
  fclose(f);
  assert_string_equal(text, "mine");
  if (kept) assert_int_equal(remove(file), 0);
  for (int i = 0; i < 2; i++) {
    snprintf(link, sizeof link, "%s.%ld%s", file, (long)getpid(), ends[i]);
    assert_int_equal(remove(link), 0);
  }
  assert_int_equal(remove(victim), 0);
  assert_int_equal(rmdir(cache), 0);
  assert_int_equal(rmdir(folder), 0);
  if (!kept) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_is_opened_used_and_closed),
      cmocka_unit_test(running_out_of_memory_while_opening_leaves_nothing),
      cmocka_unit_test(a_link_of_the_temporary_name_is_not_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
