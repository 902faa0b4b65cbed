/* plugins/layers/recurrent.c: lstm, gru and rnn, with the names, the shapes and the initial values of
 * PyTorch's parameters. The part of the gates that depends on the input is one matrix product for all steps;
 * core/ops/recurrence.c has the steps. */
#include "plugins/layers/layers.h"

typedef struct recurrent_options {
  int64_t units, layers;
  int32_t bidirectional, bias, activation;
  const char *init;
} recurrent_options;

#define RECURRENT_OPTIONS                                                                                    \
  TN_OPT(recurrent_options, units, TN_OPT_INT, NULL, "[1, 1000000]", "numbers of the state of a direction"), \
      TN_OPT(recurrent_options, layers, TN_OPT_INT, "1", "[1, 1000]",                                        \
             "layers, each on the outputs of the one before"),                                               \
      TN_OPT(recurrent_options, bidirectional, TN_OPT_FLAG, "no", NULL,                                      \
             "also from the last step to the first"),                                                        \
      TN_OPT(recurrent_options, bias, TN_OPT_FLAG, "yes", NULL,                                              \
             "learn a shift of each gate, of input and state"),                                              \
      TN_OPT(recurrent_options, init, TN_OPT_INIT, "default", NULL,                                          \
             "initializer of all parameters; default: uniform within 1 / sqrt(units)")

static const tn_option recurrent_rows[] = {RECURRENT_OPTIONS, TN_OPT_END};
static const tn_option rnn_rows[] = {
    RECURRENT_OPTIONS,
    TN_OPT(recurrent_options, activation, TN_OPT_ENUM, "tanh", "tanh|relu", "function of the sum"),
    TN_OPT_END};

/* One direction of one layer. */
typedef struct recurrent_direction {
  const recurrent_options *options;
  int32_t cell, reverse;
  int64_t gates, layer;
  tn_val x, length; /* length: 0 where all sequences have all steps */
} recurrent_direction;

/* "weight_ih_l0", "weight_ih_l0_reverse" */
static tn_val recurrent_param(tn_build *b, const recurrent_direction *d, const char *kind, int32_t rank,
                              int64_t columns) {
  char name[64], text[96];
  const tn_type type = {TN_F32, rank, {d->gates * d->options->units, columns}};
  snprintf(name, sizeof name, "%s_l%lld%s", kind, (long long)d->layer, d->reverse ? "_reverse" : "");
  return tn_build_param(b, name, &type,
                        layer_default_init(text, sizeof text, d->options->init, d->options->units));
}

/* Outputs (N, T, units); the second result is the state behind the last step. */
static tn_val recurrent_emit(tn_build *b, const recurrent_direction *d) {
  tn_type x = *tn_val_type(b, d->x);
  tn_val w = recurrent_param(b, d, "weight_ih", 2, x.dims[2]),
         state = recurrent_param(b, d, "weight_hh", 2, d->options->units);
  tn_val bias = d->options->bias ? recurrent_param(b, d, "bias_ih", 1, 0) : 0;
  tn_val state_bias = d->options->bias ? recurrent_param(b, d, "bias_hh", 1, 0) : 0;
  tn_val rows = tn_reshape(b, d->x, 2, (int64_t[]){x.dims[0] * x.dims[1], x.dims[2]});
  tn_val gates = tn_matmul(b, rows, w, bias, 0, 1, TN_MATH_FULL);
  gates = tn_reshape(b, gates, 3, (int64_t[]){x.dims[0], x.dims[1], d->gates * d->options->units});
  return tn_recurrence(b, gates, state, state_bias, 0, 0, d->length, d->cell, d->reverse);
}

static tn_val recurrent_join(tn_build *b, tn_val forward, tn_val backward, int64_t axis) {
  return backward == 0 ? forward : tn_concat(b, 2, (tn_val[]){forward, backward}, axis);
}

static tn_status recurrent_check(tn_build *b) {
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank != 3)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected (batch, steps, features)", x->rank);
  if (!tn_dtype_is_float(x->dtype))
    return tn_fail(b, TN_EINVAL, NULL, "the input is %s, expected floats; put embedding in front of ids",
                   tn_dtype_name(x->dtype));
  if (tn_build_n_in(b) < 2) return TN_OK;
  const tn_type *length = tn_val_type(b, tn_build_in(b, 1));
  if (length->dtype == TN_I32 && length->rank == 1) return TN_OK;
  return tn_fail(b, TN_EINVAL, NULL,
                 "the second input has rank %d and is %s, expected the number of steps of each sequence, "
                 "length: i32[]",
                 length->rank, tn_dtype_name(length->dtype));
}

static tn_status recurrent_build(tn_build *b, const recurrent_options *o, int32_t cell, int64_t gates) {
  TN_TRY(recurrent_check(b));
  recurrent_direction d = {.options = o,
                           .cell = cell,
                           .gates = gates,
                           .x = tn_build_in(b, 0),
                           .length = tn_build_n_in(b) > 1 ? tn_build_in(b, 1) : 0};
  tn_val last = 0;
  for (d.layer = 0; d.layer < o->layers; d.layer++) {
    tn_val backward = 0;
    d.reverse = 0;
    tn_val forward = recurrent_emit(b, &d);
    d.reverse = 1;
    if (o->bidirectional) backward = recurrent_emit(b, &d);
    last =
        recurrent_join(b, tn_op_result(b, forward, 1), backward != 0 ? tn_op_result(b, backward, 1) : 0, 1);
    d.x = recurrent_join(b, forward, backward, 2);
  }
  tn_build_yield(b, 0, d.x);
  tn_build_yield(b, 1, last);
  return TN_OK;
}

static tn_status build_lstm(tn_build *b, const void *options) {
  return recurrent_build(b, options, TN_CELL_LSTM, 4);
}
static tn_status build_gru(tn_build *b, const void *options) {
  return recurrent_build(b, options, TN_CELL_GRU, 3);
}
static tn_status build_rnn(tn_build *b, const void *options) {
  const recurrent_options *o = options;
  return recurrent_build(b, o, o->activation == 0 ? TN_CELL_TANH : TN_CELL_RELU, 1);
}

#define RECURRENT(name, doc, rows)                                                                           \
  const tn_layer_kind layer_##name = {                                                                       \
      .item = TN_ITEM(tn_layer_kind, TN_LAYER, #name, doc, recurrent_options, rows),                         \
      .min_in = 1,                                                                                           \
      .max_in = 2,                                                                                           \
      .types = "(N, steps, features), and the number of steps of each sequence (N) unless it has all; to "   \
               "(N, steps, units), zero behind the end of a sequence, and the last state (N, units); both "  \
               "directions beside each other",                                                               \
      .example =                                                                                             \
          "inputs = x: f32[20, 8]\nlayers =\n    all, last: " #name "(16)\n    fc: linear(2) <- last",       \
      .build = build_##name}
RECURRENT(lstm, "long short-term memory along the steps of a sequence", recurrent_rows);
RECURRENT(gru, "gated recurrent units along the steps of a sequence", recurrent_rows);
RECURRENT(rnn, "the plain recurrence h = tanh(w x + u h) along the steps of a sequence", rnn_rows);
