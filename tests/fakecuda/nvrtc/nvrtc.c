/* The entry points of NVRTC, with the checks of arguments that the real one makes. */
#include "tests/fakecuda/nvrtc/build.h"
#include "tests/fakecuda/driver/find.h"
#include "tests/fakecuda/kernels/image.h"

#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct _nvrtcProgram {
  struct _nvrtcProgram *next;
  char *source, *name, **headers, **header_names, **expressions, **lowered;
  int32_t n_headers, n_expressions;
  nvrtc_text image, ptx, log;
  bool compiled, has_cubin;
};

static struct _nvrtcProgram *nvrtc_programs;
static pthread_mutex_t nvrtc_lock = PTHREAD_MUTEX_INITIALIZER;

/* A test asked for this call to fail: its code, or CUDA_ERROR_UNKNOWN where it gave none. The double of the
 * driver counts calls; its own tests use this library, and load the double anew for each test. */
static int call_asked(const char *name) {
  int (*count)(const char *);
  void *found = fakecuda_find_unkept("fakecuda_call");
  if (!found) return 0;
  memcpy(&count, &found, sizeof count);
  return count(name);
}

static bool call_fails(const char *name) { return call_asked(name) != 0; }

static bool program_is_known(nvrtcProgram program) {
  pthread_mutex_lock(&nvrtc_lock);
  const struct _nvrtcProgram *known = nvrtc_programs;
  while (known && known != program) known = known->next;
  pthread_mutex_unlock(&nvrtc_lock);
  return program && known;
}

static void free_words(char **words, int32_t count) {
  for (int32_t i = 0; words && i < count; i++) free(words[i]);
  free(words);
}

static void program_free(struct _nvrtcProgram *program) {
  free(program->source);
  free(program->name);
  free_words(program->headers, program->n_headers);
  free_words(program->header_names, program->n_headers);
  free_words(program->expressions, program->n_expressions);
  free_words(program->lowered, program->n_expressions);
  nvrtc_text_free(&program->image);
  nvrtc_text_free(&program->ptx);
  nvrtc_text_free(&program->log);
  free(program);
}

/* When the library is unloaded: programs whose destruction was made to fail. */
__attribute__((destructor)) static void programs_forget(void) {
  for (struct _nvrtcProgram *program = nvrtc_programs, *next; program; program = next) {
    next = program->next;
    program_free(program);
  }
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  if (call_fails("nvrtcVersion")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
  *major = CUDA_VERSION / 1000;
  *minor = CUDA_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result) {
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION",
                                      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                      "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                      "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                      "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                      "NVRTC_ERROR_INTERNAL_ERROR",
                                      "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"};
  call_fails("nvrtcGetErrorString");
  int code = (int)result;
  return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "NVRTC_ERROR unknown";
}

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  if (call_fails("nvrtcGetNumSupportedArchs")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!count) return NVRTC_ERROR_INVALID_INPUT;
  nvrtc_architectures(count);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *architectures) {
  if (call_fails("nvrtcGetSupportedArchs")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!architectures) return NVRTC_ERROR_INVALID_INPUT;
  int32_t count;
  const int *known = nvrtc_architectures(&count);
  memcpy(architectures, known, sizeof *known * (size_t)count);
  return NVRTC_SUCCESS;
}

static char **copy_words(const char *const *words, int32_t count) {
  char **copy = calloc((size_t)count + 1, sizeof *copy);
  for (int32_t i = 0; copy && i < count; i++)
    if (!(copy[i] = strdup(words[i]))) {
      free_words(copy, count);
      return NULL;
    }
  return copy;
}

