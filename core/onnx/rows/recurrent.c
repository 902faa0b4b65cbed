/* core/onnx/rows/recurrent.c: LSTM, GRU and RNN. With weights of the file and no first states they are
 * layers; else the op `recurrence` with weights that the graph computes. */
#include <string.h>

#include "core/onnx/import.h"

enum { MOST_GATES = 4, X = 0, W = 1, R = 2, B = 3, LENGTH = 4, H = 5, C = 6, P = 7 };

typedef struct recurrent {
  const char *cell, *layer; /* of the op, and of the layer with its options behind the units */
  int32_t gates;
  int32_t order[MOST_GATES]; /* where the file has each gate of Tenon */
  int64_t units, features, steps;
  int32_t directions;
  bool reverse;       /* the only direction goes backwards */
  bool batch_first;   /* the layout of the file */
  const char *x;      /* (N, steps, features) */
  const char *length; /* i32; NULL: all steps */
} recurrent;

/* ---- the node ---- */

static tn_status cell_check(const onnx_use *n, const recurrent *r) {
  const tn_onnx_attribute *functions = onnx_attribute(n, "activations");
  if (onnx_has(n, P)) return ONNX_REFUSE(n, "peepholes");
  if (functions != NULL && functions->text[0] != '\0' && r->gates > 1)
    return ONNX_REFUSE(n, "other functions of the gates");
  if (onnx_attribute(n, "clip") != NULL) return ONNX_REFUSE(n, "a limit of the gates");
  if (onnx_whole(n, "input_forget", 0) != 0)
    return ONNX_REFUSE(n, "an input gate that follows from the other");
  if (strcmp(r->cell, "gru") == 0 && onnx_whole(n, "linear_before_reset", 0) == 0)
    return ONNX_REFUSE(n, "the reset gate in front of the product (linear_before_reset = 0)");
  return TN_OK;
}

static tn_status recurrent_read(const onnx_use *n, recurrent *r) {
  const tn_type x = onnx_operand(n, X)->type, w = onnx_operand(n, W)->type;
  const char *direction = onnx_word(n, "direction", "forward");
  if (x.rank != 3 || w.rank != 3) return ONNX_REFUSE(n, "an operand of %d dimensions", x.rank);
  r->batch_first = onnx_whole(n, "layout", 0) != 0;
  r->directions = (int32_t)w.dims[0];
  r->units = onnx_whole(n, "hidden_size", w.dims[1] / r->gates);
  r->features = w.dims[2];
  r->steps = x.dims[r->batch_first ? 1 : 0];
  r->reverse = strcmp(direction, "reverse") == 0;
  if (r->directions < 1 || r->directions > 2 || r->units < 1 || w.dims[1] != r->gates * r->units)
    return ONNX_REFUSE(n, "weights of another shape than those of %d gates", r->gates);
  const char *turned = r->batch_first ? NULL : onnx_operand(n, X)->turned;
  const char *text = turned != NULL ? turned : onnx_text_of(n, X, false);
  if (text == NULL) return onnx_failed(n);
  r->x = r->batch_first || turned != NULL ? text : onnx_let(n, "transpose(%s, [1, 0, 2])", text);
  if (r->x == NULL) return onnx_failed(n);
  if (!onnx_has(n, LENGTH)) return TN_OK;
  r->length = onnx_text_of(n, LENGTH, false);
  return r->length != NULL ? TN_OK : onnx_failed(n);
}

/* ---- weights ---- */

/* One direction of a tensor of the file with its gates in Tenon's order: elements from `skip` gates on. */
typedef struct gate_part {
  recurrent r;
  int64_t direction, skip, stride; /* stride: gates of a direction in the file */
  int64_t columns;                 /* elements of a gate's unit */
} gate_part;

