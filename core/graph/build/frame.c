/* core/graph/build/frame.c: the calls of a tn_build that the top frame answers. */
#include <string.h>

#include "core/graph/build/builder.h"
#include "core/graph/input_state.h"
#include "tenon/ops.h"
#include "tenon/random.h"

static const char *frame_text(const char *text) { return text != NULL ? text : ""; }

static tn_status frame_unavailable(const tn_builder *b, const char *call) {
  return tn_failf(b->graph->env, TN_EINVAL, "%s is not available here, see tenon/build.h", call);
}

/* ---- values ---- */

int32_t tn_frame_n_in(tn_build *handle) { return tn_builder_top(tn_builder_of(handle))->n_in; }

static tn_val frame_value(tn_builder *b, const char *call, const tn_val *values, int32_t n, int32_t index) {
  if (b->status != TN_OK) return 0;
  if (index >= 0 && index < n) return values[index];
  tn_builder_stick(b, tn_failf(b->graph->env, TN_EINVAL,
                               "%s(b, %d): the frame has %d values, see tenon/build.h", call, index, n));
  return 0;
}

tn_val tn_frame_in(tn_build *handle, int32_t index) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  return frame_value(b, "tn_build_in", f->in, f->n_in, index);
}

tn_val tn_frame_out(tn_build *handle, int32_t index) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  return frame_value(b, "tn_build_out", f->out, f->out != NULL ? f->n_out : 0, index);
}

tn_val tn_frame_out_grad(tn_build *handle, int32_t index) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  return frame_value(b, "tn_build_out_grad", f->dout, f->dout != NULL ? f->n_out : 0, index);
}

int32_t tn_frame_wants_grad(tn_build *handle, int32_t index) {
  const tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  return b->status == TN_OK && f->want != NULL && index >= 0 && index < f->n_in && f->want[index];
}

static tn_status frame_yield(const tn_builder *b, int32_t index, tn_val value) {
  const tn_build_frame *f = tn_builder_top(b);
  const tn_env *env = b->graph->env;
  if (f->yielded == NULL) return frame_unavailable(b, "tn_build_yield");
  if (index < 0 || index >= f->n_yield)
    return tn_failf(env, TN_EINVAL, "tn_build_yield(b, %d): expected 0 to %d", index, f->n_yield - 1);
  if (f->yielded[index] != 0)
    return tn_failf(env, TN_EINVAL, "tn_build_yield(b, %d): it was yielded already", index);
  if (value >= b->graph->values.n)
    return tn_failf(env, TN_EINVAL, "tn_build_yield(b, %d): value %u is not of this graph", index, value);
  f->yielded[index] = value;
  return TN_OK;
}

void tn_frame_yield(tn_build *handle, int32_t index, tn_val value) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status == TN_OK) tn_builder_stick(b, frame_yield(b, index, value));
}

/* ---- state ---- */

static const char *frame_path(tn_builder *b, const tn_build_frame *f, const char *name) {
  if (f->path != NULL) return f->path(f->context, name);
  const char *prefix = frame_text(f->prefix);
  return tn_arena_printf(&b->graph->arena, "%s%s%s", prefix, prefix[0] != '\0' && name[0] != '\0' ? "." : "",
                         name);
}

static tn_val frame_state(tn_builder *b, const char *name, const tn_type *type, const char *init,
                          int32_t what) {
  if (b->status != TN_OK) return 0;
  if (!tn_builder_need(&b->host.pub, name, "the name of a parameter or state") ||
      !tn_builder_need(&b->host.pub, type, "the type of a parameter or state"))
    return 0;
  const tn_build_frame *f = tn_builder_top(b);
  if (f->param != NULL && what == TN_STATE_PARAM) return f->param(&b->host.pub, f->context, name, type, init);
  if (f->state != NULL) return f->state(&b->host.pub, f->context, name, type, init);
  const char *path = frame_path(b, f, name);
  if (path == NULL) {
    tn_builder_stick(b, TN_ENOMEM);
    return 0;
  }
  tn_val v = tn_graph_state(b->graph, path, type, what, frame_text(init), frame_text(f->where));
  if (v == 0) tn_builder_stick(b, b->graph->env->record->code);
  return v;
}

tn_val tn_frame_param(tn_build *handle, const char *name, const tn_type *type, const char *init) {
  return frame_state(tn_builder_of(handle), name, type, init, TN_STATE_PARAM);
}

/* The commit that an earlier use of the same layer has made; NULL: this use is the first. */
static tn_gcommit *frame_find_commit(tn_graph *g, const char *path) {
  for (size_t i = 0; i < g->commits.n; i++)
    if (tn_text_equal(g->commits.v[i].path, path)) return &g->commits.v[i];
  return NULL;
}

/* A layer that is used twice moves its statistics twice: the second use begins with what the first one has
 * committed. */
tn_val tn_frame_state(tn_build *handle, const char *name, const tn_type *type, const char *init) {
  tn_builder *b = tn_builder_of(handle);
  tn_val v = frame_state(b, name, type, init, TN_STATE_BUFFER);
  const tn_build_frame *f = b->status == TN_OK && v != 0 ? tn_builder_top(b) : NULL;
  if (f == NULL || f->state != NULL || f->commit != NULL) return v;
  const tn_gnode *maker = tn_graph_maker(b->graph, v);
  if (maker->op != &tn_op_state) return v;
  const char *path = ((const tn_state_attributes *)maker->attributes)->path;
  if (tn_name_index_find(&b->graph->commit_paths, path) == TN_NAME_INDEX_NONE) return v;
  return frame_find_commit(b->graph, path)->value;
}