static struct _nvrtcProgram *program_make(const char *source, const char *name, int count,
                                          const char *const *headers, const char *const *header_names) {
  struct _nvrtcProgram *program = calloc(1, sizeof *program);
  if (!program) return NULL;
  program->n_headers = count;
  program->source = strdup(source);
  program->name = strdup(name && *name ? name : "default_program");
  program->headers = copy_words(headers, count);
  program->header_names = copy_words(header_names, count);
  if (program->source && program->name && program->headers && program->header_names) return program;
  program_free(program);
  return NULL;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name, int numHeaders,
                                      const char *const *headers, const char *const *includeNames) {
  if (call_fails("nvrtcCreateProgram")) return NVRTC_ERROR_OUT_OF_MEMORY;
  if (!prog) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!src || numHeaders < 0 || (numHeaders && (!headers || !includeNames))) return NVRTC_ERROR_INVALID_INPUT;
  for (int i = 0; i < numHeaders; i++)
    if (!headers[i] || !includeNames[i]) return NVRTC_ERROR_INVALID_INPUT;
  struct _nvrtcProgram *program = program_make(src, name, numHeaders, headers, includeNames);
  if (!program) return NVRTC_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&nvrtc_lock);
  program->next = nvrtc_programs;
  nvrtc_programs = program;
  pthread_mutex_unlock(&nvrtc_lock);
  *prog = program;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *prog) {
  if (call_fails("nvrtcDestroyProgram")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!prog || !program_is_known(*prog)) return NVRTC_ERROR_INVALID_PROGRAM;
  pthread_mutex_lock(&nvrtc_lock);
  struct _nvrtcProgram **link = &nvrtc_programs;
  while (*link != *prog) link = &(*link)->next;
  *link = (*prog)->next;
  pthread_mutex_unlock(&nvrtc_lock);
  program_free(*prog);
  *prog = NULL;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram prog, const char *const name_expression) {
  if (call_fails("nvrtcAddNameExpression")) return NVRTC_ERROR_OUT_OF_MEMORY;
  if (!program_is_known(prog)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!name_expression) return NVRTC_ERROR_INVALID_INPUT;
  if (prog->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  char **grown = realloc(prog->expressions, sizeof *grown * (size_t)(prog->n_expressions + 1));
  if (!grown) return NVRTC_ERROR_OUT_OF_MEMORY;
  prog->expressions = grown;
  if (!(grown[prog->n_expressions] = strdup(name_expression))) return NVRTC_ERROR_OUT_OF_MEMORY;
  prog->n_expressions++;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram prog, const char *const name_expression,
                                       const char **lowered_name) {
  if (call_fails("nvrtcGetLoweredName")) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!program_is_known(prog)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!name_expression || !lowered_name) return NVRTC_ERROR_INVALID_INPUT;
  if (!prog->lowered) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  for (int32_t i = 0; i < prog->n_expressions; i++)
    if (strcmp(prog->expressions[i], name_expression) == 0) {
      *lowered_name = prog->lowered[i];
      return NVRTC_SUCCESS;
    }
  return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* The address that a name expression stands for in a loaded image. */
static const void *lowered_address(const fake_image *image, const char *expression) {
  const void *address = NULL;
  for (int i = 0; i < image->n_kernels; i++)
    if (strcmp(image->kernels[i].written, expression) == 0)
      memcpy(&address, &image->kernels[i].kernel, sizeof address);
  for (int i = 0; i < image->n_names; i++)
    if (strcmp(image->names[i].written, expression) == 0) address = image->names[i].address;
  return address;
}

/* Loads the image to read the symbols of the name expressions. */
static bool program_lower(struct _nvrtcProgram *program) {
  char path[] = "/tmp/fakecuda.XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return false;
  close(file);
  bool fine = nvrtc_write_file(path, program->image.at, program->image.bytes) == 0;
  void *handle = fine ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  const fake_image *image = handle ? dlsym(handle, "fakecuda_image") : NULL;
  program->lowered = image ? calloc((size_t)program->n_expressions + 1, sizeof *program->lowered) : NULL;
  for (int32_t i = 0; program->lowered && i < program->n_expressions; i++) {
    const void *address = lowered_address(image, program->expressions[i]);
    Dl_info info;
    bool named = address && dladdr(address, &info) && info.dli_sname && info.dli_saddr == address;
    program->lowered[i] = strdup(named ? info.dli_sname : program->expressions[i]);
  }
  if (handle) dlclose(handle);
  return program->lowered != NULL;
}

/* Text that cuModuleLoad of the double reads: the image in hexadecimal digits. */
static void program_print_ptx(struct _nvrtcProgram *program, const nvrtc_options *options) {
  static const char digits[] = "0123456789abcdef";
  nvrtc_print(&program->ptx,
              "//\n// Generated by the double of NVRTC (tests/fakecuda): no PTX\n//\n\n.version "
              "%d.%d\n.target sm_%d%.1s\n"
              ".address_size 64\n\n// fakecuda image: ",
              CUDA_VERSION / 1000 - 4, CUDA_VERSION % 1000 / 10, options->architecture, &options->suffix);
  for (size_t i = 0; i < program->image.bytes; i++) {
    unsigned char byte = (unsigned char)program->image.at[i];
    const char pair[2] = {digits[byte >> 4], digits[byte & 15]};
    nvrtc_add_bytes(&program->ptx, pair, 2);
  }
  nvrtc_add(&program->ptx, "\n");
}

static nvrtcResult program_compile(struct _nvrtcProgram *program, const nvrtc_options *options) {
  const nvrtc_source source = {.text = program->source,
                               .name = program->name,
                               .n_headers = program->n_headers,
                               .n_expressions = program->n_expressions,
                               .headers = (const char *const *)program->headers,
                               .header_names = (const char *const *)program->header_names,
                               .expressions = (const char *const *)program->expressions,
                               .options = options};
  nvrtc_built built = nvrtc_build(&source, &program->image, &program->log);
  program->compiled = true;
  if (built == NVRTC_REFUSED) return NVRTC_ERROR_COMPILATION;
  if (built == NVRTC_BROKEN) return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  if (program->image.failed || program->log.failed) return NVRTC_ERROR_OUT_OF_MEMORY;
  program->has_cubin = options->cubin;
  program_print_ptx(program, options);
  if (program->n_expressions && !program_lower(program)) return NVRTC_ERROR_INTERNAL_ERROR;
  return program->ptx.failed ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_SUCCESS;
}

/* A text that does not compile has a log. */
static nvrtcResult program_refuse(struct _nvrtcProgram *program, int asked) {
  if (asked != NVRTC_ERROR_COMPILATION) return NVRTC_ERROR_OUT_OF_MEMORY;
  nvrtc_text_free(&program->log);
  nvrtc_print(&program->log,
              "%s(1): warning: a test watches\n\n%s(2): error: a test asked for this failure\n\n",
              program->name, program->name);
  nvrtc_print(&program->log, "1 error detected in the compilation of \"%s\".\n", program->name);
  return NVRTC_ERROR_COMPILATION;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char *const *options) {
  int asked = call_asked("nvrtcCompileProgram");
  if (!program_is_known(prog)) return NVRTC_ERROR_INVALID_PROGRAM;
  if (asked) return program_refuse(prog, asked);
  if (numOptions < 0) return NVRTC_ERROR_INVALID_INPUT;
  nvrtc_text_free(&prog->image);
  nvrtc_text_free(&prog->ptx);
  nvrtc_text_free(&prog->log);
  free_words(prog->lowered, prog->n_expressions);
  prog->lowered = NULL;
  prog->has_cubin = false;
  nvrtc_options read;
  nvrtcResult result = NVRTC_ERROR_INVALID_OPTION;
  if (nvrtc_read_options(numOptions, options, &read, &prog->log)) result = program_compile(prog, &read);
  nvrtc_free_options(&read);
  return result;
}

/* Sizes and contents of the results; before a compilation they are empty. */
static nvrtcResult give_size(const char *name, nvrtcProgram program, size_t *bytes, const nvrtc_text *text,
                             size_t more) {
  if (call_fails(name)) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!text) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ERROR_INVALID_INPUT;
  bool is_cubin = text == &program->image;
  *bytes = is_cubin && !program->has_cubin ? 0 : text->bytes + more;
  return NVRTC_SUCCESS;
}