static void gate_shape(const void *how, const tn_type *type, const float *from, float *to) {
  (void)type;
  const gate_part *p = how;
  size_t gate = (size_t)(p->r.units * p->columns);
  for (int32_t g = 0; g < p->r.gates; g++)
    memcpy(to + (size_t)g * gate,
           from + ((size_t)p->direction * (size_t)p->stride + (size_t)(p->skip + p->r.order[g])) * gate,
           gate * sizeof *to);
}

static const tn_onnx_tensor *gate_tensor(const onnx_use *n, const recurrent *r, int32_t operand,
                                         int64_t direction, int64_t skip) {
  gate_part *p = tn_arena_alloc(&n->m->arena, sizeof *p);
  int64_t columns = operand == W ? r->features : operand == R ? r->units : 1;
  if (p == NULL) return NULL;
  *p = (gate_part){*r, direction, skip, operand == B ? 2 * r->gates : r->gates, columns};
  const tn_type type = {
      .dtype = TN_F32, .rank = operand == B ? 1 : 2, .dims = {r->gates * r->units, columns}};
  return onnx_derive(n->m, onnx_operand(n, operand)->tensor, &type, gate_shape, p);
}

static bool recurrent_is_layer(const onnx_use *n, const recurrent *r) {
  bool weights =
      onnx_is_weight(n, W, 3) && onnx_is_weight(n, R, 3) && (!onnx_has(n, B) || onnx_is_weight(n, B, 2));
  bool begins =
      (onnx_has(n, H) && !onnx_operand(n, H)->zero) || (onnx_has(n, C) && !onnx_operand(n, C)->zero);
  bool cell = onnx_wants(n, 2);
  return weights && !begins && !cell && (r->directions == 2 || !r->reverse);
}

/* ---- results ---- */

/* Exporters put the directions beside each other, by Squeeze, or by Transpose and Reshape: (steps, N,
 * directions
 * * units). *last: the node that has done so. */
static bool recurrent_is_joined(const onnx_use *n, const recurrent *r, onnx_use *last) {
  const int64_t *list;
  int32_t count;
  onnx_use turn;
  if (r->directions == 1 && onnx_next(n, "Squeeze", last))
    return onnx_wholes(last, "axes", 1, &list, &count) == TN_OK && count == 1 && list[0] == 1;
  if (!onnx_next(n, "Transpose", &turn) || !onnx_next(&turn, "Reshape", last)) return false;
  if (onnx_wholes(&turn, "perm", -1, &list, &count) != TN_OK || count != 4 || list[1] != 2 || list[2] != 1)
    return false;
  if (onnx_wholes(last, "shape", 1, &list, &count) != TN_OK || count != 3) return false;
  n->m->done.v[turn.number] = list[2] == -1 || list[2] == r->directions * r->units;
  return n->m->done.v[turn.number];
}

static tn_status recurrent_joined(const onnx_use *n, const onnx_use *last, const char *y) {
  tn_type type = *tn_growing_type(n->m->model, y);
  int64_t first = type.dims[0];
  type.dims[0] = type.dims[1];
  type.dims[1] = first;
  n->m->done.v[last->number] = true;
  return onnx_bind_lazy(last, onnx_print(n, "transpose(%s, [1, 0, 2])", y), &type, y);
}

/* Tenon has both directions beside each other: (N, steps, directions * units) as the file has them. */
static tn_status recurrent_all(const onnx_use *n, const recurrent *r, const char *y) {
  onnx_use last;
  if (!r->batch_first && recurrent_is_joined(n, r, &last)) return recurrent_joined(n, &last, y);
  const char *apart = onnx_print(n, "op.reshape(%s, dims=[-1, %lld, %d, %lld])", y, (long long)r->steps,
                                 r->directions, (long long)r->units);
  return r->batch_first ? onnx_compute(n, "%s", apart)
                        : onnx_compute(n, "transpose(%s, [1, 2, 0, 3])", apart);
}

