#include "tests/fakecuda/nvrtc/options.h"

#include <cuda.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind {
  OPTION_FLAG,
  OPTION_BOOL,
  OPTION_NUMBER,
  OPTION_TEXT,
  OPTION_ARCHITECTURE,
  OPTION_STANDARD,
  OPTION_DEFINE,
  OPTION_UNDEFINE,
  OPTION_FOLDER,
  OPTION_INCLUDE
} option_kind;

/* The letter of an option may have its value directly behind it. */
typedef struct option_row {
  const char *name, *brief;
  option_kind kind;
} option_row;

static const option_row option_rows[] = {
    {"--gpu-architecture", "-arch", OPTION_ARCHITECTURE},
    {"--std", "-std", OPTION_STANDARD},
    {"--define-macro", "-D", OPTION_DEFINE},
    {"--undefine-macro", "-U", OPTION_UNDEFINE},
    {"--include-path", "-I", OPTION_FOLDER},
    {"--pre-include", "-include", OPTION_INCLUDE},
    {"--maxrregcount", "-maxrregcount", OPTION_NUMBER},
    {"--split-compile", "-split-compile", OPTION_NUMBER},
    {"--fmad", "-fmad", OPTION_BOOL},
    {"--ftz", "-ftz", OPTION_BOOL},
    {"--prec-sqrt", "-prec-sqrt", OPTION_BOOL},
    {"--prec-div", "-prec-div", OPTION_BOOL},
    {"--relocatable-device-code", "-rdc", OPTION_BOOL},
    {"--modify-stack-limit", "-modify-stack-limit", OPTION_BOOL},
    {"--builtin-move-forward", "-builtin-move-forward", OPTION_BOOL},
    {"--builtin-initializer-list", "-builtin-initializer-list", OPTION_BOOL},
    {"--version-ident", "-dQ", OPTION_BOOL},
    {"--brief-diagnostics", "-brief-diag", OPTION_BOOL},
    {"--device-stack-protector", "-device-stack-protector", OPTION_BOOL},
    {"--use_fast_math", "-use_fast_math", OPTION_FLAG},
    {"--extra-device-vectorization", "-extra-device-vectorization", OPTION_FLAG},
    {"--device-as-default-execution-space", "-default-device", OPTION_FLAG},
    {"--device-int128", "-device-int128", OPTION_FLAG},
    {"--device-float128", "-device-float128", OPTION_FLAG},
    {"--device-debug", "-G", OPTION_FLAG},
    {"--generate-line-info", "-lineinfo", OPTION_FLAG},
    {"--disable-warnings", "-w", OPTION_FLAG},
    {"--restrict", "-restrict", OPTION_FLAG},
    {"--minimal", "-minimal", OPTION_FLAG},
    {"--no-cache", "-no-cache", OPTION_FLAG},
    {"--no-source-include", "-no-source-include", OPTION_FLAG},
    {"--display-error-number", "-err-no", OPTION_FLAG},
    {"--no-display-error-number", "-no-err-no", OPTION_FLAG},
    {"--dopt", "-dopt", OPTION_TEXT},
    {"--ptxas-options", "-Xptxas", OPTION_TEXT},
    {"--diag-error", "-diag-error", OPTION_TEXT},
    {"--diag-suppress", "-diag-suppress", OPTION_TEXT},
    {"--diag-warn", "-diag-warn", OPTION_TEXT},
    {"--time", "-time", OPTION_TEXT},
};

#if CUDA_VERSION >= 13000
static const int option_architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
#elif CUDA_VERSION >= 12080
static const int option_architectures[] = {50, 52, 53, 60, 61, 62,  70,  72, 75,
                                           80, 86, 87, 89, 90, 100, 101, 120};
