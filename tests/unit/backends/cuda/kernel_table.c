/* kernel_table TABLE: compiles the device code that has changed since TABLE was written with NVRTC for four
 * generations of GPUs, and writes TABLE anew: a line for each file with the hash of what it is compiled from,
 * and below it a line for each kernel: registers, static shared memory, stack, and bytes spilled. All files
 * take minutes. Warnings and spills fail, and TABLE stays as it was. --check: compiles nothing, and fails
 * where TABLE is of other device code. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver/entry_points.h"
#include "backends/cuda/modules/device_text.h"
#include "backends/shared/nvidia_search.h"
#include "tests/unit/backends/cuda/rig.h"

enum { MOST_TEXTS = 256, MOST_FLAGS = 16, TITLE = 128 };

static tn_cuda_nvrtc nvrtc;
static int spilled, warned;

/* ---- the hash of a file and of all that it includes ---- */

typedef struct closure {
  uint64_t hash; /* FNV-1a */
  const tn_cuda_text *seen[MOST_TEXTS];
  int n;
} closure;

static void closure_hash(closure *c, const char *text) {
  do c->hash = (c->hash ^ (unsigned char)*text) * 0x100000001b3u;
  while (*text++ != '\0');
}

static bool closure_has(const closure *c, const tn_cuda_text *text) {
  for (int i = 0; i < c->n; i++)
    if (c->seen[i] == text) return true;
  return false;
}

/* The file that the line `at` includes; NULL: none of the device code. */
static const tn_cuda_text *included(const char *at) {
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
    size_t n = strlen(t->path);
    if (strncmp(at, t->path, n) == 0 && at[n] == '"') return t;
  }
  return NULL;
}

static void closure_add(closure *c, const tn_cuda_text *text) {
  static const char word[] = "#include \"";
  if (text == NULL || closure_has(c, text) || c->n == MOST_TEXTS) return;
  c->seen[c->n++] = text;
  closure_hash(c, text->path);
  closure_hash(c, text->text);
  for (const char *at = strstr(text->text, word); at != NULL; at = strstr(at, word))
    closure_add(c, included(at += sizeof word - 1));
}

static uint64_t hash_of(const tn_cuda_text *text) {
  closure c = {.hash = 0xcbf29ce484222325u};
  for (const char *const *flag = tn_cuda_flags; *flag != NULL; flag++) closure_hash(&c, *flag);
  closure_add(&c, text);
  return c.hash;
}

/* ---- compiling ---- */

static int open_nvrtc(void) {
  static const tn_nvidia_wanted wanted = {"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, "install CUDA"};
  char path[TN_NVIDIA_PATH];
  void *handle;
  tn_env env = cuda_rig_env();
  if (tn_nvidia_find_library(&env, "", &wanted, &handle, path) != TN_OK) return 0;
#define FIND(function, symbol) nvrtc.function = dlsym(handle, symbol);
  TN_CUDA_NVRTC_POINTS(FIND)
  return 1;
}

/* The compiler's log with the assembler's report; the caller frees it. */
static char *compile(const tn_cuda_text *source, int arch) {
  const char *names[MOST_TEXTS], *texts[MOST_TEXTS];
  char option[64];
  const char *options[MOST_FLAGS] = {option, "--ptxas-options=-v"};
  nvrtcProgram program;
  size_t bytes = 0;
  int n = 0, n_options = 2;
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL && n < MOST_TEXTS; t++)
    if (strcmp(strrchr(t->path, '.'), ".cu") != 0) names[n] = t->path, texts[n++] = t->text;
  for (const char *const *flag = tn_cuda_flags; *flag != NULL; flag++) options[n_options++] = *flag;
  snprintf(option, sizeof option, "--gpu-architecture=sm_%d", arch);
  if (nvrtc.nvrtcCreateProgram(&program, source->text, source->path, n, texts, names) != NVRTC_SUCCESS)
    return NULL;
  nvrtcResult result = nvrtc.nvrtcCompileProgram(program, n_options, options);
  nvrtc.nvrtcGetProgramLogSize(program, &bytes);
  char *log = calloc(1, bytes + 1);
  if (log != NULL) nvrtc.nvrtcGetProgramLog(program, log);
  nvrtc.nvrtcDestroyProgram(&program);
  if (result == NVRTC_SUCCESS) return log;
  fprintf(stderr, "%s for sm_%d: %s\n", source->path, arch, log);
  free(log);
  return NULL;
}

