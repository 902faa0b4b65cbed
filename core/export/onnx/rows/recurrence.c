/* core/export/onnx/rows/recurrence.c: LSTM, GRU and the plain recurrence. The op has the product of input and
 * weight in x already, so the weight of the operators' own product is the identity. Gates change their order:
 * i f g o to i o f g, r z n to z r n. */
#include <stdio.h>
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

enum { X, W, BIAS, H, C, LENGTH };

typedef struct recurrence_form {
  const char *op, *activation;
  int32_t gates, order[4];
} recurrence_form;

static const recurrence_form forms[] = {[TN_CELL_LSTM] = {"LSTM", "", 4, {0, 3, 1, 2}},
                                        [TN_CELL_GRU] = {"GRU", ", linear_before_reset=1", 3, {1, 0, 2}},
                                        [TN_CELL_TANH] = {"RNN", "", 1, {0}},
                                        [TN_CELL_RELU] = {"RNN", ", activations=['Relu']", 1, {0}}};

static const recurrence_form *recurrence_form_of(const export_use *u) {
  const tn_recurrence_attributes *a = u->node->attributes;
  return &forms[a->cell];
}

/* The rows of a weight in the order of ONNX: indices for Gather. */
static const char *recurrence_order(const export_use *u, int64_t units) {
  const recurrence_form *form = recurrence_form_of(u);
  int64_t *order = tn_arena_alloc(&u->x->arena, (size_t)(form->gates * units) * sizeof *order + 1);
  if (order == NULL) return NULL;
  for (int32_t g = 0; g < form->gates; g++)
    for (int64_t k = 0; k < units; k++) order[g * units + k] = form->order[g] * units + k;
  return export_list(u->x, order, form->gates * units);
}

static const char *recurrence_identity(const export_use *u, int64_t n) {
  const tn_type type = {.dtype = TN_F32, .rank = 2, .dims = {n, n}};
  float *v = tn_arena_alloc(&u->x->arena, tn_type_bytes(&type) + 1);
  for (int64_t i = 0; v != NULL && i < n; i++) v[i * n + i] = 1;
  return v != NULL ? export_constant(u->x, &type, v) : NULL;
}

/* Inputs that may be absent, as templates. */
static const char *recurrence_start(const export_use *u, int32_t i, const char *name) {
  return export_has(u, i) ? tn_arena_printf(&u->x->arena, "Unsqueeze(%s, [0])", name) : "_";
}

/* Results in PyTorch's order (batch, steps, units); those of a step without the dimension of directions. */
static tn_status recurrence_write(const export_use *u) {
  const tn_recurrence_attributes *a = u->node->attributes;
  const recurrence_form *form = recurrence_form_of(u);
  int64_t units = export_type(u, W)->dims[1];
  const char *order = recurrence_order(u, units), *identity = recurrence_identity(u, form->gates * units);
  const char *rows =
      export_has(u, BIAS) ? tn_arena_printf(&u->x->arena, "rows = Gather(bias, '%s'); ", order) : "";
  const char *h = recurrence_start(u, H, "h"), *c = recurrence_start(u, C, "c");
  bool lstm = a->cell == TN_CELL_LSTM;
  if (order == NULL || identity == NULL || h == NULL || c == NULL || rows == NULL) return TN_ENOMEM;
  return export_yield(
      u,
      "%ssteps = Transpose(x, perm=[1, 0, 2]); %s = %s(steps, Unsqueeze(Gather('%s', '%s'), [0]), "
      "Unsqueeze(Gather(w, '%s'), [0]), %s, %s, %s%s%s, hidden_size=%lld, direction='%s'%s); "
      "Transpose(Squeeze(all, [1]), perm=[1, 0, 2]); Squeeze(last, [0])%s",
      rows, lstm ? "all, last, cell" : "all, last", form->op, identity, order, order,
      export_has(u, BIAS) ? "Unsqueeze(Concat(Mul(rows, 0), rows, axis=0), [0])" : "_",
      export_has(u, LENGTH) ? "length" : "_", h, lstm ? ", " : "", lstm ? c : "", (long long)units,
      a->reverse ? "reverse" : "forward", form->activation, lstm ? "; Squeeze(cell, [0])" : "");
}

static bool recurrence_takes(const export_use *u) { return export_type(u, X)->dtype == TN_F32; }

const export_row export_rows_recurrence[] = {
    {"recurrence", .emit = recurrence_write, .takes = recurrence_takes, .results = 3},
    {NULL},
};
