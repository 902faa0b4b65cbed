/* backends/cuda/cudnn/kernels/channel_epilogue.h: the region behind statements of which cuDNN computes the
 * last one, two numbers for each channel. A small kernel behind cuDNN's computes the region. */
#pragma once

#include "backends/cuda/cudnn/engines.h"
#include "backends/cuda/modules/modules.h"
#include "backends/cuda/pointwise/epilogue.h"

enum { TN_CUDNN_CHANNEL_THREADS = 128 };

/* A match: its first nodes are the statements, its first operands those of the statements. */
typedef struct tn_cudnn_statements {
  const tn_match *match;
  int32_t n, n_operands;
  int32_t image; /* the number of the value with several dimensions, the only one among the results */
} tn_cudnn_statements;

/* Where the match stores a value; -1: it has no memory. */
int32_t tn_cudnn_result_of(const tn_match *match, int32_t number);
bool tn_cudnn_has_epilogue(const tn_cudnn_statements *s);
/* Prints the region. *text is {0} without one; drop it in any case. */
tn_status tn_cudnn_channel_print(const void *handle, const tn_cudnn_statements *s, const char *tail,
                                 tn_cuda_epilogue_text *text);
/* Offers the engines of the graph for the whole match, with the layouts of offer->in for the statements'
 * operands. TN_EUNSUPPORTED with the reason. */
tn_status tn_cudnn_channel_offer(tn_query *q, const tn_cudnn_statements *s, const char *tail,
                                 const tn_cudnn_graph *g, const tn_cudnn_offer *offer);
/* Requests the kernel of the printed region, with `title` for messages; the match has one. */
tn_status tn_cudnn_channel_request(tn_prepare *p, const tn_cudnn_statements *s, const char *title,
                                   const char *tail, tn_cuda_function *f, tn_cuda_epilogue *keep);
/* Enqueues the small kernel: `args`, which has n_bytes and room for TN_CUDA_EPILOGUE_WORDS words behind them.
 */
tn_status tn_cudnn_channel_launch(tn_launch *l, const tn_cuda_function *f, const tn_cuda_epilogue *epilogue,
                                  int64_t channels, void *args, size_t n_bytes);
