/* tenon/base.h: export marks, status codes, element types, tensor types and layouts, which every other header
 * uses. All functions are pure: they allocate nothing and keep no state. */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TN_BEGIN_C extern "C" {
#define TN_END_C   }
#else
#define TN_BEGIN_C
#define TN_END_C
#endif

#define TN_EXPORT              __attribute__((visibility("default")))
#define TN_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define TN_MUST_USE            __attribute__((warn_unused_result))

/* Whether the struct at `pointer`, which has a member struct_size, is long enough to hold `member`: a plugin
 * asks before it reads a member that a later minor version has appended. */
#define TN_HAS(pointer, member)                                                                              \
  ((size_t)((const char *)(&(pointer)->member + 1) - (const char *)(pointer)) <=                             \
   (size_t)(pointer)->struct_size)

TN_BEGIN_C

/* Outcome of a call. The text of a failure is in the handle that was passed (env.h). The numbers are part of
 * the ABI and are never reused. */
typedef int32_t tn_status;
enum {
  TN_OK = 0,
  TN_EOF = 1,          /* the end of a listing or of a streaming source; no text */
  TN_EINVAL = 2,       /* a wrong argument, configuration or input file */
  TN_EIO = 3,          /* the operating system refused a read or a write */
  TN_EUNSUPPORTED = 4, /* this implementation declines; the only code that allows a fallback */
  TN_EUNAVAILABLE = 5, /* a device, plugin or library is missing */
  TN_ENOMEM = 6,       /* host or device memory ran out; the host may free caches and try again */
  TN_EDEVICE = 7,      /* the device failed; later calls on the stream return it as well */
  TN_EABI = 8,         /* a plugin was built for another interface */
  TN_ESTOPPED = 9,     /* stopped by request; can be resumed */
  TN_ENONFINITE = 10,  /* the loss, the state or an output is not finite */
  TN_ECOMM = 11,       /* a rank or a collective failed */
  TN_EINTERNAL = 12    /* a bug of Tenon, or a callback that failed without a valid code */
};

/* Element types (dtypes). TN_ANY means "not decided" in options and patterns; a tensor never has it. */
enum {
  TN_ANY = 0,
  TN_BOOL = 1, /* one byte, 0 or 1 */
  TN_U8 = 2,
  TN_I32 = 3,
  TN_I64 = 4,
  TN_F16 = 5,  /* IEEE 754 binary16 */
  TN_BF16 = 6, /* the upper half of a binary32 */
  TN_F32 = 7,
  TN_F64 = 8,
  TN_I8 = 9,
  TN_DTYPES = 10 /* number of codes, TN_ANY included */
};

/* Bytes of one element; 0 for TN_ANY and unknown codes. */
static inline size_t tn_dtype_size(int32_t dtype) {
  static const uint8_t size[TN_DTYPES] = {0, 1, 1, 4, 8, 2, 2, 4, 8, 1};
  return dtype > 0 && dtype < TN_DTYPES ? size[dtype] : 0;
}

/* "f32" and so on; "any" for TN_ANY, "?" for an unknown code. */
static inline const char *tn_dtype_name(int32_t dtype) {
  static const char *const name[TN_DTYPES] = {"any", "bool", "u8",  "i32", "i64",
                                              "f16", "bf16", "f32", "f64", "i8"};
  return dtype >= 0 && dtype < TN_DTYPES ? name[dtype] : "?";
}

static inline int32_t tn_dtype_is_float(int32_t dtype) { return dtype >= TN_F16 && dtype <= TN_F64; }

/* How a collective, and the ops all_reduce and reduce_scatter, combine the values of all ranks. The mean is
 * the sum divided by the number of ranks, both rounded to the element's type; it is of floats only. */
enum { TN_REDUCTION_SUM = 0, TN_REDUCTION_MIN = 1, TN_REDUCTION_MAX = 2, TN_REDUCTION_MEAN = 3 };

/* "sum", "min", "max" or "mean"; "?" for an unknown code. */
static inline const char *tn_reduction_name(int32_t reduction) {
  static const char *const name[] = {"sum", "min", "max", "mean"};
  return reduction >= TN_REDUCTION_SUM && reduction <= TN_REDUCTION_MEAN ? name[reduction] : "?";
}

/* The highest rank a tensor may have (see docs/decisions/0003-rank-limit.md). */
enum { TN_MAX_RANK = 8 };

/* Type of a value: dtype and logical dimensions, outermost first (N, C, H, W). Dimensions beyond rank are 0.
 * A dimension of 0 makes the tensor empty. */
typedef struct tn_type {
  int32_t dtype, rank;
  int64_t dims[TN_MAX_RANK];
} tn_type;

/* Number of elements; 1 for a scalar (rank 0). */
static inline int64_t tn_type_count(const tn_type *type) {
  int64_t n = 1;
  for (int32_t i = 0; i < type->rank; i++) n *= type->dims[i];
  return n;
}

/* Bytes of the logical elements, without any padding that a layout adds. */
static inline size_t tn_type_bytes(const tn_type *type) {
  return (size_t)tn_type_count(type) * tn_dtype_size(type->dtype);
}

static inline int32_t tn_type_same_dims(const tn_type *a, const tn_type *b) {
  if (a->rank != b->rank) return 0;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return 0;
  return 1;
}

static inline int32_t tn_type_equal(const tn_type *a, const tn_type *b) {
  return a->dtype == b->dtype && tn_type_same_dims(a, b);
}

/* Layout of a value in memory. The storage is a dense array. Its axes, outermost first, are the dimensions in
 * `order`, each divided by the sizes of its blocks, and then the blocks in the order of `block`. Row-major
 * NCHW is order 0 1 2 3; NHWC is 0 2 3 1; nChw16c is order 0 1 2 3 with one block {dim 1, size 16}. A
 * dimension that is no multiple of its block sizes is padded: the padding is zero, and every kernel that
 * writes keeps it zero. All members 0: unset. */
typedef struct tn_block {
  uint16_t dim, size;
} tn_block;
enum { TN_MAX_BLOCKS = 4 };
typedef struct tn_layout {
  uint8_t set;      /* 0: unset */
  uint8_t n_blocks; /* entries of block in use */
  uint8_t order[TN_MAX_RANK];
  tn_block block[TN_MAX_BLOCKS];
} tn_layout;

static inline tn_layout tn_layout_row_major(int32_t rank) {
  tn_layout l = {1, 0, {0, 0, 0, 0, 0, 0, 0, 0}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}};
  for (int32_t i = 0; i < rank; i++) l.order[i] = (uint8_t)i;
  return l;
}

TN_END_C
#endif
