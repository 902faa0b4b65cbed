/* core/step/update/state_dtypes.c: [optimizer] state_dtype (docs/decisions/0100-state-dtypes.md). An
 * optimizer sees its states as f32; in memory and in checkpoints they have 16 or 8 bits.
 *
 * bf16: the new state is rounded up or down at random, so that its mean is right: nearest rounding would lose
 * each change that is less than half of the last place. int8: blocks of 256 elements have a greatest
 * magnitude, of which each element is a part with 8 bits (dynamic_map.c). */
#include "core/base/text/text.h"
#include "core/graph/input_state.h"
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

/* ---- shapes ---- */

/* A value of a parameter's shape as rows of a block each; the last row is filled with zeros. */
static tn_val state_dtypes_rows(tn_build *b, tn_val value, int64_t rows) {
  tn_type type = *tn_val_type(b, value);
  int64_t count = tn_type_count(&type), rest = rows * TN_STATE_BLOCK - count;
  tn_val flat = tn_reshape(b, value, 1, &count);
  if (rest > 0) flat = tn_pad(b, flat, 1, (int64_t[]){0}, 1, (int64_t[]){rest}, 0, NULL);
  return tn_reshape(b, flat, 2, (int64_t[]){rows, TN_STATE_BLOCK});
}

static tn_val state_dtypes_unrow(tn_build *b, tn_val value, const tn_type *type) {
  int64_t count = tn_type_count(type), all = tn_type_count(tn_val_type(b, value));
  tn_val flat = tn_reshape(b, value, 1, &all);
  if (count < all) flat = tn_slice_axis(b, flat, 0, 0, count);
  return tn_reshape(b, flat, type->rank, type->dims);
}

/* ---- 16 bits ---- */

static tn_val state_dtypes_nearest(tn_build *b, tn_val value) {
  return tn_to_dtype(b, tn_to_dtype(b, value, TN_BF16), TN_F32);
}

/* The nearest bf16, or with the probability of the distance to it the one on the other side. That one is what
 * 5/8 to 5/4 of a last place beyond the nearest rounds to. The distances are exact, and so is their product
 * with a number of 24 bits. */
static tn_val state_dtypes_round(tn_build *b, const char *name, tn_val value) {
  const tn_type *type = tn_val_type(b, value);
  int64_t stream = (int64_t)tn_build_random_stream(b, name);
  tn_val random = tn_random_uniform(b, tn_build_counter(b, TN_ITERATION), 0, type, stream, 0, 1);
  tn_val nearest = state_dtypes_nearest(b, value);
  tn_val above = tn_gt(b, tn_abs(b, value), tn_abs(b, nearest));
  tn_val factor =
      tn_where(b, above, tn_scalar(b, TN_F32, 1 + 1.25 / 256), tn_scalar(b, TN_F32, 1 - 1.25 / 256));
  tn_val other = state_dtypes_nearest(b, tn_mul(b, nearest, factor));
  tn_val gap = tn_abs(b, tn_sub(b, other, nearest)), distance = tn_abs(b, tn_sub(b, value, nearest));
  tn_val chosen = tn_where(b, tn_lt(b, tn_mul(b, random, gap), distance), other, nearest);
  return tn_to_dtype(b, chosen, TN_BF16);
}

/* ---- places ---- */

/* How the optimizer describes a state; one that it makes in C is signed. */
static int32_t state_dtypes_values(const tn_updater *u, const char *name) {
  const tn_optimizer_state *state = u->settings->optimizer_kind->states;
  for (; state != NULL && state->name != NULL; state++)
    if (tn_text_equal(state->name, name)) return (int32_t)state->values;
  return TN_VALUES_SIGNED;
}

/* The dtype in which a state of this type is kept: states of another shape than the parameter's are small. */
static int32_t state_dtypes_of(const tn_updater *u, const char *name, const tn_type *type) {
  int32_t wanted = u->settings->optimizer.state_dtype;
  bool like = type->dtype == TN_F32 && tn_type_same_dims(type, tn_val_type(u->b, tn_build_in(u->b, 0)));
  if (wanted == TN_STATES_F32 || !like || state_dtypes_values(u, name) == TN_VALUES_EXACT) return TN_F32;
  if (wanted == TN_STATES_BF16) return TN_BF16;
  bool blocks = u->one != NULL ? tn_type_count(type) >= TN_STATE_LEAST : u->part->blocks;
  return blocks ? TN_U8 : TN_F32;
}

