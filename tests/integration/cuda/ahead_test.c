/* Kernels that were compiled ahead, on the doubles: the double of NVRTC makes the images here, as nvcc does
 * for GPUs. Those that fit are loaded, and NVRTC is not called for them; those that do not fit are compiled.
 */
#include "double.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "backends/cuda/modules/ahead.h"
#include "backends/cuda/modules/device_text.h"
#include "configs.h"
#include "tests/unit/backends/cuda/rig.h"

#define TRAIN                                                                                                \
  "train noise.ini --verbose --set run.epochs=1 --set run.max_steps=2 --set run.output= "                    \
  "--set backend.autotune=no " ON_DOUBLE
#define FILE_80 "images/tenon-cuda.sm_80.images"
#define FILE_90 "images/tenon-cuda.sm_90.images"

/* The images of two files that the training uses. */
enum { IMAGES = 2 };
static const char *const names[IMAGES] = {"cross_entropy.cu", "argmax.cu"};
static tn_cuda_image images[IMAGES];
static tn_cuda_libraries libraries;

static const tn_cuda_text *text_of(const char *name) {
  const tn_cuda_text *t = tn_cuda_texts;
  while (t->path != NULL && strcmp(strrchr(t->path, '/') + 1, name) != 0) t++;
  assert_non_null(t->path);
  return t;
}

static int compile_images(void **state) {
  (void)state;
  char error[TN_CUDA_ERROR_TEXT];
  tn_cuda_compiler compiler;
  tn_env env = cuda_rig_env();
  if (tn_cuda_libraries_open(&env, DOUBLES, &libraries) != TN_OK ||
      tn_cuda_compiler_open(&env, &libraries, 90, &compiler) != TN_OK)
    return fprintf(stderr, "%s\n", cuda_rig_text), -1;
  for (int i = 0; i < IMAGES; i++) {
    const tn_cuda_text *t = text_of(names[i]);
    if (tn_cuda_compile(&compiler, t->path, t->text, &images[i], error) != TN_CUDA_COMPILED)
      return fprintf(stderr, "%s: %s\n", t->path, error), -1;
  }
  return 0;
}

static int free_images(void **state) {
  (void)state;
  unsetenv("FAKECUDA_COUNTS"); /* the double of this process has counts, too */
  for (int i = 0; i < IMAGES; i++) free(images[i].bytes);
  tn_cuda_libraries_close(&libraries);
  return 0;
}

static void write_images(const char *path, int arch, int version, const tn_cuda_image *from) {
  tn_cuda_ahead ahead = {.arch = arch, .nvcc_version = version, .n = IMAGES};
  for (int i = 0; i < IMAGES; i++)
    snprintf(ahead.entries[i].name, sizeof ahead.entries[i].name, "%s", names[i]);
  assert_true(tn_cuda_ahead_write(path, &ahead, from));
}

static int ahead_open(void **state) {
  unsetenv("FAKECUDA_VERSION");
  unsetenv("FAKECUDA_ARCH");
  int code = double_open(state);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  file_write("noise.ini", noise_ini);
  return code != 0 ? code : mkdir("images", 0700);
}

/* Trains without the folder of compiled kernels. */
static int train(void) {
  char cache[1024];
  assert_int_equal(system("rm -rf cache"), 0);
  assert_non_null(getcwd(cache, sizeof cache - 8));
  setenv("XDG_CACHE_HOME", strcat(cache, "/cache"), 1);
  return program_run(TRAIN "--set backend.cuda.images=images");
}

/* Trains and returns the number of texts that NVRTC compiled. */
static int compiled(void) {
  if (train() != 0) fail_msg("%s", program_err);
  double_is_content();
  return double_calls("nvrtcCompileProgram");
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s': %s", text, program_err);
}

static void images_are_used_and_not_compiled(void **state) {
  (void)state;
  int without = compiled();
  assert_true(without > IMAGES);
  assert_null(strstr(program_err, ".images"));
  write_images(FILE_90, 90, 12000, images);
  assert_int_equal(compiled(), without - IMAGES);
  assert_null(strstr(program_err, ".images"));
}

/* A device of 8.9 runs code for 8.0, and one of 9.0 does not. */
static void images_of_a_lower_minor_version_are_used(void **state) {
  (void)state;
  write_images(FILE_80, 80, 12000, images);
  int without = compiled();
  setenv("FAKECUDA_ARCH", "89", 1);
  assert_int_equal(compiled(), without - IMAGES);
  setenv("FAKECUDA_ARCH", "75", 1);
  assert_int_equal(compiled(), without);
}

