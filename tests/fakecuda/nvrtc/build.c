#include "tests/fakecuda/nvrtc/build.h"
#include "tests/fakecuda/nvrtc/cache.h"
#include "tests/fakecuda/nvrtc/compiler.h"
#include "tests/fakecuda/nvrtc/scan.h"

#include <cuda.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Headers of a program lie in this folder of the build, which messages do not name. */
static const char build_headers[] = "fakecuda_headers_/";
enum { BUILD_PATH = PATH_MAX / 2 };

/* The macros of NVRTC that its sources read. */
static const char build_macros[] =
    "#define __CUDACC__ 1\n"
    "#define __CUDACC_RTC__ 1\n"
    "#define __FAKECUDA__ 1\n"
    "#define NULL 0\n"
    "#define assert(e) ((e) ? (void)0 : fakecuda_assert(\"assert(\" #e \")\"))\n";

static int build_read(const char *folder, const char *name, nvrtc_text *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return nvrtc_read_file(path, text);
}

static int build_write(const char *folder, const char *name, const nvrtc_text *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return text->failed ? -1 : nvrtc_write_file(path, text->at, text->bytes);
}

/* Headers lie under their names, below a folder. */
static int build_write_header(const char *folder, const char *name, const char *content) {
  char path[PATH_MAX];
  size_t root = (size_t)snprintf(path, sizeof path, "%s/%s", folder, build_headers);
  if (*name == '/' || strstr(name, "..") || root + strlen(name) >= sizeof path) {
    errno = EINVAL;
    return -1;
  }
  strcpy(path + root, name);
  for (char *cut = strchr(path + root - 1, '/'); cut; cut = strchr(cut + 1, '/')) {
    *cut = 0;
    int code = mkdir(path, 0700);
    *cut = '/';
    if (code != 0 && errno != EEXIST) return -1;
  }
  return nvrtc_write_file(path, content, strlen(content));
}

static void build_put_line_name(nvrtc_text *text, const char *name) {
  nvrtc_add(text, "# 1 \"");
  for (; *name; name++) {
    if (*name == '"' || *name == '\\') nvrtc_add(text, "\\");
    if (*name != '\n') nvrtc_add_bytes(text, name, 1);
  }
  nvrtc_add(text, "\"\n");
}

static int build_put_source(const nvrtc_source *source, const char *folder) {
  nvrtc_text text = {0};
  nvrtc_add(&text, build_macros);
  nvrtc_print(&text,
              "#define __CUDACC_VER_MAJOR__ %d\n#define __CUDACC_VER_MINOR__ %d\n#define CUDART_VERSION %d\n",
              CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, CUDA_VERSION);
  build_put_line_name(&text, source->name);
  nvrtc_add(&text, source->text);
  nvrtc_add(&text, "\n");
  int code = build_write(folder, "source.cu", &text);
  nvrtc_text_free(&text);
  for (int32_t i = 0; code == 0 && i < source->n_headers; i++)
    code = build_write_header(folder, source->header_names[i], source->headers[i]);
  return code;
}

static nvrtc_built build_broken(nvrtc_text *log, const char *what) {
  nvrtc_print(log, "the double of NVRTC cannot %s: %s\n", what, strerror(errno));
  return NVRTC_BROKEN;
}

static nvrtc_built build_log(const char *folder, const char *what, int status, nvrtc_text *log) {
  if (status < 0) return build_broken(log, "run the compiler (FAKECUDA_CXX, or g++)");
  if (build_read(folder, what, log) != 0) return build_broken(log, "read the messages of the compiler");
  if (log->at) nvrtc_remove(log, build_headers);
  return status ? NVRTC_REFUSED : NVRTC_BUILT;
}