#else
static const int option_architectures[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
#endif

const int *nvrtc_architectures(int32_t *count) {
  *count = (int32_t)(sizeof option_architectures / sizeof *option_architectures);
  return option_architectures;
}

static bool option_is_letter(const option_row *row) { return row->brief[1] && !row->brief[2]; }

/* The row of an option and its value, or NULL where the value is the next argument. NULL: there is no such
 * option. Both dashes, and one, are accepted before long and short names. */
static const option_row *option_find(const char *given, const char **value) {
  for (size_t i = 0; i < sizeof option_rows / sizeof *option_rows; i++) {
    const option_row *row = &option_rows[i];
    const char *names[] = {row->name, row->name + 1, row->brief};
    for (int n = 0; n < 3; n++) {
      size_t length = strlen(names[n]);
      if (strncmp(given, names[n], length) != 0) continue;
      const char *rest = given + length;
      bool glued = n == 2 && option_is_letter(row) && row->kind >= OPTION_DEFINE && *rest;
      if (*rest && *rest != '=' && !glued) continue;
      *value = *rest == '=' ? rest + 1 : *rest ? rest : NULL;
      return row;
    }
  }
  return NULL;
}

static bool option_read_architecture(const char *value, nvrtc_options *options) {
  bool cubin = strncmp(value, "sm_", 3) == 0;
  if (!cubin && strncmp(value, "compute_", 8) != 0) return false;
  char *end;
  long number = strtol(value + (cubin ? 3 : 8), &end, 10);
  bool known = false;
  for (size_t i = 0; i < sizeof option_architectures / sizeof *option_architectures; i++)
    known |= option_architectures[i] == number;
  if (*end && (end[1] || (*end != 'a' && *end != 'f') || number < 90)) return false;
  options->architecture = (int32_t)number;
  options->suffix = *end;
  options->cubin = cubin;
  return known;
}

static bool option_read_standard(const char *value, nvrtc_options *options) {
  static const char *const known[] = {"c++03", "c++11", "c++14", "c++17", "c++20"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(value, known[i]) == 0) {
      strcpy(options->standard, value);
      return true;
    }
  return false;
}

static bool option_keep(nvrtc_options *options, const char *before, const char *value) {
  char folder[PATH_MAX];
  if (strcmp(before, "-I") == 0 && realpath(value, folder)) value = folder;
  char *text = NULL;
  if (asprintf(&text, "%s%s", before, value) < 0) return false;
  options->preprocessor[options->n_preprocessor++] = text;
  return true;
}

/* NULL, or the reason why the value is refused. */
static const char *option_take(const option_row *row, const char *value, nvrtc_options *options) {
  char *end;
  bool fine = true;
  switch (row->kind) {
  case OPTION_FLAG: return NULL;
  case OPTION_TEXT: return NULL;
  case OPTION_BOOL:
    return strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ? NULL : "expects true or false";
  case OPTION_NUMBER: return *value && (strtol(value, &end, 10), !*end) ? NULL : "expects an integer value";
  case OPTION_ARCHITECTURE: return option_read_architecture(value, options) ? NULL : "";
  case OPTION_STANDARD: return option_read_standard(value, options) ? NULL : "";
  case OPTION_DEFINE: fine = option_keep(options, "-D", value); break;
  case OPTION_UNDEFINE: fine = option_keep(options, "-U", value); break;
  case OPTION_FOLDER: fine = option_keep(options, "-I", value); break;
  case OPTION_INCLUDE: fine = option_keep(options, "-include", "") && option_keep(options, "", value); break;
  }
  return fine ? NULL : "found no memory";
}

bool nvrtc_read_options(int32_t count, const char *const *given, nvrtc_options *options, nvrtc_text *log) {
  *options = (nvrtc_options){.architecture = option_architectures[0], .standard = "c++17"};
  options->preprocessor = calloc((size_t)count * 2 + 1, sizeof *options->preprocessor);
  if (!options->preprocessor || (count && !given)) {
    nvrtc_add(log,
              "nvrtc: error: number of arguments supplied does not match number of arguments specified\n");
    return false;
  }
  for (int32_t i = 0; i < count; i++) {
    if (!given[i]) {
      nvrtc_add(log,
                "nvrtc: error: number of arguments supplied does not match number of arguments specified\n");
      return false;
    }
    const char *value = NULL;
    const option_row *row = option_find(given[i], &value);
    if (!row || (row->kind == OPTION_FLAG && value)) {
      nvrtc_print(log, "nvrtc: error: unrecognized option %s found\n", given[i]);
      return false;
    }
    if (row->kind != OPTION_FLAG && !value) value = i + 1 < count && given[i + 1] ? given[++i] : "";
    const char *why = option_take(row, value, options);
    if (why && *why) nvrtc_print(log, "nvrtc: error: %s (%s) %s\n", row->name, row->brief, why);
    if (why && !*why) nvrtc_print(log, "nvrtc: error: invalid value for %s (%s)\n", row->name, row->brief);
    if (why) return false;
  }
  return true;
}

void nvrtc_free_options(nvrtc_options *options) {
  for (int32_t i = 0; i < options->n_preprocessor; i++) free(options->preprocessor[i]);
  free(options->preprocessor);
  *options = (nvrtc_options){0};
}
