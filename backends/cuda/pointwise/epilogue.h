/* backends/cuda/pointwise/epilogue.h: a printed epilogue (printed.h) as a part of a prepared kernel. */
#pragma once

#include "backends/cuda/pointwise/printed.h"
#include "backends/shared/epilogue.h"

/* Words that fit behind 512 bytes of other arguments; CUDA's limit is 4 KiB. */
enum { TN_CUDA_EPILOGUE_WORDS = (4096 - 512) / 8 };

typedef struct tn_cuda_epilogue {
  int32_t n_words, n_pointers;
  tn_epilogue_source pointer[TN_CUDA_EPILOGUE_WORDS];
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} tn_cuda_epilogue;

/* The region of a match and its text. Begin with {0}; drop it in any case. */
typedef struct tn_cuda_epilogue_text {
  tn_epilogue_part region;
  tn_cuda_printed printed;
  int32_t n_given; /* results of the last statement */
} tn_cuda_epilogue_text;

/* Prints the region of text->region, behind a statement with n_given results. TN_EUNSUPPORTED with the
 * reason. */
tn_status tn_cuda_epilogue_print(const void *handle, tn_cuda_epilogue_text *text, int32_t n_given,
                                 const char *tail);
void tn_cuda_epilogue_drop(const void *handle, tn_cuda_epilogue_text *text);
/* The region's in-place pairs as pairs of the match, at most text->printed.n_inplace; their number. Operands
 * that the statements read (`read`, numbers of the match) are left out: other threads may still read them. */
int32_t tn_cuda_epilogue_pairs(const tn_cuda_epilogue_text *text, const int32_t *read, int32_t n_read,
                               int32_t (*pairs)[2]);
void tn_cuda_epilogue_keep(const tn_cuda_epilogue_text *text, tn_cuda_epilogue *keep);
/* Writes the epilogue's part of the argument, keep->n_words words, with the addresses of a launch. */
void tn_cuda_epilogue_point(const tn_cuda_epilogue *keep, const tn_launch *l, uint64_t *words);