static nvrtc_built build_preprocess(const nvrtc_source *source, const char *folder, const char *standard,
                                    nvrtc_text *text, nvrtc_text *log) {
  if (build_put_source(source, folder) != 0) return build_broken(log, "write the source and its headers");
  nvrtc_args args;
  if (!nvrtc_args_begin(&args, "c++", standard)) return build_broken(log, "begin");
  nvrtc_args_add(&args, "-E");
  nvrtc_args_add(&args, "-Ifakecuda_headers_");
  for (int32_t i = 0; i < source->options->n_preprocessor; i++)
    nvrtc_args_add(&args, source->options->preprocessor[i]);
  nvrtc_args_add(&args, "-");
  int status = nvrtc_run(folder, &args, "source.cu", "source.ii", "messages");
  nvrtc_args_end(&args);
  nvrtc_built built = build_log(folder, "messages", status, log);
  if (built == NVRTC_BUILT && build_read(folder, "source.ii", text) != 0)
    return build_broken(log, "read the source");
  if (text->at) nvrtc_remove(text, build_headers);
  return built;
}

static nvrtc_built build_compile(const nvrtc_source *source, const char *folder, const char *standard,
                                 const nvrtc_text *preprocessed, nvrtc_text *log) {
  nvrtc_text text = {0};
  char header[PATH_MAX];
  bool prepared = nvrtc_prepared_header(standard, header, sizeof header);
  if (!prepared) {
    nvrtc_add(&text, "# 1 \"host_cuda.h\" 3\n");
    nvrtc_add(&text, nvrtc_host_text);
  }
  nvrtc_scan(preprocessed->at ? preprocessed->at : "", source->expressions, source->n_expressions, &text);
  int code = build_write(folder, "host.cc", &text);
  nvrtc_text_free(&text);
  nvrtc_args args;
  if (code != 0 || !nvrtc_args_begin(&args, "c++", standard))
    return build_broken(log, "write the source for the host");
  nvrtc_args_add_code(&args);
  if (prepared) {
    nvrtc_args_add(&args, "-include");
    nvrtc_args_add(&args, header);
  }
  static const char *const words[] = {"-pipe",          "-shared",     "-nostdlib", "-o",  "image.so", "-",
                                      "-Wl,-Bsymbolic", "-Wl,-z,defs", "-lm",       "-lc", "-lgcc"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) nvrtc_args_add(&args, words[i]);
  int status = nvrtc_run(folder, &args, "host.cc", "output", "messages");
  nvrtc_args_end(&args);
  return build_log(folder, "messages", status, log);
}

static int build_remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info, (void)kind, (void)walk;
  remove(path);
  return 0;
}

static nvrtc_built build_in_folder(const nvrtc_source *source, const char *folder, nvrtc_text *image,
                                   nvrtc_text *log) {
  char standard[32];
  /* entries need C++17 */
  snprintf(standard, sizeof standard, "-std=%s",
           strcmp(source->options->standard, "c++20") == 0 ? "gnu++20" : "gnu++17");
  nvrtc_text preprocessed = {0};
  nvrtc_built built = build_preprocess(source, folder, standard, &preprocessed, log);
  if (built == NVRTC_BUILT) built = build_compile(source, folder, standard, &preprocessed, log);
  nvrtc_text_free(&preprocessed);
  if (built == NVRTC_BUILT && build_read(folder, "image.so", image) != 0)
    return build_broken(log, "read the image");
  return built;
}

/* Files of other folders may change: then the cache is left out. */
static bool build_is_closed(const nvrtc_options *options) {
  for (int32_t i = 0; i < options->n_preprocessor; i++)
    if (strncmp(options->preprocessor[i], "-I", 2) == 0 || strcmp(options->preprocessor[i], "-include") == 0)
      return false;
  return true;
}

nvrtc_built nvrtc_build(const nvrtc_source *source, nvrtc_text *image, nvrtc_text *log) {
  nvrtc_key key = nvrtc_cache_key(source);
  bool kept = build_is_closed(source->options);
  if (kept && nvrtc_cache_find(key, image, log)) return NVRTC_BUILT;
  char folder[BUILD_PATH];
  const char *root = getenv("TMPDIR");
  int n = snprintf(folder, sizeof folder, "%s/fakecuda.XXXXXX", root && *root ? root : "/tmp");
  if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder)) return build_broken(log, "make a folder");
  nvrtc_built built = build_in_folder(source, folder, image, log);
  nftw(folder, build_remove_one, 8, FTW_DEPTH | FTW_PHYS);
  if (kept && built == NVRTC_BUILT && !image->failed && !log->failed) nvrtc_cache_keep(key, image, log);
  return built;
}
