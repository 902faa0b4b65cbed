/* backends/cuda/pointwise/prologue.h: a printed prologue (printed.h) as a part of a prepared kernel. */
#pragma once

#include "backends/cuda/pointwise/epilogue.h"
#include "backends/shared/prologue.h"

/* Bytes that `fetch` may load: more do not fit in registers beside a kernel's own values. */
enum { TN_CUDA_FETCHED_BYTES = 96 };

typedef struct tn_cuda_prologue {
  tn_cuda_epilogue part; /* words and pointers */
  uint8_t alignment[TN_CUDA_EPILOGUE_WORDS];
} tn_cuda_prologue;

/* The parts of a match and the region's text. Begin with {0}; drop it in any case. */
typedef struct tn_cuda_prologue_text {
  tn_prologue parts;
  tn_cuda_printed printed;
} tn_cuda_prologue_text;

/* Prints the region of text->parts. In `front` the caller has set how results are taken, and not which are
 * stored. TN_EUNSUPPORTED with the reason. */
tn_status tn_cuda_prologue_print(const void *handle, tn_cuda_prologue_text *text, const tn_layout *layout,
                                 const tn_cuda_front *front, const char *tail);
void tn_cuda_prologue_drop(const void *handle, tn_cuda_prologue_text *text);
/* The region's in-place pairs as pairs of the match, at most text->printed.n_inplace; their number. Operands
 * in `read`, which other parts of the kernel read, are left out. */
int32_t tn_cuda_prologue_pairs(const tn_cuda_prologue_text *text, const int32_t *read, int32_t n_read,
                               int32_t (*pairs)[2]);
/* Sets the rules of the region's operands and results, which lie in `layout` where they have its dims. */
void tn_cuda_prologue_rules(const tn_cuda_prologue_text *text, const tn_operand_layout *layout,
                            tn_operand_layout *in, tn_operand_layout *out);
void tn_cuda_prologue_keep(const tn_cuda_prologue_text *text, tn_cuda_prologue *keep);
/* Writes the prologue's words with the addresses of a launch; whether packs are aligned. */
bool tn_cuda_prologue_point(const tn_cuda_prologue *keep, const tn_launch *l, uint64_t *words);
