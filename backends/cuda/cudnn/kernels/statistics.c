/* backends/cuda/cudnn/kernels/statistics.c: see statistics.h. */
#include "backends/cuda/cudnn/kernels/statistics.h"

#include "backends/cuda/cudnn/kernels/channel_epilogue.h"
#include "backends/cuda/cudnn/kernels/convolution.h"
#include "backends/cuda/device/conv_moments.cuh"

/* The argument with an epilogue (CONV_MOMENTS_WITH_EPILOGUE). */
typedef struct statistics_joined_args {
  struct conv_moments_args moments;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS];
} statistics_joined_args;
_Static_assert(sizeof(statistics_joined_args) <= 4096, "CUDA's limit of arguments");

static const char statistics_tail[] = "#include \"backends/cuda/device/conv_moments_kernels.cuh\"\n\n"
                                      "CONV_MOMENTS_WITH_EPILOGUE\n";

/* The convolution's result is the only one with several dims. */
static tn_cudnn_statements statistics_statements(const tn_match *m, int32_t n_statements,
                                                 int32_t n_operands) {
  return (tn_cudnn_statements){m, n_statements, n_operands, m->nodes[n_statements - 2].first_out};
}

/* ---- query ---- */

static tn_status statistics_check(tn_query *q, const tn_cudnn_statements *s) {
  const tn_match *m = q->match;
  if (!tn_cudnn_reduces_to_channels(m->nodes[s->n - 1].node->attributes, 4))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "the statistics are not those of channels");
  if (tn_cudnn_result_of(m, s->image) < 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "only the statistics of the convolution are read");
  return TN_OK;
}

tn_status tn_cudnn_statistics_offer(tn_query *q, int32_t n_statements, int32_t n_operands,
                                    const tn_cudnn_graph *g, const tn_cudnn_offer *offer) {
  const tn_cudnn_statements s = statistics_statements(q->match, n_statements, n_operands);
  tn_cudnn_offer all = *offer;
  TN_TRY(statistics_check(q, &s));
  all.plain_sums = 1;
  all.other_s += q->device->launch_s;
  return tn_cudnn_channel_offer(q, &s, statistics_tail, g, &all);
}

/* ---- prepare ---- */

tn_status tn_cudnn_statistics_prepare(tn_prepare *p, int32_t n_statements, tn_cudnn_statistics *s) {
  const tn_match *m = p->match;
  const tn_match_node *conv = &m->nodes[n_statements - 2], *moments = &m->nodes[n_statements - 1];
  const tn_type *y = &conv->node->out[0];
  const tn_cudnn_statements statements = statistics_statements(m, n_statements, m->n_in);
  s->channels = y->dims[1];
  s->count = (double)(tn_type_count(y) / s->channels);
  s->y = tn_cudnn_result_of(m, conv->first_out);
  s->mean = tn_cudnn_result_of(m, moments->first_out);
  s->variance = tn_cudnn_result_of(m, moments->first_out + 1);
  if (!tn_cudnn_has_epilogue(&statements))
    return tn_cuda_request(p, &s->finish, "conv_moments.cu", "conv_moments");
  return tn_cudnn_channel_request(p, &statements, "statistics and a region", statistics_tail, &s->finish,
                                  &s->epilogue);
}

void tn_cudnn_statistics_release(tn_cudnn_statistics *s) { tn_cuda_withdraw(&s->finish); }

int64_t tn_cudnn_statistics_workspace(int64_t channels) { return 2 * tn_cudnn_row_bytes(TN_F32, channels); }

/* ---- launch ---- */

static void *statistics_address(const tn_launch *l, int32_t result) {
  return result < 0 ? NULL : l->out[result].data;
}

tn_status tn_cudnn_statistics_launch(tn_launch *l, const tn_cudnn_statistics *s, char *sums) {
  statistics_joined_args a;
  a.moments = (struct conv_moments_args){
      .sum = (const float *)sums,
      .squares = (const float *)(sums + tn_cudnn_statistics_workspace(s->channels) / 2),
      .mean = statistics_address(l, s->mean),
      .variance = statistics_address(l, s->variance),
      .channels = s->channels,
      .count = s->count};
  return tn_cudnn_channel_launch(l, &s->finish, &s->epilogue, s->channels, &a, sizeof a.moments);
}