static void flip_byte(const char *path, off_t at) {
  unsigned char byte;
  int fd = open(path, O_RDWR);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 0x20;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

/* Images of other texts have another key. */
static void stale_images_are_not_used(void **state) {
  (void)state;
  int without = compiled();
  write_images(FILE_90, 90, 12000, images);
  flip_byte(FILE_90, 8);
  assert_int_equal(compiled(), without);
  says("images/tenon-cuda.sm_90.images is of another build than the plugin, so NVRTC compiles its kernels");
  write_images(FILE_90, 80, 12000, images); /* the right texts, for another architecture */
  assert_int_equal(compiled(), without);
  says("is of another build");
}

static void damaged_images_are_compiled(void **state) {
  (void)state;
  struct stat info;
  int without = compiled();
  write_images(FILE_90, 90, 12000, images);
  assert_int_equal(stat(FILE_90, &info), 0);
  flip_byte(FILE_90, info.st_size - 1);
  assert_int_equal(compiled(), without - IMAGES + 1);
  says("the code of backends/cuda/device/argmax.cu in ");
  says("/images/tenon-cuda.sm_90.images is damaged, so NVRTC "
       "compiled it");
  flip_byte(FILE_90, 100); /* in the table */
  assert_int_equal(compiled(), without);
  says("images/tenon-cuda.sm_90.images is damaged, so NVRTC compiles its kernels");
  file_write(FILE_90, "no images");
  assert_int_equal(compiled(), without);
  says("is damaged");
}

/* Valid files whose code this driver does not run. */
static void refused_images_are_compiled(void **state) {
  static char cubin[256] = {0x7f, 'E', 'L', 'F', [18] = (char)190};
  tn_cuda_image wrong[IMAGES] = {{cubin, sizeof cubin}, {cubin, sizeof cubin}};
  (void)state;
  int without = compiled();
  write_images(FILE_90, 90, 12000, wrong);
  assert_int_equal(compiled(), without);
  says("the driver refuses the code in ");
  says("/images/tenon-cuda.sm_90.images (CUDA_ERROR_NO_BINARY_FOR_GPU), so NVRTC compiles it");
}

/* Each load fails once: one of an image that nvcc made is compiled where the driver calls the image invalid,
 * all else ends the run. */
static void failures_of_loading(void **state) {
  int compiled_instead = 0;
  (void)state;
  write_images(FILE_90, 90, 12000, images);
  assert_true(compiled() > 0);
  int loads = double_calls("cuModuleLoadData");
  for (int n = 1; n <= loads; n++) {
    char failure[64];
    snprintf(failure, sizeof failure, "cuModuleLoadData:%d=200", n);
    setenv("FAKECUDA_FAIL", failure, 1);
    if (train() == 0) {
      says("the driver refuses the code in ");
      says("/images/tenon-cuda.sm_90.images (CUDA_ERROR_INVALID_IMAGE)");
      compiled_instead++;
    } else {
      says("cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE");
    }
    snprintf(failure, sizeof failure, "cuModuleLoadData:%d=2", n);
    setenv("FAKECUDA_FAIL", failure, 1);
    assert_int_not_equal(train(), 0);
    says("cuModuleLoadData: CUDA_ERROR_OUT_OF_MEMORY");
  }
  assert_int_equal(compiled_instead, IMAGES);
}

/* A driver does not run code of a newer compiler. */
static void images_of_a_newer_compiler_are_not_tried(void **state) {
  (void)state;
  int without = compiled();
  write_images(FILE_90, 90, 99000, images);
  assert_int_equal(compiled(), without);
  says("is of CUDA 99, which is newer than the driver, so NVRTC compiles its kernels");
}

#ifdef BUILT_90
/* The images of the build are for GPUs, as the double is not. */
static void images_lie_beside_the_plugin(void **state) {
  (void)state;
  assert_int_equal(program_run(TRAIN), 0);
  says("the driver refuses the code in " BUILT_90 " (CUDA_ERROR_NO_BINARY_FOR_GPU), so NVRTC compiles it");
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, ahead_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
#ifdef BUILT_90
      TEST(images_lie_beside_the_plugin),
#endif
      TEST(images_are_used_and_not_compiled),
      TEST(images_of_a_lower_minor_version_are_used),
      TEST(stale_images_are_not_used),
      TEST(damaged_images_are_compiled),
      TEST(refused_images_are_compiled),
      TEST(failures_of_loading),
      TEST(images_of_a_newer_compiler_are_not_tried)};
  return cmocka_run_group_tests(tests, compile_images, free_images);
}
