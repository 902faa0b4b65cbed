/* core/graph/build/builder.c: the builder's life, its frames, and the error that sticks. */
#include "core/graph/build/builder.h"

#include <string.h>

/* The status with its text back in the handle: other calls may have left theirs there. */
static tn_status builder_status(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status == TN_OK) return TN_OK;
  tn_error_record *record = handle->env.record;
  record->code = b->status;
  memcpy(record->option, b->option, sizeof record->option);
  memcpy(record->text, b->text, sizeof record->text);
  return b->status;
}

const tn_build_ops tn_builder_ops = {
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
    .n_in = tn_around_n_in,
    .in = tn_around_in,
    .out = tn_around_out,
    .dout = tn_around_dout,
    .want = tn_around_want,
    .yield = tn_around_yield,
    .param = tn_around_param,
    .state = tn_around_state,
    .commit = tn_around_commit,
    .layer = tn_around_layer,
    .option_value = tn_around_option_value,
    .counter = tn_around_counter,
    .stream = tn_around_stream,
    .training = tn_around_training,
    .ranks = tn_around_ranks,
    .status = builder_status,
};

tn_status tn_builder_create(tn_graph *graph, tn_builder **builder) {
  tn_builder *b = tn_alloc(graph->env, sizeof *b);
  *builder = b;
  if (b == NULL) return TN_ENOMEM;
  b->host.pub.env = *graph->env;
  b->host.ops = &tn_builder_ops;
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

/* ---- errors ---- */

static void keep(tn_builder *b, tn_status status) {
  const tn_error_record *record = b->graph->env->record;
  b->status = status;
  memcpy(b->option, record->option, sizeof b->option);
  memcpy(b->text, record->text, sizeof b->text);
}

_Static_assert(sizeof(((tn_builder *)0)->text) == sizeof(((tn_error_record *)0)->text) &&
                   sizeof(((tn_builder *)0)->option) == sizeof(((tn_error_record *)0)->option),
               "a builder keeps what a record holds");

void tn_builder_fail(tn_build *handle, tn_status status) {
  tn_builder *b = tn_builder_of(handle);
  if (status == TN_OK) return;
  const tn_error_record *record = handle->env.record;
  bool said = record->code == status && record->text[0] != '\0';
  if (b->status == TN_OK) {
    if (!said) tn_failf(handle, status, "%s", tn_status_name(status));
    keep(b, status);
  } else if (said && strstr(record->text, b->text) != NULL) {
    keep(b, status);
  } else {
    builder_status(handle);
  }
}

tn_status tn_builder_stick(tn_builder *b, tn_status status) {
  if (status == TN_OK || b->status != TN_OK) return status;
  const tn_env *env = b->graph->env;
  const char *where = tn_builder_top(b)->where;
  if (where != NULL && where[0] != '\0' && !tn_text_starts(tn_error_text(env), where))
    tn_wrap(env, status, "%s", where);
  tn_builder_fail(&b->host.pub, status);
  return status;
}

tn_status tn_builder_wrap(tn_build *handle, tn_status status, const char *what, const char *op) {
  tn_builder *b = tn_builder_of(handle);
  const tn_error_record *record = handle->env.record;
  if (status == TN_OK) return TN_OK;
  const char *where = tn_builder_top(b)->where,
             *text = record->code == status ? record->text : tn_status_name(status);
  if (where == NULL) where = "";
  if (where[0] != '\0' && tn_text_starts(text, where)) text += strlen(where);
  if (where[0] != '\0' && tn_text_starts(text, ": ")) text += 2;
  tn_fail(handle, status, record->option, "%s%s%s of %s: %s", where, where[0] != '\0' ? ": " : "", what, op,
          text);
  keep(b, status);
  return status;
}

/* ---- frames ---- */

const tn_build_frame *tn_builder_top(const tn_builder *b) {
  static const tn_build_frame none = {.prefix = "", .where = ""};
  return b->frames.n > 0 ? b->frames.v[b->frames.n - 1].frame : &none;
}

const tn_build_frame *tn_builder_frame(tn_build *b) { return tn_builder_top(tn_builder_of(b)); }

void tn_builder_push(tn_build *handle, const tn_build_frame *frame) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_frame open = {frame, b->ops.n};
  if (b->lost_frames == 0 && tn_vec_push(handle, &b->frames, open) == TN_OK) return;
  b->lost_frames++;
  tn_builder_fail(handle, TN_ENOMEM);
}

void tn_builder_pop(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  if (b->lost_frames > 0) {
    b->lost_frames--;
    return;
  }
  if (b->frames.n == 0) {
    tn_builder_stick(b, tn_failf(handle, TN_EINTERNAL, "a frame was popped that had not been pushed"));
    return;
  }
  const tn_open_frame *top = &b->frames.v[b->frames.n - 1];
  if (b->status == TN_OK && b->ops.n > top->n_ops)
    tn_builder_stick(b, tn_failf(handle, TN_EINVAL, "%s: tn_op_begin without tn_op_end",
                                 b->ops.v[b->ops.n - 1].def->op->item.name));
  b->frames.n--;
}

/* ---- layers with several outputs ---- */

void tn_builder_results(tn_build *handle, const tn_val *values, int32_t n) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status != TN_OK || n < 2) return;
  tn_layer_results results = {tn_arena_copy(&b->graph->arena, values, (size_t)n * sizeof *values), n};
  if (results.values == NULL || tn_vec_push(handle, &b->layers, results) != TN_OK)
    tn_builder_fail(handle, TN_ENOMEM);
}
