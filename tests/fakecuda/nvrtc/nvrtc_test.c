/* The entry points of the double of NVRTC: their arguments, options, names, errors, cache. */
#include "tests/fakecuda/kernels/rig.h"

#include <nvrtc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const char small[] = "extern \"C\" __global__ void one(float *a) { *a = 1.0f; }\n";

/* Exported as by the double of the driver, with the name of the call that a test wants to fail. */
static const char *failing;
__attribute__((visibility("default"))) int fakecuda_call(const char *name);
int fakecuda_call(const char *name) { return failing && strcmp(failing, name) == 0; }

static nvrtcProgram create(const char *source) {
  nvrtcProgram program = NULL;
  assert_int_equal(nvrtcCreateProgram(&program, source, "a.cu", 0, NULL, NULL), NVRTC_SUCCESS);
  assert_non_null(program);
  return program;
}

static nvrtcResult compile(nvrtcProgram program, const char *option) {
  return nvrtcCompileProgram(program, option != NULL, &option);
}

static char *read_log(nvrtcProgram program) {
  static char log[1 << 16];
  size_t bytes = 0;
  assert_int_equal(nvrtcGetProgramLogSize(program, &bytes), NVRTC_SUCCESS);
  assert_in_range(bytes, 1, sizeof log);
  assert_int_equal(nvrtcGetProgramLog(program, log), NVRTC_SUCCESS);
  assert_int_equal(strlen(log) + 1, bytes);
  return log;
}

static void destroy(nvrtcProgram program) {
  assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  assert_null(program);
}

