/* core/export/fold.h: batch norm by given statistics in the weights of the convolution in front of it:
 * w f and (bias - mean) f + shift, with f = weight / sqrt(variance + epsilon) of each channel. */
#pragma once

#include "core/graph/graph.h"

/* Batch norm behind a convolution: paths of states; NULL: absent. */
typedef struct tn_export_norm {
  const char *mean, *variance, *weight, *bias, *kernel_bias;
  double epsilon;
  int64_t channels;
} tn_export_norm;

/* Reads a state, as elements of its type. */
typedef tn_status tn_export_read(void *context, const char *path, void *to, size_t bytes);

/* The path of a convolution's kernel, a state of f32, which fake_quantize_channels may round; NULL: it has
 * another maker or type. */
const char *tn_export_kernel_path(const tn_graph *graph, const tn_gnode *conv);
/* By value: the batch norm's result, where the value is of a convolution whose only reader is a batch norm
 * that becomes part of it; 0 for all others. reads: of tn_export_reads. In the arena; NULL: out of memory. */
tn_val *tn_export_fold_find(tn_arena *arena, const tn_graph *graph, const int32_t *reads);
/* The path of operand i, a state of f32; NULL: it has another maker or type, or is absent. */
const char *tn_export_state_path(const tn_graph *graph, const tn_gnode *node, int32_t i);
/* The batch norm that makes `by`, behind the convolution `conv`; in the arena, NULL: out of memory. */
const tn_export_norm *tn_export_fold_norm(tn_arena *arena, const tn_graph *graph, const tn_gnode *conv,
                                          tn_val by);

/* Reads f of each channel. */
tn_status tn_export_fold_factors(tn_env *env, tn_export_read *read, void *context, const tn_export_norm *norm,
                                 float *factor);
/* Reads `count` elements of the folded kernel, in the order of the state; path NULL: of the bias. */
tn_status tn_export_fold_read(tn_env *env, tn_export_read *read, void *context, const tn_export_norm *norm,
                              const char *path, int64_t count, float *to);
