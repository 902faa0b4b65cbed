/* backends/cuda/cudnn/kernels/channel_epilogue.c: see channel_epilogue.h. */
#include "backends/cuda/cudnn/kernels/channel_epilogue.h"

#include <string.h>

#include "backends/cuda/cudnn/kernels/convolution.h"

/* Results of the last statement, which the region reads. */
enum { CHANNEL_GIVEN = 2 };

int32_t tn_cudnn_result_of(const tn_match *m, int32_t number) {
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out_number[i] == number) return i;
  return -1;
}

bool tn_cudnn_has_epilogue(const tn_cudnn_statements *s) { return s->match->n_nodes > s->n; }

tn_status tn_cudnn_channel_print(const void *handle, const tn_cudnn_statements *s, const char *tail,
                                 tn_cuda_epilogue_text *text) {
  *text = (tn_cuda_epilogue_text){0};
  if (!tn_cudnn_has_epilogue(s)) return TN_OK;
  tn_status status = tn_epilogue_region(handle, s->match, s->n, &text->region);
  return status == TN_OK ? tn_cuda_epilogue_print(handle, text, CHANNEL_GIVEN, tail) : status;
}

/* ---- query ---- */

static int32_t channel_pairs(const tn_cuda_epilogue_text *text, int32_t n_operands, int32_t (*pairs)[2]) {
  int32_t read[TN_CUDNN_TENSORS];
  for (int32_t i = 0; i < n_operands; i++) read[i] = i;
  return tn_cuda_epilogue_pairs(text, read, n_operands, pairs);
}

static tn_status channel_offer_pairs(tn_query *q, int32_t n_operands, const tn_cudnn_graph *g,
                                     const tn_cuda_epilogue_text *text, tn_cudnn_offer *offer) {
  int32_t(*pairs)[2] = tn_new(q, ((size_t)text->printed.n_inplace + 1) * sizeof *pairs);
  if (pairs == NULL) return TN_ENOMEM;
  offer->n_inplace = channel_pairs(text, n_operands, pairs);
  offer->inplace = (const int32_t(*)[2])pairs;
  tn_status status = tn_cudnn_offer_engines(q, g, offer);
  tn_delete(q, pairs);
  return status;
}

static tn_status channel_offer_text(tn_query *q, const tn_cudnn_statements *s, const char *tail,
                                    const tn_cudnn_graph *g, tn_cudnn_offer *offer) {
  tn_cuda_epilogue_text text;
  tn_status status = tn_cudnn_channel_print(q, s, tail, &text);
  if (status == TN_OK) status = channel_offer_pairs(q, s->n_operands, g, &text, offer);
  tn_cuda_epilogue_drop(q, &text);
  return status;
}

tn_status tn_cudnn_channel_offer(tn_query *q, const tn_cudnn_statements *s, const char *tail,
                                 const tn_cudnn_graph *g, const tn_cudnn_offer *offer) {
  const tn_match *m = s->match;
  tn_cudnn_offer all = *offer;
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  memcpy(rules, offer->in, (size_t)s->n_operands * sizeof *rules);
  rules[m->n_in + tn_cudnn_result_of(m, s->image)] = tn_cudnn_channels_last();
  all.in = rules;
  all.out = rules + m->n_in;
  tn_status status = channel_offer_text(q, s, tail, g, &all);
  tn_delete(q, rules);
  return status;
}

/* ---- prepare, launch ---- */

tn_status tn_cudnn_channel_request(tn_prepare *p, const tn_cudnn_statements *s, const char *title,
                                   const char *tail, tn_cuda_function *f, tn_cuda_epilogue *keep) {
  tn_cuda_epilogue_text text;
  tn_status status = tn_cudnn_channel_print(p, s, tail, &text);
  if (status == TN_OK) {
    tn_cuda_epilogue_keep(&text, keep);
    status = tn_cuda_request_text(p, f, title, text.printed.text, "joined");
  }
  tn_cuda_epilogue_drop(p, &text);
  return status;
}

tn_status tn_cudnn_channel_launch(tn_launch *l, const tn_cuda_function *f, const tn_cuda_epilogue *epilogue,
                                  int64_t channels, void *args, size_t n_bytes) {
  const tn_cuda_grid grid = tn_cuda_grid_of(channels, TN_CUDNN_CHANNEL_THREADS, INT32_MAX);
  if (epilogue->n_words > 0) tn_cuda_epilogue_point(epilogue, l, (uint64_t *)((char *)args + n_bytes));
  return tn_cuda_launch(l, f, &grid, args, n_bytes + (size_t)epilogue->n_words * sizeof(uint64_t));
}
