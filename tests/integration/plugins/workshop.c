#include "workshop.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char workshop_out[1 << 20], workshop_err[1 << 16];

static char folder[64];

void workshop_open(void) {
  snprintf(folder, sizeof(folder), "/tmp/tenon-test-XXXXXX");
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

void workshop_close(void) {
  assert_int_equal(chdir("/"), 0);
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void workshop_write(const char *name, const char *text) {
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void read_back(const char *name, char *text, size_t size) {
  FILE *file = fopen(name, "r");
  assert_non_null(file);
  size_t n = fread(text, 1, size - 1, file);
  text[n] = '\0';
  fclose(file);
}

static int run(const char *format, va_list args) {
  char line[4096], whole[sizeof(line) + 64];
  vsnprintf(line, sizeof(line), format, args);
  snprintf(whole, sizeof(whole), "{ %s\n} >.stdout 2>.stderr", line);
  int status = system(whole);
  read_back(".stdout", workshop_out, sizeof(workshop_out));
  read_back(".stderr", workshop_err, sizeof(workshop_err));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int workshop_run(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int code = run(format, args);
  va_end(args);
  return code;
}

void workshop_do(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int code = run(format, args);
  va_end(args);
  if (code != 0) fail_msg("'%s' ends with %d: %s", format, code, workshop_err);
}

json_t *workshop_tenon(const char *format, ...) {
  char arguments[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(arguments, sizeof(arguments), format, args);
  va_end(args);
  workshop_do("$TENON %s --json", arguments);
  json_t *result = json_loads(workshop_out, 0, NULL);
  if (result == NULL) fail_msg("'tenon %s --json' prints no JSON: %s", arguments, workshop_out);
  return result;
}

double workshop_number(const json_t *result, const char *path) {
  char key[64];
  for (const char *rest = path;; rest++) {
    size_t n = strcspn(rest, ".");
    snprintf(key, sizeof(key), "%.*s", (int)n, rest);
    result = json_object_get(result, key);
    rest += n;
    if (*rest == '\0') break;
  }
  if (!json_is_number(result)) fail_msg("the result has no number %s", path);
  return json_number_value(result);
}