/* Result k: (N, directions * units). */
static tn_status recurrent_last(const onnx_use *n, const recurrent *r, int32_t k, const char *last) {
  if (!onnx_wants(n, k) || last == NULL) return TN_OK;
  const char *apart =
      onnx_print(n, "op.reshape(%s, dims=[-1, %d, %lld])", last, r->directions, (long long)r->units);
  const char *line =
      r->batch_first ? onnx_let(n, "%s", apart) : onnx_let(n, "transpose(%s, [1, 0, 2])", apart);
  return line != NULL ? onnx_bind(n, k, line) : onnx_failed(n);
}

static tn_status recurrent_end(const onnx_use *n, const recurrent *r, const char *const parts[3]) {
  TN_TRY(recurrent_last(n, r, 1, parts[1]));
  TN_TRY(recurrent_last(n, r, 2, parts[2]));
  return onnx_wants(n, 0) ? recurrent_all(n, r, parts[0]) : TN_OK;
}

/* ---- as a layer ---- */

static tn_status recurrent_parameters(const onnx_use *n, const recurrent *r, const char *path) {
  static const struct {
    const char *name;
    int32_t operand, skip; /* skip in whole sets of gates */
  } rows[] = {{"weight_ih_l0", W, 0}, {"weight_hh_l0", R, 0}, {"bias_ih_l0", B, 0}, {"bias_hh_l0", B, 1}};
  for (int32_t d = 0; d < r->directions; d++)
    for (size_t i = 0; i < (onnx_has(n, B) ? 4 : 2); i++)
      TN_TRY(onnx_add_weight(
          n->m, tn_arena_printf(&n->m->arena, "%s.%s%s", path, rows[i].name, d == 1 ? "_reverse" : ""),
          gate_tensor(n, r, rows[i].operand, d, rows[i].skip * r->gates)));
  return TN_OK;
}

static tn_status recurrent_layer(const onnx_use *n, const recurrent *r) {
  const char *path = onnx_name(n);
  if (path == NULL) return TN_ENOMEM;
  const char *parts[3] = {path, onnx_unused(n->m, onnx_print(n, "%s_last", path)), NULL};
  const char *call = onnx_print(
      n, "%s(%lld%s%s%s)", r->layer, (long long)r->units, r->directions == 2 ? ", bidirectional=yes" : "",
      onnx_has(n, B) ? "" : ", bias=no", strcmp(r->cell, "relu") == 0 ? ", activation=relu" : "");
  const char *operands[] = {r->x, r->length};
  TN_TRY(onnx_add_layer(n->m, onnx_print(n, "%s, %s", path, parts[1]), 2, operands, r->length != NULL ? 2 : 1,
                        call));
  TN_TRY(recurrent_parameters(n, r, path));
  return recurrent_end(n, r, parts);
}

/* ---- as an op ---- */

/* Direction d of an operand with its gates in Tenon's order. */
static const char *gates_text(const onnx_use *n, const recurrent *r, int32_t operand, int32_t d,
                              int32_t skip) {
  const char *text = onnx_text_of(n, operand, false), *parts = "";
  if (text == NULL) return NULL;
  for (int32_t g = 0; g < r->gates; g++) {
    long long from = (skip + r->order[g]) * r->units;
    parts = onnx_print(n, "%s%s%s[%d, %lld:%lld]", parts, g > 0 ? ", " : "", text, d, from,
                       from + (long long)r->units);
  }
  return r->gates == 1 ? onnx_let(n, "%s", parts) : onnx_let(n, "concat(%s, axis=0)", parts);
}

/* The state before the first step: (N, units) of direction d. */
static const char *state_text(const onnx_use *n, const recurrent *r, int32_t operand, int32_t d) {
  const char *text = onnx_text_of(n, operand, false);
  if (text == NULL) return NULL;
  return r->batch_first ? onnx_let(n, "%s[:, %d]", text, d) : onnx_let(n, "%s[%d]", text, d);
}

