/* tests/fakecuda/cublaslt/descriptors.c: see descriptors.h. */
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cublaslt/descriptors.h"
#include "tests/fakecuda/cublaslt/double.h"
#include "tests/fakecuda/cublaslt/library.h"

_Static_assert(sizeof(fakelt_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "a layout fits");
_Static_assert(sizeof(fakelt_desc) <= sizeof(cublasLtMatmulDescOpaque_t), "a descriptor fits");
_Static_assert(sizeof(fakelt_preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "a preference fits");

#define PLACE(number, type, member)                                                                          \
  { number, offsetof(type, member), sizeof(((type *)0)->member) }

static const fakelt_attribute layout_attributes[] = {
    PLACE(CUBLASLT_MATRIX_LAYOUT_TYPE, fakelt_layout, type),
    PLACE(CUBLASLT_MATRIX_LAYOUT_ORDER, fakelt_layout, order),
    PLACE(CUBLASLT_MATRIX_LAYOUT_ROWS, fakelt_layout, rows),
    PLACE(CUBLASLT_MATRIX_LAYOUT_COLS, fakelt_layout, columns),
    PLACE(CUBLASLT_MATRIX_LAYOUT_LD, fakelt_layout, ld),
    PLACE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, fakelt_layout, batch),
    PLACE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, fakelt_layout, stride),
    PLACE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, fakelt_layout, plane),
    PLACE(8, fakelt_layout, batch_mode), /* CUBLASLT_MATRIX_LAYOUT_BATCH_MODE of newer headers */
    {0}};

/* Numbers stand for attributes that older headers have no names for; the headers of all versions give each
 * its number. */
static const fakelt_attribute desc_attributes[] = {
    PLACE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, fakelt_desc, compute),
    PLACE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, fakelt_desc, scale),
    PLACE(CUBLASLT_MATMUL_DESC_POINTER_MODE, fakelt_desc, pointer_mode),
    PLACE(CUBLASLT_MATMUL_DESC_TRANSA, fakelt_desc, transposed[0]),
    PLACE(CUBLASLT_MATMUL_DESC_TRANSB, fakelt_desc, transposed[1]),
    PLACE(CUBLASLT_MATMUL_DESC_TRANSC, fakelt_desc, transposed[2]),
    PLACE(CUBLASLT_MATMUL_DESC_FILL_MODE, fakelt_desc, fill),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE, fakelt_desc, epilogue),
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, fakelt_desc, bias),
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, fakelt_desc, bias_stride),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, fakelt_desc, aux),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, fakelt_desc, aux_ld),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, fakelt_desc, aux_stride),
    PLACE(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, fakelt_desc, alpha_stride),
    PLACE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, fakelt_desc, sm_count),
    PLACE(16, fakelt_desc, atomic_chunks), /* known to the library, in no header */
    PLACE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, fakelt_desc, tensor_scales[0]),
    PLACE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, fakelt_desc, tensor_scales[1]),
    PLACE(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, fakelt_desc, tensor_scales[2]),
    PLACE(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, fakelt_desc, tensor_scales[3]),
    PLACE(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, fakelt_desc, tensor_scales[4]),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, fakelt_desc, aux_type),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, fakelt_desc, tensor_scales[5]),
    PLACE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, fakelt_desc, tensor_scales[6]),
    PLACE(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fakelt_desc, fast_accumulation),
    PLACE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, fakelt_desc, bias_type),
#if FAKELT_HAS_BLOCK_SCALES
    PLACE(31, fakelt_desc, scale_modes[0]),
    PLACE(32, fakelt_desc, scale_modes[1]),
    PLACE(33, fakelt_desc, scale_modes[2]),
    PLACE(34, fakelt_desc, scale_modes[3]),
    PLACE(35, fakelt_desc, scale_modes[4]),
    PLACE(36, fakelt_desc, tensor_scales[7]),
    PLACE(37, fakelt_desc, scale_modes[5]),
    PLACE(38, fakelt_desc, emulation),
#endif
    {0}};

static const fakelt_attribute preference_attributes[] = {
    PLACE(CUBLASLT_MATMUL_PREF_SEARCH_MODE, fakelt_preference, search_mode),
    PLACE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, fakelt_preference, max_workspace),
    PLACE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, fakelt_preference, schemes),
    PLACE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, fakelt_preference, alignment[0]),
    PLACE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, fakelt_preference, alignment[1]),
    PLACE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, fakelt_preference, alignment[2]),
    PLACE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, fakelt_preference, alignment[3]),
    PLACE(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, fakelt_preference, max_waves),
    PLACE(CUBLASLT_MATMUL_PREF_IMPL_MASK, fakelt_preference, flags),
    {0}};

