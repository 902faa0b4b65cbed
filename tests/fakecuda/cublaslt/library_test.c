/* tests/fakecuda/cublaslt/library_test.c: handles, descriptors, counts and failures of the double; and that
 * NVIDIA's library, where it is installed, has the same entry points, sizes, attributes and defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/fakecuda/cublaslt/rig.h"

enum { LAST_ATTRIBUTE = 40, VALUE_BYTES = 16 };

static const char *const entry_names[] = {
#define NAME(name) #name,
    RIG_ENTRIES(NAME)
#undef NAME
};
enum { ENTRIES = sizeof entry_names / sizeof *entry_names };

/* Every entry point once, in an order that works; a failure of one is reported by its status. Objects that
 * were not made are left out. Returns the first status that is not success. */
typedef struct walk {
  const rig_library *lt;
  cublasStatus_t first;
  cublasLtMatmulDescOpaque_t desc_room;
  cublasLtMatrixLayoutOpaque_t layout_room;
  cublasLtMatmulPreferenceOpaque_t preference_room;
} walk;

static void note(walk *w, cublasStatus_t status) {
  if (w->first == CUBLAS_STATUS_SUCCESS) w->first = status;
}

static void walk_names(walk *w) {
  if (w->lt->cublasLtGetVersion() == 0 || w->lt->cublasLtGetCudartVersion() == 0)
    note(w, CUBLAS_STATUS_INTERNAL_ERROR);
  assert_string_equal(w->lt->cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED),
                      "CUBLAS_STATUS_NOT_SUPPORTED");
  assert_true(strlen(w->lt->cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)) > 0);
}

static void walk_attributes(walk *w, rig_product *p) {
  const rig_library *lt = w->lt;
  int32_t value = 0;
  size_t written = 0;
  note(w, lt->cublasLtMatmulDescInit_internal(&w->desc_room, sizeof w->desc_room, p->compute, p->scale));
  note(w, lt->cublasLtMatrixLayoutInit_internal(&w->layout_room, sizeof w->layout_room, CUDA_R_32F, 4, 4, 4));
  note(w, lt->cublasLtMatmulPreferenceInit_internal(&w->preference_room, sizeof w->preference_room));
  note(w, lt->cublasLtMatmulDescGetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &value, 4, &written));
  note(w, lt->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &value, 4));
  note(w,
       lt->cublasLtMatrixLayoutGetAttribute(p->layout[0], CUBLASLT_MATRIX_LAYOUT_ORDER, &value, 4, &written));
  note(w, lt->cublasLtMatrixLayoutSetAttribute(p->layout[0], CUBLASLT_MATRIX_LAYOUT_ORDER, &value, 4));
  value = 128;
  note(w, lt->cublasLtMatmulPreferenceSetAttribute(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                   &value, 4));
  note(w, lt->cublasLtMatmulPreferenceGetAttribute(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                   &value, 4, &written));
}

static void walk_product(walk *w, cublasLtHandle_t handle, rig_product *p) {
  const rig_library *lt = w->lt;
  cublasLtMatmulHeuristicResult_t result, again = {0};
  int count = 0;
  int32_t id = 0;
  size_t written = 0;
  note(w, lt->cublasLtMatmulAlgoGetHeuristic(handle, p->desc, p->layout[0], p->layout[1], p->layout[2],
                                             p->layout[3], p->preference, 1, &result, &count));
  if (count == 0) return;
  note(w, lt->cublasLtMatmulAlgoCheck(handle, p->desc, p->layout[0], p->layout[1], p->layout[2], p->layout[3],
                                      &result.algo, &again));
  note(w, lt->cublasLtMatmulAlgoConfigGetAttribute(&result.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id,
                                                   &written));
  note(w, lt->cublasLtMatmul(handle, p->desc, p->alpha, p->pointer[0], p->layout[0], p->pointer[1],
                             p->layout[1], p->beta, p->pointer[2], p->layout[2], p->pointer[3], p->layout[3],
                             &result.algo, p->workspace, p->workspace_bytes, NULL));
}

static void walk_objects(walk *w, cublasLtHandle_t handle, rig_product *p) {
  const rig_library *lt = w->lt;
  note(w, lt->cublasLtMatmulDescCreate(&p->desc, p->compute, p->scale));
  note(w, lt->cublasLtMatmulPreferenceCreate(&p->preference));
  for (int i = 0; i < 4; i++) {
    const rig_matrix *matrix = &p->matrix[i];
    note(w, lt->cublasLtMatrixLayoutCreate(&p->layout[i], matrix->type, (uint64_t)matrix->rows,
                                           (uint64_t)matrix->columns, matrix->ld));
  }
  if (w->first == CUBLAS_STATUS_SUCCESS) walk_attributes(w, p);
  if (w->first == CUBLAS_STATUS_SUCCESS) walk_product(w, handle, p);
  for (int i = 0; i < 4; i++) {
    if (p->layout[i]) note(w, lt->cublasLtMatrixLayoutDestroy(p->layout[i]));
  }
  if (p->preference) note(w, lt->cublasLtMatmulPreferenceDestroy(p->preference));
  if (p->desc) note(w, lt->cublasLtMatmulDescDestroy(p->desc));
}