static tn_val state_dtypes_place(tn_updater *u, const char *name, tn_type type, const char *init) {
  if (u->one != NULL) return tn_updater_parameter_state(u->b, u, name, &type, init);
  return tn_updater_flat_state(u->b, u, name, &type, init);
}

/* As the optimizer sees it, from its place: in an elementwise optimizer, from a vector. */
static tn_type state_dtypes_stored(const tn_updater *u, const tn_type *type, int32_t dtype) {
  tn_type stored = {dtype, 1, {u->part->held}};
  if (u->one != NULL || type->rank == 0) stored = *type;
  stored.dtype = dtype;
  return stored;
}

static int64_t state_dtypes_count_rows(const tn_type *type) {
  return (tn_type_count(type) + TN_STATE_BLOCK - 1) / TN_STATE_BLOCK;
}

static const char *state_dtypes_path(const tn_updater *u, tn_val state) {
  const tn_gnode *maker = tn_graph_maker(u->graph, state);
  return ((const tn_state_attributes *)maker->attributes)->path;
}

/* ---- reading ---- */

/* The codes' numbers, times the greatest magnitude of each block. */
static tn_val state_dtypes_read_codes(tn_updater *u, tn_kept_state *kept, const tn_type *type, tn_val codes) {
  tn_build *b = u->b;
  const char *name = tn_arena_printf(u->arena, "%s.absmax", kept->name);
  int64_t rows = u->one != NULL ? state_dtypes_count_rows(type) : u->part->held / TN_STATE_BLOCK;
  if (name == NULL) {
    tn_builder_fail(b, TN_ENOMEM);
    return 0;
  }
  tn_val maxima = state_dtypes_place(u, name, (tn_type){TN_F32, 1, {rows}}, "zeros");
  if (tn_build_status(b) != TN_OK) return 0;
  kept->maxima = state_dtypes_path(u, maxima);
  maxima = u->one != NULL ? tn_reshape(b, maxima, 2, (int64_t[]){rows, 1}) : tn_updater_shape(u, maxima);
  kept->old_maxima = maxima;
  tn_val parts = tn_dynamic_map_decode(b, codes, kept->values == TN_VALUES_POSITIVE);
  if (u->one == NULL) return tn_mul(b, parts, maxima);
  return state_dtypes_unrow(b, tn_mul(b, state_dtypes_rows(b, parts, rows), maxima), type);
}

static tn_val state_dtypes_read(tn_updater *u, tn_kept_state *kept, const tn_type *type, const char *init) {
  tn_type stored = state_dtypes_stored(u, type, kept->dtype);
  tn_val state = state_dtypes_place(u, kept->name, stored, init);
  if (tn_build_status(u->b) != TN_OK) return 0;
  kept->path = state_dtypes_path(u, state);
  tn_val shaped = kept->old = tn_updater_shape(u, state);
  if (kept->dtype == TN_U8) return state_dtypes_read_codes(u, kept, type, shaped);
  return tn_to_dtype(u->b, shaped, TN_F32);
}

