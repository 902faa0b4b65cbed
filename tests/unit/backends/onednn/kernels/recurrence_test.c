#include "backends/onednn/kernels/recurrence.h"
#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_recurrence_grad, tn_kernel_onednn_recurrence,
    tn_kernel_onednn_recurrence_inference, tn_kernel_onednn_recurrent_layer,
    tn_kernel_onednn_recurrent_layer_inference, tn_kernel_onednn_recurrence_grad;

/* ---- recurrence by definition, in f64; with a product in front of it where there are eight operands ---- */

static tn_status naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  v.prepared_bytes = sizeof(tn_recurrence_attributes);
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_recurrence_attributes naive_attributes;

static tn_status naive_prepare(tn_prepare *p, void **made) {
  naive_attributes =
      *(const tn_recurrence_attributes *)p->match->nodes[p->match->n_nodes - 1].node->attributes;
  *made = &naive_attributes;
  return TN_OK;
}

typedef struct naive_call {
  const tn_view *in, *weight, *out; /* weight: that of the state; behind it bias, h, c, length */
  bool whole;
  int64_t steps, units, columns, features;
} naive_call;

static double naive_value(const tn_view *v, int64_t i) {
  return v->data != NULL ? rig_get(&v->type, v->data, i) : 0;
}
static double naive_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Gate r of the input of step `at`, and that of the state. */
static double naive_input(const naive_call *n, int64_t at, int64_t r) {
  if (!n->whole) return naive_value(&n->in[0], at * n->columns + r);
  double sum = naive_value(&n->in[2], r);
  for (int64_t k = 0; k < n->features; k++)
    sum += naive_value(&n->in[0], at * n->features + k) * naive_value(&n->in[1], r * n->features + k);
  return sum;
}
static double naive_product(const naive_call *n, const double *h, int64_t r) {
  double sum = naive_value(&n->weight[1], r);
  for (int64_t k = 0; k < n->units; k++) sum += h[k] * naive_value(n->weight, r * n->units + k);
  return sum;
}

static void naive_store(const naive_call *n, int32_t result, int64_t at, double x) {
  const tn_view *v = &n->out[result];
  if (v->data != NULL) rig_put(&v->type, v->data, at, x);
}

/* The state of unit u behind a step; t has the numbers of `stored`. */
static double naive_cell(const double *x, const double *p, double h, double *c, double *t) {
  switch (naive_attributes.cell) {
  case TN_CELL_LSTM:
    for (int32_t g = 0; g < 4; g++) t[g] = g == 2 ? tanh(x[g] + p[g]) : naive_sigmoid(x[g] + p[g]);
    t[4] = *c = t[1] * *c + t[0] * t[2];
    return t[3] * tanh(*c);
  case TN_CELL_GRU:
    for (int32_t g = 0; g < 2; g++) t[g] = naive_sigmoid(x[g] + p[g]);
    t[2] = tanh(x[2] + t[0] * p[2]);
    t[3] = p[2];
    return (1 - t[1]) * t[2] + t[1] * h;
  case TN_CELL_TANH: return tanh(x[0] + p[0]);
  default: return fmax(x[0] + p[0], 0);
  }
}

static void naive_step(const naive_call *n, int64_t at, const double *h, double *c, double *next,
                       int64_t stored) {
  for (int64_t u = 0; u < n->units; u++) {
    double x[4], p[4], t[5];
    for (int64_t g = 0; g * n->units < n->columns; g++) {
      x[g] = naive_input(n, at, g * n->units + u);
      p[g] = naive_product(n, h, g * n->units + u);
    }
    next[u] = naive_cell(x, p, h[u], &c[u], t);
    naive_store(n, 0, at * n->units + u, next[u]);
    for (int64_t k = 0; k < stored; k++) naive_store(n, 3, (at * stored + k) * n->units + u, t[k]);
  }
}