static int number_before(const char *text, const char *unit) {
  const char *at = strstr(text, unit);
  if (at == NULL) return 0;
  while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

/* One kernel's part of the report: from its name to the next. */
static void print_kernel(FILE *to, const char *file, int arch, const char *name, int length, char *report) {
  int spills = number_before(report, " bytes spill stores") + number_before(report, " bytes spill loads");
  fprintf(to, "sm_%-4d %-24s %-40.*s %4d %6d %6d %6d\n", arch, file, length, name,
          number_before(report, " registers"), number_before(report, " bytes smem"),
          number_before(report, " bytes stack frame"), spills);
  spilled += spills > 0;
}

/* Lines that are not the assembler's report are warnings. */
static void count_warnings(const char *file, int arch, const char *log) {
  for (const char *line = log; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
    int length = (int)strcspn(line, "\n");
    if (length == 0 || strncmp(line, "ptxas ", 6) == 0 || strncmp(line, "    ", 4) == 0) continue;
    fprintf(stderr, "%s for sm_%d: ", file, arch);
    fwrite(line, 1, (size_t)length, stderr);
    fputc('\n', stderr);
    warned++;
  }
}

static void print_report(FILE *to, const char *file, int arch, char *log) {
  static const char begin[] = "Compiling entry function '";
  for (char *at = strstr(log, begin), *next; at != NULL; at = next) {
    const char *name = at + strlen(begin);
    next = strstr(name, begin);
    char kept = next ? *next : '\0';
    if (next) *next = '\0';
    print_kernel(to, file, arch, name, (int)strcspn(name, "'"), at + strlen(begin));
    if (next) *next = kept;
  }
}

/* False: the file cannot be compiled. */
static bool print_file(FILE *to, const tn_cuda_text *text) {
  static const int archs[] = {75, 80, 90, 100};
  for (int i = 0; i < 4; i++) {
    char *log = compile(text, archs[i]);
    if (log == NULL) return false;
    count_warnings(text->path, archs[i], log);
    print_report(to, strrchr(text->path, '/') + 1, archs[i], log);
    free(log);
  }
  return true;
}

/* ---- the table ---- */

static const char table_columns[] = ": registers, bytes of static shared memory, of stack, spilled\n";

static bool is_compiled(const tn_cuda_text *text) { return strcmp(strrchr(text->path, '.'), ".cu") == 0; }

static void title_of(const tn_cuda_text *text, char title[TITLE]) {
  snprintf(title, TITLE, "\n# %s %016" PRIx64 "\n", strrchr(text->path, '/') + 1, hash_of(text));
}

/* The lines below the file's title in a table of this code, and how many bytes they have; NULL: the
 * table has no such title. */
static const char *lines_of(const char *table, const tn_cuda_text *text, size_t *n) {
  char title[TITLE];
  title_of(text, title);
  const char *at = strstr(table, title);
  if (at == NULL) return NULL;
  at += strlen(title);
  const char *next = strstr(at, "\n#");
  *n = next != NULL ? (size_t)(next + 1 - at) : strlen(at);
  return at;
}

static char *table_read(const char *path) {
  char *table = NULL;
  size_t room = 0;
  FILE *file = fopen(path, "r");
  ssize_t n = file != NULL ? getdelim(&table, &room, '\0', file) : -1;
  if (file != NULL) fclose(file);
  return n > 0 ? table : (free(table), strdup(""));
}

static bool table_print(FILE *to, const char *old) {
  int major = 0, minor = 0;
  char version[64], title[TITLE];
  nvrtc.nvrtcVersion(&major, &minor);
  snprintf(version, sizeof version, "# NVRTC %d.%d", major, minor);
  fprintf(to, "%s%s", version, table_columns);
  bool same = strncmp(old, version, strlen(version)) == 0 && old[strlen(version)] == ':';
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
    if (!is_compiled(t)) continue;
    size_t n = 0;
    const char *known = same ? lines_of(old, t, &n) : NULL;
    title_of(t, title);
    fputs(title + 1, to);
    if (known != NULL)
      fwrite(known, 1, n, to);
    else if (!print_file(to, t))
      return false;
  }
  return true;
}

static int table_write(const char *path, const char *old) {
  char begun[1024];
  if (!open_nvrtc()) return fprintf(stderr, "%s\n", cuda_rig_text), 1;
  snprintf(begun, sizeof begun, "%s.new", path);
  FILE *to = fopen(begun, "w");
  if (to == NULL) return perror(begun), 1;
  bool whole = table_print(to, old);
  whole = fclose(to) == 0 && whole && spilled == 0 && warned == 0;
  if (spilled > 0) fprintf(stderr, "%d kernels spill registers; see %s\n", spilled, begun);
  return whole && rename(begun, path) == 0 ? 0 : 1;
}

static int table_check(const char *path, const char *table) {
  int files = 0, titles = -1, wrong = 0;
  size_t n;
  for (const char *at = table; at != NULL; at = strstr(at + 1, "\n#")) titles++;
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
    if (!is_compiled(t)) continue;
    files++;
    if (lines_of(table, t, &n) != NULL) continue;
    fprintf(stderr, "%s: %s, or a file that it includes, has changed\n", path, t->path);
    wrong++;
  }
  if (wrong == 0 && titles == files) return 0;
  fprintf(stderr, "%s: has %d files, the device code %d; write it anew: kernel_table %s\n", path, titles,
          files, path);
  return 1;
}

int main(int argc, char **argv) {
  bool check = argc > 2 && strcmp(argv[1], "--check") == 0;
  if (argc != 2 + check || argv[argc - 1][0] == '-')
    return fprintf(stderr, "usage: kernel_table [--check] TABLE\n"), 64;
  char *table = table_read(argv[argc - 1]);
  int code = check ? table_check(argv[argc - 1], table) : table_write(argv[argc - 1], table);
  free(table);
  return code;
}