static cublasStatus_t walk_entries(const char *failing) {
  walk w = {.lt = rig_double()};
  rig_product p = rig_plain(8, 8, 8);
  rig_reset();
  rig_fill(&p, 1);
  if (failing) rig_fail(failing);
  cublasLtHandle_t handle = NULL;
  note(&w, w.lt->cublasLtCreate(&handle));
  walk_names(&w);
  walk_objects(&w, handle, &p);
  if (handle) note(&w, w.lt->cublasLtDestroy(handle));
  return w.first;
}

static void counts_calls(void **state) {
  (void)state;
  assert_int_equal(walk_entries(NULL), CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < ENTRIES; i++) {
    bool of_layouts = strcmp(entry_names[i], "cublasLtMatrixLayoutCreate") == 0 ||
                      strcmp(entry_names[i], "cublasLtMatrixLayoutDestroy") == 0;
    if (rig_calls(entry_names[i]) != (of_layouts ? 4 : 1)) {
      fail_msg("%s: %d calls", entry_names[i], rig_calls(entry_names[i]));
    }
  }
}

/* Each entry point fails with the same status, and nothing is left behind; names of statuses cannot fail. */
static void fails_on_request(void **state) {
  (void)state;
  int64_t live = rig_double()->fakecublaslt_live();
  for (int i = 0; i < ENTRIES; i++) {
    bool cannot = strncmp(entry_names[i], "cublasLtGetStatus", 17) == 0;
    cublasStatus_t status = walk_entries(entry_names[i]);
    if (status != (cannot ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR)) {
      fail_msg("%s: status %d", entry_names[i], status);
    }
    assert_int_equal(rig_double()->fakecublaslt_live(), live);
  }
}

