/* backends/cuda/cudnn/kernels/statistics.h: the statistics of channels behind a convolution that cuDNN sums
 * while it writes the result. A small kernel turns the sums into mean and variance, and computes the epilogue
 * where the match has one. */
#pragma once

#include "backends/cuda/cudnn/engines.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/pointwise/epilogue.h"

/* Part of a prepared kernel, which must not move; {0} before tn_cudnn_statistics_prepare. */
typedef struct tn_cudnn_statistics {
  tn_cuda_function finish;
  int64_t channels;
  double count;              /* elements of a channel */
  int32_t y, mean, variance; /* numbers of results of the match; -1: it has no memory */
  tn_cuda_epilogue epilogue; /* n_words is 0: the match has no epilogue */
} tn_cudnn_statistics;

/* The first nodes of the match are n_statements, of which the last is the moments of the one before; its
 * first operands are n_operands, with the layouts of offer->in. Offers the engines of the graph for the whole
 * match. TN_EUNSUPPORTED with the reason. */
tn_status tn_cudnn_statistics_offer(tn_query *q, int32_t n_statements, int32_t n_operands,
                                    const tn_cudnn_graph *g, const tn_cudnn_offer *offer);
tn_status tn_cudnn_statistics_prepare(tn_prepare *p, int32_t n_statements, tn_cudnn_statistics *s);
void tn_cudnn_statistics_release(tn_cudnn_statistics *s);
/* Bytes of the workspace for both rows of sums; the squares begin behind half of them. */
int64_t tn_cudnn_statistics_workspace(int64_t channels);
/* Enqueues the small kernel; `sums` are the rows in the workspace. */
tn_status tn_cudnn_statistics_launch(tn_launch *l, const tn_cudnn_statistics *s, char *sums);