static const fakelt_attribute *find_attribute(const fakelt_attribute *table, int attribute) {
  for (; table->size; table++) {
    if (table->attribute == attribute) return table;
  }
  return NULL;
}

cublasStatus_t fakelt_set(const fakelt_attribute *table, void *object, int attribute, const void *value,
                          size_t bytes) {
  const fakelt_attribute *found = find_attribute(table, attribute);
  FAKELT_REQUIRE(found, CUBLAS_STATUS_INVALID_VALUE, "attribute %d is unknown", attribute);
  FAKELT_REQUIRE(value && bytes == found->size, CUBLAS_STATUS_INVALID_VALUE,
                 "attribute %d: a value of %zu bytes, expected %u", attribute, value ? bytes : 0,
                 found->size);
  memcpy((char *)object + found->offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t fakelt_get(const fakelt_attribute *table, const void *object, int attribute, void *value,
                          size_t bytes, size_t *written) {
  const fakelt_attribute *found = find_attribute(table, attribute);
  FAKELT_REQUIRE(found, CUBLAS_STATUS_INVALID_VALUE, "attribute %d is unknown", attribute);
  FAKELT_REQUIRE(bytes == 0 ? written != NULL : value && bytes == found->size, CUBLAS_STATUS_INVALID_VALUE,
                 "attribute %d: room for %zu bytes, expected %u", attribute, value ? bytes : 0, found->size);
  if (bytes) memcpy(value, (const char *)object + found->offset, bytes);
  if (written) *written = found->size;
  return CUBLAS_STATUS_SUCCESS;
}

/* The three kinds of descriptors begin with a magic number. */
static const void *check_magic(const void *object, uint32_t magic) {
  return object && *(const uint32_t *)object == magic ? object : NULL;
}

const fakelt_layout *fakelt_layout_of(cublasLtMatrixLayout_t layout) {
  return check_magic(layout, FAKELT_LAYOUT_MAGIC);
}

const fakelt_desc *fakelt_desc_of(cublasLtMatmulDesc_t desc) { return check_magic(desc, FAKELT_DESC_MAGIC); }

const fakelt_preference *fakelt_preference_of(cublasLtMatmulPreference_t preference) {
  return check_magic(preference, FAKELT_PREFERENCE_MAGIC);
}

static cublasStatus_t check_kind(const void *object, uint32_t magic, const char *kind) {
  FAKELT_REQUIRE(check_magic(object, magic), CUBLAS_STATUS_INVALID_VALUE, "not a %s, or a destroyed one",
                 kind);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_room(const void *object, size_t room, size_t expected, const char *kind) {
  FAKELT_REQUIRE(object, CUBLAS_STATUS_INVALID_VALUE, "the place for the %s is NULL", kind);
  FAKELT_REQUIRE(room >= expected, CUBLAS_STATUS_ALLOC_FAILED, "%zu bytes for a %s, expected %zu", room, kind,
                 expected);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t allocate(void *place, size_t bytes, const char *kind) {
  FAKELT_REQUIRE(place, CUBLAS_STATUS_INVALID_VALUE, "the place for the %s is NULL", kind);
  void *object = calloc(1, bytes);
  FAKELT_REQUIRE(object, CUBLAS_STATUS_ALLOC_FAILED, "out of host memory");
  memcpy(place, &object, sizeof object);
  fakelt_count_live(1);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t release(void *object, uint32_t magic, const char *kind) {
  FAKELT_TRY(check_kind(object, magic, kind));
  *(uint32_t *)object = 0;
  free(object);
  fakelt_count_live(-1);
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- matrix layouts
 * ---------------------------------------------------------------------------------------- */

static void init_layout(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t columns,
                        int64_t ld) {
  memset(layout, 0, sizeof *layout);
  *(fakelt_layout *)layout = (fakelt_layout){
      .magic = FAKELT_LAYOUT_MAGIC, .type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
}

FAKELT_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                               cudaDataType type, uint64_t rows,
                                                               uint64_t cols, int64_t ld) {
  FAKELT_TRY(fakelt_enter("cublasLtMatrixLayoutInit_internal"));
  FAKELT_TRY(check_room(layout, size, sizeof *layout, "layout"));
  init_layout(layout, type, rows, cols, ld);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                                        uint64_t rows, uint64_t cols, int64_t ld) {
  FAKELT_TRY(fakelt_enter("cublasLtMatrixLayoutCreate"));
  FAKELT_TRY(allocate(layout, sizeof **layout, "layout"));
  init_layout(*layout, type, rows, cols, ld);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  cublasStatus_t asked = fakelt_enter("cublasLtMatrixLayoutDestroy");
  FAKELT_TRY(release(layout, FAKELT_LAYOUT_MAGIC, "layout"));
  return asked;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                              cublasLtMatrixLayoutAttribute_t attribute,
                                                              const void *value, size_t bytes) {
  FAKELT_TRY(fakelt_enter("cublasLtMatrixLayoutSetAttribute"));
  FAKELT_TRY(check_kind(layout, FAKELT_LAYOUT_MAGIC, "layout"));
  return fakelt_set(layout_attributes, layout, (int)attribute, value, bytes);
}

FAKELT_EXPORT cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                              cublasLtMatrixLayoutAttribute_t attribute,
                                                              void *value, size_t bytes, size_t *written) {
  FAKELT_TRY(fakelt_enter("cublasLtMatrixLayoutGetAttribute"));
  FAKELT_TRY(check_kind(layout, FAKELT_LAYOUT_MAGIC, "layout"));
  return fakelt_get(layout_attributes, layout, (int)attribute, value, bytes, written);
}

/* ---- descriptors of a product
 * ------------------------------------------------------------------------------ */

static void init_desc(cublasLtMatmulDesc_t desc, cublasComputeType_t compute, cudaDataType_t scale) {
  memset(desc, 0, sizeof *desc);
  *(fakelt_desc *)desc = (fakelt_desc){.magic = FAKELT_DESC_MAGIC,
                                       .compute = compute,
                                       .scale = scale,
                                       .fill = CUBLAS_FILL_MODE_FULL,
                                       .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                       .aux_type = -1,
                                       .bias_type = -1};
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
                                                             cublasComputeType_t compute,
                                                             cudaDataType_t scale) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulDescInit_internal"));
  FAKELT_TRY(check_room(desc, size, sizeof *desc, "descriptor"));
  init_desc(desc, compute, scale);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                                      cudaDataType_t scale) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulDescCreate"));
  FAKELT_TRY(allocate(desc, sizeof **desc, "descriptor"));
  init_desc(*desc, compute, scale);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  cublasStatus_t asked = fakelt_enter("cublasLtMatmulDescDestroy");
  FAKELT_TRY(release(desc, FAKELT_DESC_MAGIC, "descriptor"));
  return asked;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                            cublasLtMatmulDescAttributes_t attribute,
                                                            const void *value, size_t bytes) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulDescSetAttribute"));
  FAKELT_TRY(check_kind(desc, FAKELT_DESC_MAGIC, "descriptor"));
  return fakelt_set(desc_attributes, desc, (int)attribute, value, bytes);
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                                            cublasLtMatmulDescAttributes_t attribute,
                                                            void *value, size_t bytes, size_t *written) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulDescGetAttribute"));
  FAKELT_TRY(check_kind(desc, FAKELT_DESC_MAGIC, "descriptor"));
  return fakelt_get(desc_attributes, desc, (int)attribute, value, bytes, written);
}

/* ---- preferences of the heuristic
 * -------------------------------------------------------------------------- */

static void init_preference(cublasLtMatmulPreference_t preference) {
  memset(preference, 0, sizeof *preference);
  *(fakelt_preference *)preference = (fakelt_preference){.magic = FAKELT_PREFERENCE_MAGIC,
                                                         .schemes = CUBLASLT_REDUCTION_SCHEME_MASK,
                                                         .alignment = {256, 256, 256, 256},
                                                         .flags = UINT64_MAX};
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                                   size_t size) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulPreferenceInit_internal"));
  FAKELT_TRY(check_room(preference, size, sizeof *preference, "preference"));
  init_preference(preference);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulPreferenceCreate"));
  FAKELT_TRY(allocate(preference, sizeof **preference, "preference"));
  init_preference(*preference);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  cublasStatus_t asked = fakelt_enter("cublasLtMatmulPreferenceDestroy");
  FAKELT_TRY(release(preference, FAKELT_PREFERENCE_MAGIC, "preference"));
  return asked;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulPreferenceSetAttribute"));
  FAKELT_TRY(check_kind(preference, FAKELT_PREFERENCE_MAGIC, "preference"));
  return fakelt_set(preference_attributes, preference, (int)attribute, value, bytes);
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulPreferenceGetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, void *value,
    size_t bytes, size_t *written) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulPreferenceGetAttribute"));
  FAKELT_TRY(check_kind(preference, FAKELT_PREFERENCE_MAGIC, "preference"));
  return fakelt_get(preference_attributes, preference, (int)attribute, value, bytes, written);
}
