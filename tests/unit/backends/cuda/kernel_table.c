/* kernel_table [TABLE ARCH]: compiles all device code with NVRTC for four generations of GPUs and prints a
 * line for each kernel: registers, static shared memory, stack, and bytes spilled. That takes minutes. With a
 * table: compares its lines of one generation. Warnings and spills fail in either case. Exits with 77 where
 * there is no NVRTC, or one of another version than the table's. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver/entry_points.h"
#include "backends/shared/nvidia_search.h"
#include "backends/cuda/modules/device_text.h"
#include "tests/unit/backends/cuda/rig.h"

enum { SKIPPED = 77, MOST_HEADERS = 64, MOST_FLAGS = 16 };

static tn_cuda_nvrtc nvrtc;
static int spilled, warned;

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
  const char *names[MOST_HEADERS], *texts[MOST_HEADERS];
  char option[64];
  const char *options[MOST_FLAGS] = {option, "--ptxas-options=-v"};
  nvrtcProgram program;
  size_t bytes = 0;
  int n = 0, n_options = 2;
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL && n < MOST_HEADERS; t++)
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

/* `only`: 0, or the one architecture to compile for. */
static int print_table(FILE *to, int only) {
  static const int archs[] = {75, 80, 90, 100};
  int major = 0, minor = 0;
  nvrtc.nvrtcVersion(&major, &minor);
  fprintf(to, "# NVRTC %d.%d: registers, bytes of static shared memory, of stack, spilled\n", major, minor);
  for (int i = 0; i < 4; i++)
    for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
      if (strcmp(strrchr(t->path, '.'), ".cu") != 0 || (only != 0 && only != archs[i])) continue;
      char *log = compile(t, archs[i]);
      if (log == NULL) return 0;
      count_warnings(t->path, archs[i], log);
      print_report(to, strrchr(t->path, '/') + 1, archs[i], log);
      free(log);
    }
  return 1;
}

/* NVRTC gives large kernels a few registers more or less from run to run. */
enum { REGISTERS = 8 };

static int same_line(const char *a, const char *b) {
  char name[2][96];
  int numbers[2][4] = {{0}};
  const char *const lines[] = {a, b};
  for (int i = 0; i < 2; i++)
    if (sscanf(lines[i], "%*s %*s %95s %d %d %d %d", name[i], &numbers[i][0], &numbers[i][1], &numbers[i][2],
               &numbers[i][3]) != 5)
      return 0;
  return strcmp(name[0], name[1]) == 0 && abs(numbers[0][0] - numbers[1][0]) <= REGISTERS &&
         memcmp(&numbers[0][1], &numbers[1][1], 3 * sizeof(int)) == 0;
}

/* Compares the lines of an architecture with those of a file. */
static int same_as(const char *path, const char *table, int arch) {
  char line[256], begin[16];
  int number = 1, wrong = 0;
  FILE *file = fopen(path, "r");
  if (file == NULL) return fprintf(stderr, "%s: is missing\n", path), 1;
  if (fgets(line, sizeof line, file) == NULL || strncmp(line, table, strcspn(table, ":")) != 0) {
    printf("skipped: the table is of another version: %s", line);
    fclose(file);
    return SKIPPED;
  }
  snprintf(begin, sizeof begin, "sm_%-4d ", arch);
  const char *at = table + strcspn(table, "\n") + 1;
  while (!wrong && fgets(line, sizeof line, file) != NULL) {
    number++;
    if (strncmp(line, begin, strlen(begin)) != 0) continue;
    wrong = !same_line(line, at);
    at += strcspn(at, "\n") + (*at != '\0');
  }
  fclose(file);
  if (!wrong && *at == '\0') return 0;
  fprintf(stderr, "%s:%d: differs from this code; write it anew: kernel_table > %s\n", path, number, path);
  return 1;
}

int main(int argc, char **argv) {
  char *table = NULL;
  size_t bytes = 0;
  if (!open_nvrtc()) {
    printf("skipped: %s\n", cuda_rig_text);
    return SKIPPED;
  }
  FILE *to = argc > 1 ? open_memstream(&table, &bytes) : stdout;
  int arch = argc > 2 ? atoi(argv[2]) : 0, done = print_table(to, arch);
  if (to != stdout) fclose(to);
  int code = !done ? 1 : argc > 1 ? same_as(argv[1], table, arch) : 0;
  free(table);
  if (spilled > 0) fprintf(stderr, "%d kernels spill registers\n", spilled);
  return spilled > 0 || warned > 0 ? 1 : code;
}