static nvrtcResult give_text(const char *name, nvrtcProgram program, char *to, const nvrtc_text *text,
                             size_t more) {
  if (call_fails(name)) return NVRTC_ERROR_INTERNAL_ERROR;
  if (!text) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!to) return NVRTC_ERROR_INVALID_INPUT;
  bool is_cubin = text == &program->image;
  if (text->bytes && (!is_cubin || program->has_cubin)) memcpy(to, text->at, text->bytes);
  if (more) to[text->bytes] = 0;
  return NVRTC_SUCCESS;
}

#define RESULT(FIELD) (program_is_known(prog) ? &prog->FIELD : NULL)

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram prog, size_t *ptxSizeRet) {
  return give_size("nvrtcGetPTXSize", prog, ptxSizeRet, RESULT(ptx), 1);
}
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram prog, char *ptx) {
  return give_text("nvrtcGetPTX", prog, ptx, RESULT(ptx), 1);
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram prog, size_t *cubinSizeRet) {
  return give_size("nvrtcGetCUBINSize", prog, cubinSizeRet, RESULT(image), 0);
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram prog, char *cubin) {
  return give_text("nvrtcGetCUBIN", prog, cubin, RESULT(image), 0);
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram prog, size_t *logSizeRet) {
  return give_size("nvrtcGetProgramLogSize", prog, logSizeRet, RESULT(log), 1);
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram prog, char *log) {
  return give_text("nvrtcGetProgramLog", prog, log, RESULT(log), 1);
}