static tn_val state_dtypes_add(tn_updater *u, const char *name, const tn_type *type, const char *init,
                               int32_t dtype) {
  tn_kept_state *kept = tn_arena_alloc(u->arena, sizeof *kept);
  if (kept == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  *kept = (tn_kept_state){.name = tn_arena_strdup(u->arena, name),
                          .dtype = dtype,
                          .values = state_dtypes_values(u, name),
                          .before = u->kept};
  if (kept->name == NULL) {
    tn_builder_fail(u->b, TN_ENOMEM);
    return 0;
  }
  u->kept = kept;
  return kept->shown = state_dtypes_read(u, kept, type, init);
}

tn_val tn_updater_kept_state(tn_build *b, void *context, const char *name, const tn_type *type,
                             const char *init) {
  tn_updater *u = context;
  int32_t dtype = state_dtypes_of(u, name, type);
  bool shaped = u->one == NULL && u->part->blocks && type->rank > 0;
  if (dtype != TN_F32 || shaped) return state_dtypes_add(u, name, type, init, dtype);
  return u->one != NULL ? tn_updater_parameter_state(b, u, name, type, init)
                        : tn_updater_flat_state(b, u, name, type, init);
}

tn_val tn_updater_exact_state(tn_updater *u, const char *name, const tn_type *type) {
  if (u->one == NULL && u->part->blocks) return state_dtypes_add(u, name, type, "zeros", TN_F32);
  return state_dtypes_place(u, name, *type, "zeros");
}

/* ---- writing ---- */

bool tn_updater_keep(tn_updater *u, tn_val shown, tn_val next) {
  for (tn_kept_state *kept = u->kept; kept != NULL; kept = kept->before)
    if (kept->shown == shown) {
      kept->next = next;
      return true;
    }
  return false;
}

/* A value for each place of the kept states, and the new parameter. */
typedef struct state_values {
  const char **paths;
  tn_val *v, *old;
  int32_t n;
} state_values;

static void state_values_add(state_values *values, const char *path, tn_val value, tn_val old) {
  values->paths[values->n] = path;
  values->old[values->n] = old;
  values->v[values->n++] = value;
}

static void state_dtypes_encode(tn_updater *u, const tn_kept_state *kept, state_values *values) {
  tn_build *b = u->b;
  const tn_type type = *tn_val_type(b, kept->next);
  int64_t rows = state_dtypes_count_rows(&type), axis = 1;
  bool positive = kept->values == TN_VALUES_POSITIVE;
  tn_val value = u->one != NULL ? state_dtypes_rows(b, kept->next, rows) : kept->next;
  tn_val magnitude = positive ? value : tn_abs(b, value);
  tn_val maxima = tn_reduce_max(b, magnitude, 1, &axis, 1), none = tn_scalar(b, TN_F32, 0);
  tn_val part = tn_where(b, tn_gt(b, maxima, none), tn_div(b, magnitude, maxima), none);
  tn_val codes = tn_dynamic_map_encode(b, part, positive ? 0 : tn_sign(b, value), positive);
  state_values_add(values, kept->path, u->one != NULL ? state_dtypes_unrow(b, codes, &type) : codes,
                   kept->old);
  state_values_add(values, kept->maxima, u->one != NULL ? tn_reshape(b, maxima, 1, &rows) : maxima,
                   kept->old_maxima);
}

static void state_dtypes_store(tn_updater *u, const tn_kept_state *kept, state_values *values) {
  if (kept->next == 0) return;
  if (kept->dtype == TN_U8)
    state_dtypes_encode(u, kept, values);
  else if (kept->dtype == TN_BF16)
    state_values_add(values, kept->path, state_dtypes_round(u->b, kept->name, kept->next), kept->old);
  else
    state_values_add(values, kept->path, kept->next, kept->old);
}

tn_status tn_updater_store_states(tn_updater *u, tn_val param, tn_val *next) {
  size_t n = 1;
  for (const tn_kept_state *kept = u->kept; kept != NULL; kept = kept->before) n += 2;
  state_values values = {tn_arena_alloc(u->arena, n * sizeof *values.paths),
                         tn_arena_alloc(u->arena, n * sizeof *values.v),
                         tn_arena_alloc(u->arena, n * sizeof *values.old), 0};
  if (values.paths == NULL || values.v == NULL || values.old == NULL) return TN_ENOMEM;
  state_values_add(&values, "", *next, param);
  for (const tn_kept_state *kept = u->kept; kept != NULL; kept = kept->before)
    state_dtypes_store(u, kept, &values);
  TN_TRY(tn_updater_end_blocks(u, values.n, values.old, values.v));
  *next = values.v[0];
  for (int32_t i = 1; i < values.n; i++) TN_TRY(tn_graph_commit(u->graph, values.paths[i], values.v[i], 0));
  return tn_build_status(u->b);
}