static void versions(void **state) {
  (void)state;
  int major = 0, minor = -1, count = 0, known[64] = {0};
  assert_int_equal(nvrtcVersion(&major, &minor), NVRTC_SUCCESS);
  assert_in_range(major, 12, 20);
  assert_int_equal(nvrtcVersion(NULL, &minor), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcGetNumSupportedArchs(NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcGetSupportedArchs(NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcGetNumSupportedArchs(&count), NVRTC_SUCCESS);
  assert_in_range(count, 7, 64);
  assert_int_equal(nvrtcGetSupportedArchs(known), NVRTC_SUCCESS);
  for (int i = 1; i < count; i++) assert_true(known[i - 1] < known[i]);
  assert_string_equal(nvrtcGetErrorString(NVRTC_ERROR_COMPILATION), "NVRTC_ERROR_COMPILATION");
  assert_string_equal(nvrtcGetErrorString((nvrtcResult)999), "NVRTC_ERROR unknown");
}

static void arguments(void **state) {
  (void)state;
  nvrtcProgram program = NULL;
  const char *name = NULL;
  size_t bytes = 0;
  assert_int_equal(nvrtcCreateProgram(NULL, small, NULL, 0, NULL, NULL), NVRTC_ERROR_INVALID_PROGRAM);
  assert_int_equal(nvrtcCreateProgram(&program, NULL, NULL, 0, NULL, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcCreateProgram(&program, small, NULL, -1, NULL, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcCreateProgram(&program, small, NULL, 1, NULL, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcDestroyProgram(NULL), NVRTC_ERROR_INVALID_PROGRAM);
  assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_ERROR_INVALID_PROGRAM);
  assert_int_equal(nvrtcCompileProgram(NULL, 0, NULL), NVRTC_ERROR_INVALID_PROGRAM);
  assert_int_equal(nvrtcGetCUBINSize(NULL, &bytes), NVRTC_ERROR_INVALID_PROGRAM);
  program = create(small);
  nvrtcProgram gone = program;
  assert_int_equal(nvrtcCompileProgram(program, -1, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcCompileProgram(program, 1, NULL), NVRTC_ERROR_INVALID_OPTION);
  assert_int_equal(nvrtcAddNameExpression(program, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcAddNameExpression(program, "one"), NVRTC_SUCCESS);
  assert_int_equal(nvrtcGetLoweredName(program, "one", &name),
                   NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
  assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  assert_int_equal(bytes, 0);
  assert_int_equal(nvrtcGetPTXSize(program, &bytes), NVRTC_SUCCESS);
  assert_int_equal(bytes, 1);
  assert_int_equal(compile(program, "-arch=sm_80"), NVRTC_SUCCESS);
  assert_int_equal(nvrtcGetLoweredName(program, "one", &name), NVRTC_SUCCESS);
  assert_string_equal(name, "one");
  assert_int_equal(nvrtcGetLoweredName(program, "two", &name), NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
  assert_int_equal(nvrtcGetLoweredName(program, "one", NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcAddNameExpression(program, "two"), NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
  assert_int_equal(nvrtcGetCUBIN(program, NULL), NVRTC_ERROR_INVALID_INPUT);
  assert_int_equal(nvrtcGetCUBINSize(program, NULL), NVRTC_ERROR_INVALID_INPUT);
  destroy(program);
  assert_int_equal(nvrtcCompileProgram(gone, 0, NULL), NVRTC_ERROR_INVALID_PROGRAM);
}

static void options(void **state) {
  (void)state;
  static const char *const fine[] = {"--gpu-architecture=sm_90",
                                     "-arch=compute_80",
                                     "-arch=sm_90a",
                                     "-DX=1",
                                     "-I/tmp",
                                     "--fmad=false",
                                     "--std=c++17",
                                     "-default-device",
                                     "--use_fast_math",
                                     "-lineinfo",
                                     "--device-int128",
                                     "--maxrregcount=64",
                                     "-w",
                                     "--ftz=true",
                                     "--restrict"};
  static const char *const bad[] = {"--nonsense",
                                    "--gpu-architecture=sm_80x",
                                    "--gpu-architecture=sm_10",
                                    "-arch",
                                    "-fmad=maybe",
                                    "--std=c++23",
                                    "-maxrregcount=x",
                                    "-O3",
                                    "",
                                    "x",
                                    "-w=1"};
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    nvrtcProgram program = create(small);
    if (compile(program, fine[i]) != NVRTC_SUCCESS) fail_msg("%s: %s", fine[i], read_log(program));
    destroy(program);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    nvrtcProgram program = create(small);
    assert_int_equal(compile(program, bad[i]), NVRTC_ERROR_INVALID_OPTION);
    assert_non_null(strstr(read_log(program), "nvrtc: error: "));
    destroy(program);
  }
}

static void options_in_two_words(void **state) {
  (void)state;
  const char *words[] = {"--gpu-architecture", "sm_80", "-D", "VALUE=3.0f", "-D", "GONE", "-U", "GONE"};
  nvrtcProgram program =
      create("#ifndef GONE\nextern \"C\" __global__ void one(float *a) { *a = VALUE; }\n#endif\n");
  assert_int_equal(nvrtcCompileProgram(program, 8, words), NVRTC_SUCCESS);
  size_t bytes = 0;
  assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  assert_true(bytes > 0);
  destroy(program);
}

/* sm_ gives a cubin and PTX, compute_ and no option PTX alone; both can be loaded. */
static void results(void **state) {
  (void)state;
  for (int real = 0; real < 3; real++) {
    nvrtcProgram program = create(small);
    size_t bytes = 1, ptx_bytes = 0;
    assert_int_equal(compile(program, real == 0   ? "-arch=sm_80"
                                      : real == 1 ? "-arch=compute_80"
                                                  : NULL),
                     NVRTC_SUCCESS);
    assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
    assert_int_equal(bytes > 0, real == 0);
    assert_int_equal(nvrtcGetPTXSize(program, &ptx_bytes), NVRTC_SUCCESS);
    char *ptx = malloc(ptx_bytes);
    assert_non_null(ptx);
    assert_int_equal(nvrtcGetPTX(program, ptx), NVRTC_SUCCESS);
    fake_module *module = fake_module_load(ptx, rig_why);
    if (!module) fail_msg("%s", rig_why);
    float a = 0;
    assert_int_equal(RIG_LAUNCH(module, "one", rig_line(1, 1, 0, 1), RIG_POINTER(&a)), 0);
    assert_float_equal(a, 1, 0);
    fake_module_unload(module);
    free(ptx);
    destroy(program);
  }
}

static void errors_of_sources(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"\n\nextern \"C\" __global__ void f(float *a) { *a = missing; }\n", "a.cu:3:"},
      {"#include \"absent.h\"\n", "absent.h"},
      {"#include <stdint.h>\n", "stdint.h"},
      {"__global__ int f(float *a) { return 1; }\n", "must have a void return type"},
      {"__global__ void f(uint32_t *a) {}\n", "uint32_t"},
      {"#if defined(__linux__) || defined(__x86_64__) || defined(__GNUC__) || defined(__CUDA_ARCH__)\n#else\n"
       "#error as it should be\n#endif\n",
       "a.cu:3:"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    nvrtcProgram program = create(wrong[i][0]);
    size_t bytes = 1;
    assert_int_equal(compile(program, "-arch=sm_80"), NVRTC_ERROR_COMPILATION);
    const char *log = read_log(program);
    if (!strstr(log, wrong[i][1]) || !strstr(log, "error")) fail_msg("%s\nexpected %s", log, wrong[i][1]);
    assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
    assert_int_equal(bytes, 0);
    destroy(program);
  }
}

static void headers_by_name(void **state) {
  (void)state;
  const char *headers[] = {"#define VALUE 2.0f\n#include \"deep/b.h\"\n", "\nwrong here;\n"};
  const char *names[] = {"deep/a.h", "deep/b.h"}, *option = "-arch=sm_75";
  nvrtcProgram program;
  const char source[] = "#include \"deep/a.h\"\nextern \"C\" __global__ void one(float *a) { *a = VALUE; }\n";
  assert_int_equal(nvrtcCreateProgram(&program, source, "sub/\"a\".cu", 2, headers, names), NVRTC_SUCCESS);
  assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_ERROR_COMPILATION);
  assert_non_null(strstr(read_log(program), "deep/b.h:2:"));
  assert_null(strstr(read_log(program), "fakecuda"));
  destroy(program);
  headers[1] = "";
  assert_int_equal(nvrtcCreateProgram(&program, source, "sub/\"a\".cu", 2, headers, names), NVRTC_SUCCESS);
  assert_int_equal(nvrtcCompileProgram(program, 1, &option), NVRTC_SUCCESS);
  destroy(program);
}

static void lowered_names(void **state) {
  (void)state;
  char *source = rig_read_source("templates.cu");
  nvrtcProgram program = create(source);
  static const char *const names[][2] = {{"sum_of<float, 64>", "_Z6sum_ofIfLi64EEvPT_PKS0_"},
                                         {"outer::inner::twice", "_ZN5outer5inner5twiceEPi"},
                                         {"&table", "table"}};
  for (int i = 0; i < 3; i++) assert_int_equal(nvrtcAddNameExpression(program, names[i][0]), NVRTC_SUCCESS);
  if (compile(program, "-arch=sm_80") != NVRTC_SUCCESS) fail_msg("%s", read_log(program));
  for (int i = 0; i < 3; i++) {
    const char *lowered = NULL;
    assert_int_equal(nvrtcGetLoweredName(program, names[i][0], &lowered), NVRTC_SUCCESS);
    assert_string_equal(lowered, names[i][1]);
  }
  size_t bytes = 0;
  nvrtcGetCUBINSize(program, &bytes);
  char *image = malloc(bytes);
  assert_non_null(image);
  assert_int_equal(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
  fake_module *module = fake_module_load(image, rig_why);
  assert_non_null(module);
  float from[64], sum = 0;
  for (int i = 0; i < 64; i++) from[i] = (float)i;
  assert_int_equal(
      RIG_LAUNCH(module, names[0][1], rig_line(1, 64, 0, 2), RIG_POINTER(&sum), RIG_POINTER(from)), 0);
  assert_float_equal(sum, 2016 + 64, 0);
  assert_int_equal(fake_function_max_threads(fake_module_function(module, names[0][1])), 128);
  assert_int_equal(fake_function_max_threads(fake_module_function(module, names[1][1])), 64);
  fake_module_unload(module);
  free(image);
  free(source);
  destroy(program);
}

static void kernels_of_every_form(void **state) {
  (void)state;
  fake_module *module = rig_compile_file("templates.cu");
  int32_t ints[32] = {0};
  float floats[32] = {0};
  double from[32], sum = 0;
  for (int i = 0; i < 32; i++) from[i] = i;
  assert_int_equal(RIG_LAUNCH(module, "fill_int", rig_line(1, 32, 0, 1), RIG_POINTER(ints)), 0);
  assert_int_equal(RIG_LAUNCH(module, "fill_float", rig_line(1, 32, 0, 1), RIG_POINTER(floats)), 0);
  assert_int_equal(ints[31], 7);
  assert_float_equal(floats[31], 0.5, 0);
  assert_int_equal(RIG_LAUNCH(module, "look_up", rig_line(1, 32, 0, 1), RIG_POINTER(floats)), 0);
  assert_float_equal(floats[30], 3, 0);
  assert_int_equal(RIG_LAUNCH(module, "_ZN5outer5inner5twiceEPi", rig_line(1, 32, 0, 1), RIG_POINTER(ints)),
                   0);
  assert_int_equal(ints[9], 18);
  assert_int_equal(RIG_LAUNCH(module, "declared", rig_line(1, 1, 0, 1), RIG_POINTER(ints)), 0);
  assert_int_equal(ints[0], 11);
  fake_launch launch = rig_line(1, 32, 0, 1);
  const uint64_t parameters[] = {RIG_POINTER(&sum), RIG_POINTER(from)};
  assert_int_equal(rig_launch(module, "_Z6sum_ofIdLi32EEvPT_PKS0_", launch, parameters, 2), 0);
  assert_float_equal(sum, 496 + 32, 0);
  assert_null(fake_module_function(module, "sum_of"));
  assert_null(fake_module_function(module, "_Z6sum_ofIfLi64EEvPT_PKS0_"));
  assert_int_equal(fake_function_parameters(fake_module_function(module, "nothing")), 0);
  assert_int_equal(fake_function_run(fake_module_function(module, "nothing"), &launch, NULL, rig_why), 0);
  fake_module_unload(module);
}

/* c at 0, d at 8, s at 16, the pair at 24, n at 40, b at 44, f at 48, to at 64. */
static void parameters_of_every_alignment(void **state) {
  (void)state;
  fake_module *module = rig_compile_file("templates.cu");
  const fake_function *mixed = fake_module_function(module, "mixed");
  static const size_t offsets[] = {0, 8, 16, 24, 40, 44, 48, 64};
  assert_int_equal(fake_function_parameters(mixed), 8);
  for (int i = 0; i < 8; i++) assert_int_equal(fake_function_parameter_offset(mixed, i), offsets[i]);
  assert_int_equal(fake_function_buffer_bytes(mixed), 72);
  struct {
    char c;
    double d;
    short s;
    struct {
      char first;
      double second;
    } p;
    int n;
    char b;
    _Alignas(16) float f[4];
    double *to;
  } buffer = {1, 2.5, 3, {4, 5.5}, 6, 1, {7, 8, 9, 10}, NULL};
  double to = 0;
  buffer.to = &to;
  char odd[sizeof buffer + 1];
  memcpy(odd + 1, &buffer, sizeof buffer);
  fake_launch launch = rig_line(1, 1, 0, 1);
  assert_int_equal(fake_function_run(mixed, &launch, odd + 1, rig_why), 0);
  assert_float_equal(to, 57, 0);
  fake_module_unload(module);
}

static void calls_made_to_fail(void **state) {
  (void)state;
  nvrtcProgram program = create(small), other = NULL;
  size_t bytes;
  failing = "nvrtcCreateProgram";
  assert_int_equal(nvrtcCreateProgram(&other, small, NULL, 0, NULL, NULL), NVRTC_ERROR_OUT_OF_MEMORY);
  failing = "nvrtcCompileProgram";
  assert_int_not_equal(compile(program, NULL), NVRTC_SUCCESS);
  failing = "nvrtcGetCUBINSize";
  assert_int_not_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  failing = NULL;
  assert_int_equal(compile(program, NULL), NVRTC_SUCCESS);
  destroy(program);
}

static void *compile_many(void *arg) {
  char source[256];
  for (int i = 0; i < 3; i++) {
    snprintf(source, sizeof source, "extern \"C\" __global__ void one(float *a) { *a = %d.0f; }\n",
             *(int *)arg * 2 + i);
    nvrtcProgram program = NULL;
    const char *option = "-arch=sm_80";
    if (nvrtcCreateProgram(&program, source, "a.cu", 0, NULL, NULL) != NVRTC_SUCCESS) return NULL;
    if (nvrtcCompileProgram(program, 1, &option) != NVRTC_SUCCESS) return NULL;
    size_t bytes = 0;
    nvrtcGetCUBINSize(program, &bytes);
    char *image = malloc(bytes);
    if (!image || nvrtcGetCUBIN(program, image) != NVRTC_SUCCESS) return NULL;
    char why[FAKE_TEXT];
    fake_module *module = fake_module_load(image, why);
    free(image);
    if (!module) return NULL;
    float a = 0, *pointer = &a;
    fake_launch launch = rig_line(1, 1, 0, 1);
    if (fake_function_run(fake_module_function(module, "one"), &launch, &pointer, why) != 0) return NULL;
    if (a != (float)(*(int *)arg * 2 + i)) return NULL;
    fake_module_unload(module);
    nvrtcDestroyProgram(&program);
  }
  return arg;
}

/* Two of three sources are compiled by two threads. */
static void threads(void **state) {
  (void)state;
  pthread_t running[4];
  int numbers[4] = {0, 1, 2, 3};
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&running[i], NULL, compile_many, &numbers[i]), 0);
  for (int i = 0; i < 4; i++) {
    void *result = NULL;
    pthread_join(running[i], &result);
    assert_ptr_equal(result, &numbers[i]);
  }
}

static const char kept[] = "extern \"C\" __global__ void kept(float *a) { *a = 1.0f; }\n";

/* Another process of this program compiles `kept`. */
static int compile_kept(void) {
  nvrtcProgram program = NULL;
  const char *option = "-arch=sm_80";
  if (nvrtcCreateProgram(&program, kept, "a.cu", 0, NULL, NULL) != NVRTC_SUCCESS) return 1;
  nvrtcResult result = nvrtcCompileProgram(program, 1, &option);
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE &&
      !strstr(read_log(program), "cannot run the compiler"))
    return 3;
  nvrtcDestroyProgram(&program);
  return result == NVRTC_SUCCESS ? 0 : 2;
}

static int run_kept(const char *folder, const char *compiler, const char *before) {
  char command[512], self[256] = {0};
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command, "%s FAKECUDA_CACHE='%s' FAKECUDA_CXX='%s' '%s' kept 2>/dev/null", before,
           folder, compiler, self);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An image that a process has compiled is found by another without a compiler. A file with wrong content
 * counts as absent. */
static void images_are_kept(void **state) {
  (void)state;
  char folder[] = "/tmp/fakecuda_cache.XXXXXX", command[256];
  assert_non_null(mkdtemp(folder));
  assert_int_equal(run_kept(folder, "/nowhere/g++", ""), 2);
  assert_int_equal(run_kept(folder, "", ""), 0);
  assert_int_equal(run_kept(folder, "/nowhere/g++", ""), 2);
  assert_int_equal(run_kept(folder, "env -u NONE g++", ""), 0);
  assert_int_equal(run_kept(folder, "env -u NONE g++", "PATH=/nowhere"), 0);
  snprintf(command, sizeof command,
           "for f in %s/*.image; do printf x | dd of=$f bs=1 seek=5000 conv=notrunc 2>/dev/null; done",
           folder);
  assert_int_equal(system(command), 0);
  assert_int_equal(run_kept(folder, "env -u NONE g++", "PATH=/nowhere"), 2);
  assert_int_equal(run_kept(folder, "env -u NONE g++", ""), 0);
  assert_int_equal(run_kept(folder, "env -u NONE g++", "PATH=/nowhere"), 0);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "kept") == 0) return compile_kept();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(versions),
      cmocka_unit_test(arguments),
      cmocka_unit_test(options),
      cmocka_unit_test(options_in_two_words),
      cmocka_unit_test(results),
      cmocka_unit_test(errors_of_sources),
      cmocka_unit_test(headers_by_name),
      cmocka_unit_test(lowered_names),
      cmocka_unit_test(kernels_of_every_form),
      cmocka_unit_test(parameters_of_every_alignment),
      cmocka_unit_test(calls_made_to_fail),
      cmocka_unit_test(threads),
      cmocka_unit_test(images_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