static bool frame_is_frozen(const tn_graph *g, const char *path) {
  return g->freeze != NULL && tn_is_frozen(g->freeze, path, g->epoch);
}

static tn_status frame_commit(const tn_builder *b, tn_val state, tn_val now) {
  tn_graph *g = b->graph;
  for (size_t i = 0; i < g->commits.n; i++)
    if (state != 0 && g->commits.v[i].value == state) { /* of the use before (tn_frame_state) */
      g->commits.v[i].value = now;
      return TN_OK;
    }
  const tn_gnode *maker = state != 0 && state < g->values.n ? tn_graph_maker(g, state) : NULL;
  if (maker == NULL || maker->op != &tn_op_state)
    return tn_failf(g->env, TN_EINVAL,
                    "tn_build_commit: the value given is no state, expected a result of tn_build_state");
  const tn_state_attributes *a = maker->attributes;
  bool buffer = a->what + 1 == TN_STATE_BUFFER; /* the attribute counts from 0 */
  if (buffer && frame_is_frozen(g, a->path)) return TN_OK;
  return tn_graph_commit(g, a->path, now, 0);
}

void tn_frame_commit(tn_build *handle, tn_val state, tn_val now) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  if (b->status != TN_OK) return;
  if (f->commit != NULL)
    f->commit(handle, f->context, state, now);
  else
    tn_builder_stick(b, frame_commit(b, state, now));
}

/* ---- callbacks of the frame ---- */

tn_val tn_frame_layer(tn_build *handle, const char *name, const char *line, const tn_val *in, int32_t n_in) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  if (b->status != TN_OK) return 0;
  if (f->layer == NULL) {
    tn_builder_stick(b, frame_unavailable(b, "tn_build_layer"));
    return 0;
  }
  if (!tn_builder_need(handle, line, "tn_build_layer: line") ||
      (n_in > 0 && !tn_builder_need(handle, in, "tn_build_layer: in")))
    return 0;
  tn_val first = f->layer(handle, f->context, name, line, in, n_in);
  return b->status == TN_OK ? first : 0;
}

tn_val tn_frame_option_value(tn_build *handle, const char *option) {
  tn_builder *b = tn_builder_of(handle);
  const tn_build_frame *f = tn_builder_top(b);
  if (b->status != TN_OK) return 0;
  if (f->option_value == NULL) {
    tn_builder_stick(b, frame_unavailable(b, "tn_build_option_value"));
    return 0;
  }
  if (!tn_builder_need(handle, option, "tn_build_option_value: option")) return 0;
  tn_val value = f->option_value(handle, f->context, option);
  return b->status == TN_OK ? value : 0;
}

/* ---- counters, random streams ---- */

tn_val tn_frame_counter(tn_build *handle, int32_t which) {
  tn_builder *b = tn_builder_of(handle);
  const tn_type scalar = {.dtype = TN_I64};
  if (b->status != TN_OK) return 0;
  if (which == TN_BATCH_BLOCK && b->graph->ranks == 1 && b->graph->micro_batches == 1) return 0;
  if (which != TN_ITERATION && which != TN_UPDATES && which != TN_BATCH_BLOCK) {
    tn_builder_stick(
        b, tn_failf(handle, TN_EINVAL,
                    "tn_build_counter(b, %d): expected TN_ITERATION, TN_UPDATES or TN_BATCH_BLOCK", which));
    return 0;
  }
  const tn_build_frame *f = tn_builder_top(b);
  if (f->counter != NULL) return f->counter(handle, f->context, which);
  tn_val v =
      which == TN_UPDATES
          ? tn_graph_state(b->graph, TN_UPDATES_STATE, &scalar, TN_STATE_HOST, "zeros", "")
          : tn_graph_input(b->graph, which == TN_BATCH_BLOCK ? TN_BLOCK_INPUT : TN_ITERATION_INPUT, &scalar);
  if (v == 0) tn_builder_stick(b, b->graph->env->record->code);
  return which == TN_UPDATES && v != 0 ? tn_add(handle, v, tn_scalar(handle, TN_I64, 1)) : v;
}

/* The key depends on the seed, the prefix and the use, not on the order of building. */
uint64_t tn_frame_random_stream(tn_build *handle, const char *use) {
  const tn_build_frame *f = tn_builder_top(tn_builder_of(handle));
  if (!tn_builder_need(handle, use, "tn_build_random_stream: use")) return 0;
  const char *prefix = frame_text(f->prefix);
  uint64_t hash = tn_hash_bytes(TN_HASH_START, prefix, strlen(prefix));
  hash = tn_hash_bytes(hash, "/", 1);
  return tn_hash_mix(f->seed, tn_hash_bytes(hash, use, strlen(use)));
}

int32_t tn_frame_training(tn_build *handle) { return tn_builder_top(tn_builder_of(handle))->training; }

int32_t tn_frame_ranks(tn_build *handle) { return tn_builder_of(handle)->graph->ranks; }

int32_t tn_frame_frozen(tn_build *handle, const char *name) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status != TN_OK || b->graph->freeze == NULL) return 0;
  const char *path = frame_path(b, tn_builder_top(b), name);
  if (path == NULL) tn_builder_stick(b, TN_ENOMEM);
  return path != NULL && frame_is_frozen(b->graph, path);
}