static tn_status recurrent_direction(const onnx_use *n, const recurrent *r, int32_t d,
                                     const char *results[3]) {
  const char *w = gates_text(n, r, W, d, 0), *u = gates_text(n, r, R, d, 0), *options = "", *bias = "";
  if (w == NULL || u == NULL) return onnx_failed(n);
  if (onnx_has(n, B)) {
    bias = gates_text(n, r, B, d, 0);
    options = gates_text(n, r, B, d, r->gates);
    if (bias == NULL || options == NULL) return onnx_failed(n);
    bias = onnx_print(n, ", %s", bias);
  } else {
    options = onnx_let(n, "full([%lld], 0)", (long long)(r->gates * r->units));
  }
  const char *given = onnx_let(n, "matmul(%s, %s%s, transpose_b=yes)", r->x, w, bias);
  const char *h = onnx_has(n, H) ? state_text(n, r, H, d)
                                 : onnx_let(n, "full([dim(%s, 0), %lld], 0)", r->x, (long long)r->units);
  bool lstm = strcmp(r->cell, "lstm") == 0;
  const char *c = onnx_has(n, C) && lstm ? state_text(n, r, C, d) : lstm || r->length != NULL ? h : "";
  if (lstm && !onnx_has(n, C) && onnx_has(n, H)) c = onnx_let(n, "%s * 0", h);
  if (given == NULL || options == NULL || h == NULL || c == NULL) return onnx_failed(n);
  const char *all = onnx_print(n, "%s, %s, %s, %s%s%s", given, u, options, h, c[0] != '\0' ? ", " : "", c);
  if (r->length != NULL) all = onnx_print(n, "%s, %s", all, r->length);
  bool backwards = r->reverse || d == 1;
  for (int32_t k = 0; k < 3; k++) {
    results[k] =
        onnx_let(n, "recurrence(%s, cell=%s%s)[%d]", all, r->cell, backwards ? ", reverse=yes" : "", k);
    if (results[k] == NULL) return onnx_failed(n);
    if (k == 1 && strcmp(r->cell, "lstm") != 0) break;
  }
  return TN_OK;
}

static tn_status recurrent_op(const onnx_use *n, const recurrent *r) {
  const char *parts[2][3] = {{NULL}}, *whole[3] = {NULL};
  for (int32_t d = 0; d < r->directions; d++) TN_TRY(recurrent_direction(n, r, d, parts[d]));
  for (int32_t k = 0; k < 3; k++) {
    if (parts[0][k] == NULL) continue;
    whole[k] =
        r->directions == 1 ? parts[0][k] : onnx_let(n, "concat(%s, %s, axis=-1)", parts[0][k], parts[1][k]);
    if (whole[k] == NULL) return onnx_failed(n);
  }
  return recurrent_end(n, r, whole);
}

static tn_status recurrent_row(const onnx_use *n, recurrent *r) {
  TN_TRY(cell_check(n, r));
  TN_TRY(recurrent_read(n, r));
  return recurrent_is_layer(n, r) ? recurrent_layer(n, r) : recurrent_op(n, r);
}

static tn_status row_lstm(const onnx_use *n) {
  return recurrent_row(n, &(recurrent){.cell = "lstm", .layer = "lstm", .gates = 4, .order = {0, 2, 3, 1}});
}
static tn_status row_gru(const onnx_use *n) {
  return recurrent_row(n, &(recurrent){.cell = "gru", .layer = "gru", .gates = 3, .order = {1, 0, 2}});
}
static tn_status row_rnn(const onnx_use *n) {
  const tn_onnx_attribute *functions = onnx_attribute(n, "activations");
  bool relu = functions != NULL && strcmp(functions->text, "Relu") == 0;
  if (functions != NULL && !relu && strcmp(functions->text, "Tanh") != 0)
    return ONNX_REFUSE(n, "the function %.40s", functions->text);
  return recurrent_row(n, &(recurrent){.cell = relu ? "relu" : "tanh", .layer = "rnn", .gates = 1});
}

const onnx_row onnx_recurrent_rows[] = {
    {"LSTM", row_lstm, NULL, 3},
    {"GRU", row_gru, NULL, 3},
    {"RNN", row_rnn, NULL, 3},
    {NULL, NULL, NULL},
};
