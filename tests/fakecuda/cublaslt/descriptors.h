/* tests/fakecuda/cublaslt/descriptors.h: the contents of the semi-opaque descriptors. Values are checked
 * where they are used, as the library does; a Set checks the attribute and the size of its value. */
#pragma once

#include <cublasLt.h>

enum {
  FAKELT_LAYOUT_MAGIC = 0x6c744c32,
  FAKELT_DESC_MAGIC = 0x6c744433,
  FAKELT_PREFERENCE_MAGIC = 0x6c745034
};
/* The attributes of block scales and emulation came with 12.8; before that the descriptor has no room for
 * them. */
#define FAKELT_HAS_BLOCK_SCALES (CUBLAS_VERSION >= 120800)
enum { FAKELT_TENSOR_SCALES = FAKELT_HAS_BLOCK_SCALES ? 8 : 7, FAKELT_SCALE_MODES = 6 };

typedef struct fakelt_layout {
  uint32_t magic, type;
  int32_t order, batch;
  uint64_t rows, columns;
  int64_t ld, stride, plane;
  uint32_t batch_mode;
} fakelt_layout;

typedef struct fakelt_desc {
  uint32_t magic;
  int32_t compute, scale, pointer_mode, transposed[3], fill; /* transposed: A, B, C */
  uint32_t epilogue;
  int32_t sm_count, aux_type, bias_type, atomic_chunks;
  void *bias, *aux;
  int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
  void *tensor_scales[FAKELT_TENSOR_SCALES]; /* and places for largest values: all NULL in products without
                                                scaling */
#if FAKELT_HAS_BLOCK_SCALES
  void *emulation;
  int32_t scale_modes[FAKELT_SCALE_MODES];
#endif
  int8_t fast_accumulation;
} fakelt_desc;

typedef struct fakelt_preference {
  uint32_t magic, search_mode, schemes;
  uint32_t alignment[4]; /* A, B, C, D */
  float max_waves;
  uint64_t max_workspace, flags;
} fakelt_preference;

/* NULL: not a descriptor of this kind, or one that was destroyed. */
const fakelt_layout *fakelt_layout_of(cublasLtMatrixLayout_t layout);
const fakelt_desc *fakelt_desc_of(cublasLtMatmulDesc_t desc);
const fakelt_preference *fakelt_preference_of(cublasLtMatmulPreference_t preference);

/* An attribute: a place in a struct. A table ends with size 0. */
typedef struct fakelt_attribute {
  int32_t attribute;
  uint32_t offset, size;
} fakelt_attribute;
cublasStatus_t fakelt_set(const fakelt_attribute *table, void *object, int attribute, const void *value,
                          size_t bytes);
cublasStatus_t fakelt_get(const fakelt_attribute *table, const void *object, int attribute, void *value,
                          size_t bytes, size_t *written);