static void refuses_what_is_no_object(void **state) {
  (void)state;
  const rig_library *lt = rig_double();
  cublasLtMatmulDescOpaque_t zero = {0};
  cublasLtMatrixLayoutOpaque_t layout;
  int32_t value = 0;
  size_t written;
  assert_int_equal(lt->cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(lt->cublasLtDestroy(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
  assert_int_equal(lt->cublasLtMatmul(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                      NULL, NULL, 0, NULL),
                   CUBLAS_STATUS_NOT_INITIALIZED);
  assert_int_equal(lt->cublasLtMatmulDescCreate(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(lt->cublasLtMatmulDescSetAttribute(&zero, CUBLASLT_MATMUL_DESC_TRANSA, &value, 4),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(lt->cublasLtMatrixLayoutInit_internal(&layout, sizeof layout - 1, CUDA_R_32F, 1, 1, 1),
                   CUBLAS_STATUS_ALLOC_FAILED);
  assert_int_equal(lt->cublasLtMatrixLayoutInit_internal(&layout, sizeof layout, CUDA_R_32F, 1, 1, 1),
                   CUBLAS_STATUS_SUCCESS);
  assert_int_equal(lt->cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_LD, &value, 4),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(lt->cublasLtMatrixLayoutSetAttribute(&layout, 99, &value, 4), CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(lt->cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_LD, NULL, 0, NULL),
                   CUBLAS_STATUS_INVALID_VALUE);
  assert_int_equal(
      lt->cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_LD, NULL, 0, &written),
      CUBLAS_STATUS_SUCCESS);
  assert_int_equal(written, 8);
}

/* ---- NVIDIA's library
 * -------------------------------------------------------------------------------------- */

/* Opens it from one of the folders of CUDA_ROOTS, "a:b:c". False: it is in none of them. */
static bool open_real(rig_library *real) {
  static const char *const folders[] = {"lib64", "lib", "lib/x86_64-linux-gnu"};
  for (const char *root = CUDA_ROOTS; *root; root += strcspn(root, ":"), root += *root == ':') {
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
      char path[512];
      snprintf(path, sizeof path, "%.*s/%s/%s", (int)strcspn(root, ":"), root, folders[i], CUBLASLT_NAME);
      if (access(path, R_OK) != 0) continue;
      const char *missing = rig_open(path, real);
      if (missing) fail_msg("%s: %s", path, missing);
      return true;
    }
  }
  print_message("NVIDIA's %s is in none of %s\n", CUBLASLT_NAME, CUDA_ROOTS);
  return false;
}

/* The attributes of the three kinds of descriptors, asked of one library. */
typedef struct asked {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t layout;
  cublasLtMatmulPreferenceOpaque_t preference;
} asked;

static void init_asked(const rig_library *lt, asked *objects) {
  assert_int_equal(lt->cublasLtMatmulDescInit_internal(&objects->desc, sizeof objects->desc,
                                                       CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   CUBLAS_STATUS_SUCCESS);
  assert_int_equal(
      lt->cublasLtMatrixLayoutInit_internal(&objects->layout, sizeof objects->layout, CUDA_R_16F, 4, 5, 6),
      CUBLAS_STATUS_SUCCESS);
  assert_int_equal(
      lt->cublasLtMatmulPreferenceInit_internal(&objects->preference, sizeof objects->preference),
      CUBLAS_STATUS_SUCCESS);
}

static cublasStatus_t ask(const rig_library *lt, asked *objects, int kind, int attribute, void *value,
                          size_t bytes, size_t *written) {
  if (kind == 0) return lt->cublasLtMatmulDescGetAttribute(&objects->desc, attribute, value, bytes, written);
  if (kind == 1)
    return lt->cublasLtMatrixLayoutGetAttribute(&objects->layout, attribute, value, bytes, written);
  return lt->cublasLtMatmulPreferenceGetAttribute(&objects->preference, attribute, value, bytes, written);
}

/* 1: both know the attribute, with the same size and default. Versions of the library differ in the newest.
 */
static int compare_attribute(const rig_library *real, asked *of_real, asked *of_double, int kind,
                             int attribute) {
  const rig_library *lt = rig_double();
  char real_value[VALUE_BYTES] = {0}, value[VALUE_BYTES] = {0};
  size_t real_bytes = 0, bytes = 0;
  if (ask(real, of_real, kind, attribute, NULL, 0, &real_bytes)) return 0;
  if (ask(lt, of_double, kind, attribute, NULL, 0, &bytes)) return 0;
  if (bytes != real_bytes) {
    fail_msg("kind %d, attribute %d: %zu bytes, expected %zu", kind, attribute, bytes, real_bytes);
  }
  assert_true(bytes <= VALUE_BYTES);
  assert_int_equal(ask(real, of_real, kind, attribute, real_value, bytes, &real_bytes),
                   CUBLAS_STATUS_SUCCESS);
  assert_int_equal(ask(lt, of_double, kind, attribute, value, bytes, &bytes), CUBLAS_STATUS_SUCCESS);
  if (memcmp(value, real_value, bytes) != 0)
    fail_msg("kind %d, attribute %d: another default", kind, attribute);
  return 1;
}

static void has_the_attributes_of_the_real_library(void **state) {
  (void)state;
  static const int least[] = {25, 8, 9}; /* the attributes of the oldest header */
  rig_library real;
  if (!open_real(&real)) skip();
  asked of_real, of_double;
  init_asked(&real, &of_real);
  init_asked(rig_double(), &of_double);
  for (int kind = 0; kind < 3; kind++) {
    int same = 0;
    for (int attribute = 0; attribute < LAST_ATTRIBUTE; attribute++) {
      same += compare_attribute(&real, &of_real, &of_double, kind, attribute);
    }
    assert_true(same >= least[kind]);
  }
}

/* The sizes that the inline functions of the header pass on; the versions and names. */
static void has_the_sizes_and_names_of_the_real_library(void **state) {
  (void)state;
  rig_library real;
  if (!open_real(&real)) skip();
  const rig_library *both[] = {&real, rig_double()};
  for (int i = 0; i < 2; i++) {
    asked room;
    init_asked(both[i], &room);
    assert_int_equal(
        both[i]->cublasLtMatrixLayoutInit_internal(&room.layout, sizeof room.layout - 8, CUDA_R_32F, 1, 1, 1),
        CUBLAS_STATUS_ALLOC_FAILED);
    assert_int_equal(
        both[i]->cublasLtMatmulPreferenceInit_internal(&room.preference, sizeof room.preference - 8),
        CUBLAS_STATUS_ALLOC_FAILED);
  }
  for (int status = -1; status < 20; status++) {
    assert_string_equal(real.cublasLtGetStatusName(status), rig_double()->cublasLtGetStatusName(status));
  }
  assert_int_equal(real.cublasLtGetVersion() / 10000, rig_double()->cublasLtGetVersion() / 10000);
  assert_int_equal(real.cublasLtGetCudartVersion() / 1000, rig_double()->cublasLtGetCudartVersion() / 1000);
}

/* The parts of an algorithm's configuration have the sizes that the real library writes. */
static void has_the_configuration_of_the_real_library(void **state) {
  (void)state;
  rig_library real;
  if (!open_real(&real)) skip();
  const cublasLtMatmulAlgo_t none = {{0}};
  for (int attribute = 0; attribute <= CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID; attribute++) {
    size_t real_bytes = 0, bytes = 0;
    cublasStatus_t expected =
        real.cublasLtMatmulAlgoConfigGetAttribute(&none, attribute, NULL, 0, &real_bytes);
    assert_int_equal(rig_double()->cublasLtMatmulAlgoConfigGetAttribute(&none, attribute, NULL, 0, &bytes),
                     expected);
    assert_int_equal(bytes, real_bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_calls),
      cmocka_unit_test(fails_on_request),
      cmocka_unit_test(refuses_what_is_no_object),
      cmocka_unit_test(has_the_attributes_of_the_real_library),
      cmocka_unit_test(has_the_sizes_and_names_of_the_real_library),
      cmocka_unit_test(has_the_configuration_of_the_real_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
