/* backends/cuda/cudnn/statistics.c: see statistics.h. */
#include "backends/cuda/cudnn/statistics.h"

#include <string.h>

#include "backends/cuda/cudnn/convolution.h"
#include "backends/cuda/device/conv_moments.cuh"

enum { STATISTICS_THREADS = 128 };

/* The argument with an epilogue (CONV_MOMENTS_WITH_EPILOGUE). */
typedef struct statistics_joined_args {
  struct conv_moments_args moments;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} statistics_joined_args;
_Static_assert(sizeof(statistics_joined_args) <= 4096, "CUDA's limit of arguments");

static int32_t statistics_result(const tn_match *m, int32_t number) {
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out_number[i] == number) return i;
  return -1;
}

/* *text is {0} without an epilogue. */
static tn_status statistics_print(const void *handle, const tn_match *m, int32_t n_statements,
                                  tn_cuda_epilogue_text *text) {
  static const char tail[] = "#include \"backends/cuda/device/conv_moments_kernels.cuh\"\n\n"
                             "CONV_MOMENTS_WITH_EPILOGUE\n";
  *text = (tn_cuda_epilogue_text){0};
  if (m->n_nodes == n_statements) return TN_OK;
  tn_status status = tn_epilogue_region(handle, m, n_statements, &text->region);
  return status == TN_OK ? tn_cuda_epilogue_print(handle, text, 2, tail) : status;
}

/* ---- query ---- */

static tn_status statistics_check(tn_query *q, int32_t n_statements) {
  const tn_match *m = q->match;
  if (!tn_cudnn_reduces_to_channels(m->nodes[n_statements - 1].node->attributes, 4))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the statistics are not those of channels");
  if (statistics_result(m, m->nodes[n_statements - 2].first_out) < 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "only the statistics of the convolution are read");
  return TN_OK;
}

static int32_t statistics_pairs(const tn_cuda_epilogue_text *text, int32_t n_operands, int32_t (*pairs)[2]) {
  int32_t read[TN_CUDNN_TENSORS];
  for (int32_t i = 0; i < n_operands; i++) read[i] = i;
  return tn_cuda_epilogue_pairs(text, read, n_operands, pairs);
}

/* The layout rules of all operands and results. The convolution's result is the only one with several dims.
 */
static void statistics_fill_rules(const tn_match *m, int32_t n_statements, int32_t n_operands,
                                  const tn_operand_layout *of_statements, tn_operand_layout *rules) {
  memcpy(rules, of_statements, (size_t)n_operands * sizeof *rules);
  rules[m->n_in + statistics_result(m, m->nodes[n_statements - 2].first_out)] = tn_cudnn_channels_last();
}

static tn_status statistics_offer_all(tn_query *q, int32_t n_operands, const tn_cudnn_graph *g,
                                      const tn_cuda_epilogue_text *text, tn_cudnn_offer *offer) {
  int32_t(*pairs)[2] = tn_new(q, ((size_t)text->printed.n_inplace + 1) * sizeof *pairs);
  if (pairs == NULL) return TN_ENOMEM;
  offer->n_inplace = statistics_pairs(text, n_operands, pairs);
  offer->inplace = (const int32_t(*)[2])pairs;
  tn_status status = tn_cudnn_offer_engines(q, g, offer);
  tn_delete(q, pairs);
  return status;
}

tn_status tn_cudnn_statistics_offer(tn_query *q, int32_t n_statements, int32_t n_operands,
                                    const tn_cudnn_graph *g, const tn_cudnn_offer *offer) {
  const tn_match *m = q->match;
  tn_cudnn_offer all = *offer;
  tn_cuda_epilogue_text text;
  tn_status status = statistics_check(q, n_statements);
  if (status != TN_OK) return status;
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  statistics_fill_rules(m, n_statements, n_operands, offer->in, rules);
  all.in = rules;
  all.out = rules + m->n_in;
  all.plain_sums = 1;
  all.other_s += q->device->launch_s;
  status = statistics_print(q, m, n_statements, &text);
  if (status == TN_OK) status = statistics_offer_all(q, n_operands, g, &text, &all);
  tn_cuda_epilogue_drop(q, &text);
  tn_delete(q, rules);
  return status;
}

/* ---- prepare ---- */

tn_status tn_cudnn_statistics_prepare(tn_prepare *p, int32_t n_statements, tn_cudnn_statistics *s) {
  const tn_match *m = p->match;
  const tn_match_node *conv = &m->nodes[n_statements - 2], *moments = &m->nodes[n_statements - 1];
  const tn_type *y = &conv->node->out[0];
  tn_cuda_epilogue_text text;
  s->channels = y->dims[1];
  s->count = (double)(tn_type_count(y) / s->channels);
  s->y = statistics_result(m, conv->first_out);
  s->mean = statistics_result(m, moments->first_out);
  s->variance = statistics_result(m, moments->first_out + 1);
  if (m->n_nodes == n_statements) return tn_cuda_request(p, &s->finish, "conv_moments.cu", "conv_moments");
  tn_status status = statistics_print(p, m, n_statements, &text);
  if (status == TN_OK) {
    tn_cuda_epilogue_keep(&text, &s->epilogue);
    status = tn_cuda_request_text(p, &s->finish, "statistics and a region", text.printed.text, "joined");
  }
  tn_cuda_epilogue_drop(p, &text);
  return status;
}

void tn_cudnn_statistics_release(tn_cudnn_statistics *s) { tn_cuda_withdraw(&s->finish); }

int64_t tn_cudnn_statistics_workspace(int64_t channels) { return 2 * tn_cudnn_row_bytes(TN_F32, channels); }

/* ---- launch ---- */

static void *statistics_address(const tn_launch *l, int32_t result) {
  return result < 0 ? NULL : l->out[result].data;
}

tn_status tn_cudnn_statistics_launch(tn_launch *l, const tn_cudnn_statistics *s, char *sums) {
  const tn_cuda_grid grid = tn_cuda_grid_of(s->channels, STATISTICS_THREADS, INT32_MAX);
  statistics_joined_args a;
  a.moments = (struct conv_moments_args){
      .sum = (const float *)sums,
      .squares = (const float *)(sums + tn_cudnn_statistics_workspace(s->channels) / 2),
      .mean = statistics_address(l, s->mean),
      .variance = statistics_address(l, s->variance),
      .channels = s->channels,
      .count = s->count};
  if (s->epilogue.n_words > 0) tn_cuda_epilogue_point(&s->epilogue, l, a.words);
  return tn_cuda_launch(l, &s->finish, &grid, &a,
                        sizeof a.moments + (size_t)s->epilogue.n_words * sizeof *a.words);
}