static tn_status naive_launch(tn_launch *l) {
  static const int64_t stored[] = {5, 4, 0, 0};
  naive_call n = {.in = l->in, .out = l->out, .whole = l->n_in == 8};
  n.weight = &l->in[n.whole ? 3 : 1];
  n.steps = l->out[0].type.dims[1];
  n.units = l->out[0].type.dims[2];
  n.columns = n.weight->type.dims[0];
  n.features = n.whole ? l->in[1].type.dims[1] : 0;
  double *state = calloc((size_t)(3 * n.units + 1), sizeof *state), *h = state, *next = h + n.units,
         *c = next + n.units;
  for (int64_t row = 0; row < l->out[0].type.dims[0]; row++) {
    int64_t length = n.weight[4].data != NULL ? ((const int32_t *)n.weight[4].data)[row] : n.steps;
    for (int64_t u = 0; u < n.units; u++) {
      h[u] = naive_value(&n.weight[2], row * n.units + u);
      c[u] = naive_value(&n.weight[3], row * n.units + u);
    }
    for (int64_t k = 0; k < length; k++) {
      int64_t at = row * n.steps + (naive_attributes.reverse ? length - 1 - k : k);
      naive_step(&n, at, h, c, next, l->n_out > 3 ? stored[naive_attributes.cell] : 0);
      memcpy(h, next, (size_t)n.units * sizeof *h);
    }
    for (int64_t u = 0; u < n.units; u++) {
      naive_store(&n, 1, row * n.units + u, h[u]);
      if (naive_attributes.cell == TN_CELL_LSTM) naive_store(&n, 2, row * n.units + u, c[u]);
    }
  }
  free(state);
  return TN_OK;
}

static const tn_kernel naive = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "recurrence as it is defined"),
    .family = "cpu",
    .pattern = "y, last, cell, stored = recurrence(x, w, bias?, h?, c?, length?)",
    .query = naive_query,
    .prepare = naive_prepare,
    .launch = naive_launch,
};

/* ---- cases ---- */

typedef struct case_sizes {
  int64_t batch, steps, units, features; /* features: 0 without a product in front */
  bool lengths, state;                   /* sequences of several lengths; with states, and biases */
} case_sizes;

static const int64_t gates_of[] = {4, 3, 1, 1}, stored_of[] = {5, 4, 0, 0};

static int32_t dtype; /* of operands and results */

static tn_type type_of(int32_t rank, int64_t d0, int64_t d1, int64_t d2) {
  return rig_type(dtype, rank, (int64_t[]){d0, d1, d2});
}

/* Operands within +-1, weights small enough that states do not grow. */
static void *drawn(const tn_type *type, float scale, tn_rng *rng) {
  void *data = rig_tensor(type);
  for (int64_t i = 0; i < tn_type_count(type); i++)
    rig_put(type, data, i, (double)(scale * (float)tn_rng_between(rng, -1, 1)));
  return data;
}

static void *lengths_of(const case_sizes *s) {
  tn_type type = rig_type(TN_I32, 1, (int64_t[]){s->batch});
  int32_t *data = rig_tensor(&type);
  for (int64_t i = 0; i < s->batch; i++) data[i] = (int32_t)((7 * i + 3) % (s->steps + 1));
  return data;
}

/* Adds an operand with drawn numbers; `given` false: absent. */
static int32_t add_operand(rig_match *m, void **data, tn_type type, bool given, float scale, tn_rng *rng) {
  int32_t number = rig_in(m, given ? &type : NULL);
  data[number] = given ? drawn(&type, scale, rng) : NULL;
  return number;
}

static int32_t add_lengths(rig_match *m, void **data, const case_sizes *s) {
  tn_type type = rig_type(TN_I32, 1, (int64_t[]){s->batch});
  int32_t number = rig_in(m, s->lengths ? &type : NULL);
  data[number] = s->lengths ? lengths_of(s) : NULL;
  return number;
}

/* The product of the input and its view as steps: returns the number of the view. */
static int32_t add_product(rig_match *m, const int32_t *in, const case_sizes *s, int64_t columns) {
  static const tn_matmul_attributes transposed = {.transpose_b = 1};
  tn_type rows = type_of(2, s->batch * s->steps, columns, 0), steps = type_of(3, s->batch, s->steps, columns);
  int32_t product = rig_node(m, "matmul", &transposed, in, 3, &rows, 1);
  return rig_node(m, "reshape", NULL, &product, 1, &steps, 1);
}

