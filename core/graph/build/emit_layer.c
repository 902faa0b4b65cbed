/* core/graph/build/emit_layer.c: layers that are a formula of their inputs. */
#include "core/graph/build/emit_layer.h"

#include <string.h>

#include "core/base/arena.h"
#include "core/graph/build/emit_formula.h"
#include "tenon/ops.h"

enum { LAYER_INPUTS = 8, LAYER_OUTPUTS = 2 };

/* The names of the inputs, "x target", in the arena. */
static int32_t layer_split_names(tn_arena *arena, const char *text, const char **names) {
  int32_t n = 0;
  for (const char *at = text + strspn(text, " "); *at != '\0' && n < LAYER_INPUTS; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    names[n] = tn_arena_printf(arena, "%.*s", (int)length, at);
    if (names[n++] == NULL) return -1;
    at += length;
  }
  return n;
}

/* The inputs in the dtype of the first one. A target of another shape would broadcast without a word, so
 * it is refused. */
static tn_status layer_read_inputs(tn_build *b, const char *const *names, int32_t n, tn_val *in) {
  for (int32_t i = 0; i < n; i++) {
    in[i] = i < tn_build_n_in(b) ? tn_build_in(b, i) : 0;
    if (i == 0 || in[i] == 0) continue;
    if (!tn_type_same_dims(tn_val_type(b, in[0]), tn_val_type(b, in[i])))
      return tn_fail(b, TN_EINVAL, NULL, "%s and %s have different shapes, expected the same shape", names[0],
                     names[i]);
    in[i] = tn_to_dtype(b, in[i], tn_val_type(b, in[0])->dtype);
  }
  return tn_build_status(b);
}

static tn_status layer_emit_formula(tn_build *b, tn_arena *arena, const tn_layer_kind *kind,
                                    const void *options) {
  static const char *const targets[LAYER_OUTPUTS] = {"y", "weight"};
  static const int32_t dtypes[LAYER_OUTPUTS] = {TN_ANY, TN_ANY};
  static const bool want[LAYER_OUTPUTS] = {true, true};
  const char *names[LAYER_INPUTS];
  tn_val in[LAYER_INPUTS] = {0}, yielded[LAYER_OUTPUTS] = {0};
  int32_t n = layer_split_names(arena, kind->inputs, names);
  if (n < 0) return TN_ENOMEM;
  TN_TRY(layer_read_inputs(b, names, n, in));
  tn_formula formula = {.what = "formula",
                        .text = kind->formula,
                        .item = &kind->item,
                        .given = names,
                        .n_given = n,
                        .targets = targets,
                        .n_targets = LAYER_OUTPUTS,
                        .dtypes = dtypes,
                        .expects = "y, or weight",
                        .partial = true};
  TN_TRY(tn_formula_parse(b, arena, false, &formula));
  TN_TRY(tn_formula_emit_partial(b, &formula, options, in, want, yielded));
  for (int32_t i = 0; i < LAYER_OUTPUTS; i++)
    if (yielded[i] != 0) tn_build_yield(b, i, yielded[i]);
  return TN_OK;
}

tn_status tn_layer_emit_ops(tn_build *b, const tn_layer_kind *kind, const void *options) {
  if (kind->build != NULL) return kind->build(b, options);
  tn_arena arena = tn_arena_new(b);
  tn_status status = layer_emit_formula(b, &arena, kind, options);
  tn_arena_free(&arena);
  return status;
}
