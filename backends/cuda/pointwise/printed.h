/* backends/cuda/pointwise/printed.h: a region of pointwise ops (backends/shared/pointwise/ir.h) as CUDA C.
 *
 * The text is a module with one kernel, `region`. A thread computes `width` neighbouring positions of the
 * region's storage order; its operands come by 16 bytes where they lie as the results do. The structure
 * alone is in the text: instructions, dtypes, how operands repeat. Sizes, strides, constants
 * and attributes are words of the kernel's argument, so that regions which differ in them alone share a
 * module. The ranges of `spread` are constants of the text: there is no limit on their number as there is for
 * arguments (4 KiB), they need no copy in a launch and no memory beside the module's, and a model has one
 * such region, its update. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/kernel.h"

enum {
  TN_CUDA_PW_WORDS = 480,   /* of the argument; CUDA's limit is 4 KiB */
  TN_CUDA_PW_COUNT = 0,     /* the word with the number of positions */
  TN_CUDA_PW_ALIGNED = 1,   /* the word that says whether all packs are aligned */
  TN_CUDA_PW_POINTERS = 2,  /* the first of the words with the addresses of operands, then results */
  TN_CUDA_PW_THREADS = 256, /* of a block */
};

typedef struct tn_cuda_printed {
  char *text;
  int64_t count; /* positions */
  int32_t width; /* positions of a thread */
  int32_t n_words, n_pointers;
  uint64_t words[TN_CUDA_PW_WORDS];    /* complete but for addresses and TN_CUDA_PW_ALIGNED */
  uint8_t alignment[TN_CUDA_PW_WORDS]; /* bytes, of each pointer that is read or written by packs; else 1 */
  int32_t n_inplace;
  int32_t (*inplace)[2];
  int32_t fetched_bytes; /* of a prologue: what `fetch` loads for a thread */
  double flops;          /* of all positions */
  bool few_blocks; /* a block has much to do before its first position, so that it is to do many positions */
} tn_cuda_printed;

/* How the results may lie. */
bool tn_cuda_takes_any_layout(const tn_match *match);

/* Whether the rows of results may be padded (backends/cuda/padded_rows.h): no operand differs along the rows
 * without being as large as the results. */
bool tn_cuda_takes_padded_rows(const tn_match *match);

/* Prints a match whose results, and operands of their dims, lie in `layout`; NULL or unset: row-major.
 * TN_EUNSUPPORTED comes with a reason. `printed` is to be dropped in either case. */
tn_status tn_cuda_print(const void *handle, const tn_match *match, const tn_layout *layout,
                        tn_cuda_printed *printed);
/* The same, for operands that lie row-major. No operand shares memory with a result: `inplace` is of no use.
 */
tn_status tn_cuda_print_reordering(const void *handle, const tn_match *match, const tn_layout *layout,
                                   tn_cuda_printed *printed);
/* Prints the match as an epilogue: in place of the kernel, the function
 *
 *     void after(const words &a, i64 at, T0 given0, ..)
 *
 * of a position and of the values of the first n_given operands there
 * (backends/cuda/device/reduce_results.cuh). Operands and results are row-major. `tail` follows the function:
 * the kernels that call it. */
tn_status tn_cuda_print_epilogue(const void *handle, const tn_match *match, int32_t n_given, const char *tail,
                                 tn_cuda_printed *printed);

/* How a statement takes the first `n` results of the region in front of it. */
typedef struct tn_cuda_front {
  int32_t width; /* positions that it takes at once */
  int32_t n;
  bool as_y[2]; /* the statement's second operand; else its first */
  bool stored[2];
} tn_cuda_front;

/* Prints the match as a prologue (backends/cuda/device/prologue.cuh), in namespace `front`. `tail` follows:
 * the epilogue, if there is one, and the kernels. */
tn_status tn_cuda_print_prologue(const void *handle, const tn_match *match, const tn_layout *layout,
                                 const tn_cuda_front *front, const char *tail, tn_cuda_printed *printed);
void tn_cuda_drop_printed(const void *handle, tn_cuda_printed *printed);