static void check_forward(const case_sizes *s, int32_t cell, bool stored, tn_rng *rng) {
  static const tn_kernel *const kernels[2][2] = {
      {&tn_kernel_onednn_recurrence_inference, &tn_kernel_onednn_recurrence},
      {&tn_kernel_onednn_recurrent_layer_inference, &tn_kernel_onednn_recurrent_layer}};
  const tn_recurrence_attributes a = {.cell = cell, .reverse = s->steps % 2 == 0};
  int64_t columns = gates_of[cell] * s->units, units = s->units;
  bool whole = s->features > 0, lstm = cell == TN_CELL_LSTM;
  float small = 1 / sqrtf((float)units);
  rig_match m;
  rig_start(&m);
  void *data[8];
  int32_t in[8], n = 0;
  in[n++] = add_operand(&m, data,
                        whole ? type_of(2, s->batch * s->steps, s->features, 0)
                              : type_of(3, s->batch, s->steps, columns),
                        true, 1, rng);
  if (whole) in[n++] = add_operand(&m, data, type_of(2, columns, s->features, 0), true, small, rng);
  if (whole) in[n++] = add_operand(&m, data, type_of(1, columns, 0, 0), s->state, 1, rng);
  in[n++] = add_operand(&m, data, type_of(2, columns, units, 0), true, small, rng);
  in[n++] = add_operand(&m, data, type_of(1, columns, 0, 0), s->state, 1, rng);
  in[n++] = add_operand(&m, data, type_of(2, s->batch, units, 0), s->state, 1, rng);
  in[n++] = add_operand(&m, data, type_of(2, s->batch, units, 0), s->state && lstm, 1, rng);
  in[n++] = add_lengths(&m, data, s);
  if (whole) in[2] = add_product(&m, in, s, columns);
  tn_type out[] = {type_of(3, s->batch, s->steps, units), type_of(2, s->batch, units, 0),
                   type_of(2, s->batch, lstm ? units : 0, 0),
                   type_of(3, s->batch, s->steps, stored_of[cell] * units)};
  int32_t first = rig_node(&m, "recurrence", &a, whole ? in + 2 : in, 6, out, 4);
  for (int32_t i = 0; i < (stored ? 4 : 3); i++) rig_out(&m, first + i);
  ways_check(kernels[whole][stored], &naive, &m, data, 3e-6, 1);
  rig_sweep_allocations(kernels[whole][stored], &m);
  for (int32_t i = 0; i < n; i++) free(data[i]);
}

static void check_gradient(const case_sizes *s, int32_t cell, tn_rng *rng) {
  const tn_recurrence_attributes a = {.cell = cell, .reverse = s->steps % 2 == 0};
  int64_t columns = gates_of[cell] * s->units, units = s->units, stored = stored_of[cell] * units;
  bool lstm = cell == TN_CELL_LSTM;
  rig_match m;
  rig_start(&m);
  void *data[9];
  const tn_type steps = type_of(3, s->batch, s->steps, units), state = type_of(2, s->batch, units, 0);
  const int32_t in[] = {
      add_operand(&m, data, type_of(2, columns, units, 0), true, 1 / sqrtf((float)units), rng),
      add_operand(&m, data, state, s->state, 1, rng),
      add_operand(&m, data, state, s->state && lstm, 1, rng),
      add_lengths(&m, data, s),
      add_operand(&m, data, steps, true, 1, rng),
      add_operand(&m, data, type_of(3, s->batch, s->steps, stored), true, 1, rng),
      add_operand(&m, data, steps, true, 1, rng),
      add_operand(&m, data, state, s->state, 1, rng),
      add_operand(&m, data, type_of(2, s->batch, lstm ? units : 0, 0), s->state && lstm, 1, rng)};
  tn_type out[] = {type_of(3, s->batch, s->steps, columns), type_of(2, columns, units, 0),
                   type_of(1, columns, 0, 0), state, type_of(2, s->batch, lstm ? units : 0, 0)};
  int32_t first = rig_node(&m, "recurrence_grad", &a, in, 9, out, 5);
  for (int32_t i = 0; i < 5; i++) rig_out(&m, first + i);
  ways_check(&tn_kernel_onednn_recurrence_grad, &tn_kernel_cpu_recurrence_grad, &m, data, 1e-5, 1);
  rig_sweep_allocations(&tn_kernel_onednn_recurrence_grad, &m);
  for (int32_t i = 0; i < 9; i++) free(data[i]);
}

/* ---- tests ---- */

static const case_sizes sizes[] = {{3, 5, 7, 0, true, true},     {1, 4, 1, 3, false, true},
                                   {29, 6, 65, 9, true, false},  {8, 3, 16, 20, true, true},
                                   {5, 0, 9, 4, false, true},    {0, 4, 8, 5, true, true},
                                   {26, 2, 280, 17, true, true}, {12, 21, 33, 0, false, false}};

