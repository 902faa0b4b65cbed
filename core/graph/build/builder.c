/* core/graph/build/builder.c: creates and destroys builders; the function table behind a tn_build. */
#include "core/graph/build/builder.h"

static const tn_build_ops builder_ops = {
    .begin = tn_emit_begin,
    .arg = tn_emit_arg,
    .set_int = tn_emit_set_int,
    .set_float = tn_emit_set_float,
    .set_ints = tn_emit_set_ints,
    .set_floats = tn_emit_set_floats,
    .set_text = tn_emit_set_text,
    .end = tn_emit_end,
    .result = tn_emit_result,
    .type = tn_emit_type,
    .n_in = tn_frame_n_in,
    .in = tn_frame_in,
    .out = tn_frame_out,
    .dout = tn_frame_out_grad,
    .want = tn_frame_wants_grad,
    .yield = tn_frame_yield,
    .param = tn_frame_param,
    .state = tn_frame_state,
    .commit = tn_frame_commit,
    .layer = tn_frame_layer,
    .option_value = tn_frame_option_value,
    .counter = tn_frame_counter,
    .stream = tn_frame_random_stream,
    .training = tn_frame_training,
    .ranks = tn_frame_ranks,
    .frozen = tn_frame_frozen,
    .status = tn_builder_status,
};

tn_status tn_builder_create(tn_graph *graph, tn_builder **builder) {
  tn_builder *b = tn_alloc(graph->env, sizeof *b);
  *builder = b;
  if (b == NULL) return TN_ENOMEM;
  b->host.pub.env = *graph->env;
  b->host.ops = &builder_ops;
  b->graph = graph;
  return TN_OK;
}

void tn_builder_destroy(tn_builder *b) {
  if (b == NULL) return;
  const tn_env *env = b->graph->env;
  tn_vec_free(env, &b->ops);
  tn_vec_free(env, &b->args);
  tn_vec_free(env, &b->frames);
  tn_vec_free(env, &b->layers);
  tn_release(env, b);
}

tn_graph *tn_builder_graph(tn_build *b) { return tn_builder_of(b)->graph; }
