#include "core/base/system/host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Weak, since libtenon alone is linked anew for every commit. */
__attribute__((weak)) const char tn_commit_text[] = "";

#if defined(__clang__)
const char tn_compiler_text[] = "clang " __clang_version__;
#else
const char tn_compiler_text[] = "gcc " __VERSION__;
#endif

/* The value of the first line "NAME : VALUE" of a file; false: it has none. */
static bool host_read_line(const char *path, const char *name, char *value, size_t size) {
  size_t n = strlen(name);
  bool found = false;
  char line[8192], *colon;
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  while (!found && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, n) != 0 || (colon = strchr(line, ':')) == NULL) continue;
    colon += 1 + strspn(colon + 1, " \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(value, size, "%s", colon);
    found = true;
  }
  fclose(file);
  return found;
}

void tn_host_processor(char text[TN_HOST_TEXT]) {
  if (!host_read_line(TN_CPUINFO, "model name", text, TN_HOST_TEXT)) *text = '\0';
}

/* Those of x86, and those of ARM. */
static const char host_sets[] =
    "sse4_2 avx f16c fma avx2 avx512f avx512bw avx512vl avx512_vnni avx512_bf16 "
    "avx512_fp16 amx_tile amx_bf16 amx_int8 asimd asimdhp asimddp bf16 i8mm sve sve2";

static bool host_has_word(const char *list, const char *word, size_t n) {
  for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    if (length == n && memcmp(at, word, n) == 0) return true;
    at += length;
  }
  return false;
}

void tn_host_instructions(const char *cpuinfo, char text[TN_HOST_TEXT]) {
  char flags[8192];
  size_t n = 0;
  *text = '\0';
  if (!host_read_line(cpuinfo, "flags", flags, sizeof flags) &&
      !host_read_line(cpuinfo, "Features", flags, sizeof flags))
    return;
  for (const char *set = host_sets; *set != '\0'; set += strspn(set, " ")) {
    int length = (int)strcspn(set, " ");
    if (host_has_word(flags, set, (size_t)length))
      n += (size_t)snprintf(text + n, TN_HOST_TEXT - n, "%s%.*s", n > 0 ? " " : "", length, set);
    set += length;
  }
}

void tn_host_system(char text[TN_HOST_TEXT]) {
  struct utsname names;
  *text = '\0';
  if (uname(&names) == 0)
    snprintf(text, TN_HOST_TEXT, "%.64s %.64s %.64s", names.sysname, names.release, names.machine);
}

void tn_host_name(char text[TN_HOST_TEXT]) {
  memset(text, 0, TN_HOST_TEXT);
  if (gethostname(text, TN_HOST_TEXT - 1) != 0) *text = '\0';
}

void tn_host_time(char text[TN_HOST_TEXT]) {
  time_t now = time(NULL);
  struct tm parts;
  *text = '\0';
  if (gmtime_r(&now, &parts) != NULL) strftime(text, TN_HOST_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
}