static void check_all_cells(bool gradient, bool half) {
  tn_rng rng = tn_rng_at(gradient ? 72 : 71, 0);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int32_t cell = 0; cell < 4; cell++) {
      bool even = (s + (size_t)cell) % 2 == 0;
      dtype = !half ? TN_F32 : (s / 2 + (size_t)cell) % 2 == 0 ? TN_BF16 : TN_F16;
      if (gradient)
        check_gradient(&sizes[s], cell, &rng);
      else
        check_forward(&sizes[s], cell, even, &rng);
    }
}

static void steps_of_all_cells_are_computed(void **state) {
  (void)state;
  check_all_cells(false, false);
}

static void gradients_of_all_cells_are_computed(void **state) {
  (void)state;
  check_all_cells(true, false);
}

static void steps_of_halves_are_computed(void **state) {
  (void)state;
  check_all_cells(false, true);
}

static void gradients_of_halves_are_computed(void **state) {
  (void)state;
  check_all_cells(true, true);
}

/* A product by tiles against the loops of the same panel in f32. All numbers are multiples of 1/8 that bf16
 * has, so that every sum is exact. */
static void check_tiles(int64_t rows, int64_t k, tn_rng *rng) {
  enum { WIDTH = TN_RECURRENCE_WIDTH };
  const tn_recurrence_loops *loops = TN_LOOPS_PICK_AT(tn_loops_recurrence, TN_ISA_AVX512);
  const tn_type w = RIG_TYPE(TN_BF16, k, WIDTH), pairs = RIG_TYPE(TN_F32, (k + 31) / 32 * 16, WIDTH),
                lines = RIG_TYPE(TN_F32, k, WIDTH), a = RIG_TYPE(TN_F32, rows, k),
                out = RIG_TYPE(TN_F32, rows, WIDTH);
  void *weight = rig_tensor(&w);
  float *of_pairs = rig_tensor(&pairs), *of_lines = rig_tensor(&lines), *row = rig_tensor(&a),
        *got = rig_tensor(&out), *expected = rig_tensor(&out);
  for (int64_t i = 0; i < k * WIDTH; i++) rig_put(&w, weight, i, floor(tn_rng_between(rng, -16, 16)) / 8);
  for (int64_t i = 0; i < rows * k; i++) row[i] = (float)(floor(tn_rng_between(rng, -16, 16)) / 8);
  loops->pack_pairs(weight, 0, k, WIDTH, WIDTH, of_pairs);
  loops->pack_lines(TN_BF16, weight, 0, k, WIDTH, WIDTH, of_lines);
  tn_recurrence_product p = {.rows = rows, .k = k, .blocks = TN_RECURRENCE_BLOCKS};
  for (int64_t i = 0; i < rows; i++) {
    p.a[i] = row + i * k;
    p.first[i] = p.out[i] = got + i * WIDTH;
    got[i * WIDTH + i] = 1;
  }
  p.panel = of_pairs;
  tn_onednn_recurrence_tiles(&p);
  for (int64_t i = 0; i < rows; i++) {
    p.first[i] = p.out[i] = expected + i * WIDTH;
    expected[i * WIDTH + i] = 1;
  }
  p.panel = of_lines;
  loops->multiply(&p);
  assert_memory_equal(got, expected, tn_type_bytes(&out));
  void *all[] = {weight, of_pairs, of_lines, row, got, expected};
  for (int32_t i = 0; i < 6; i++) free(all[i]);
}

static void tiles_compute_the_same_products(void **state) {
  static const int64_t depths[] = {2, 30, 32, 34, 512, 514, 1030};
  (void)state;
  tn_rng rng = tn_rng_at(73, 0);
  if (!tn_onednn_recurrence_has_tiles(TN_ISA_AVX512_BF16)) skip();
  for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
    for (int64_t rows = 1; rows <= TN_RECURRENCE_TILE_ROWS; rows += 5) check_tiles(rows, depths[i], &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_compute_the_same_products), cmocka_unit_test(steps_of_all_cells_are_computed),
      cmocka_unit_test(gradients_of_all_cells_are_computed), cmocka_unit_test(steps_of_halves_are_computed),
      cmocka_unit_test(gradients_of_halves_are_computed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
