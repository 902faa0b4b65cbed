/* Attention and its gradient over several tiles, against sums over all pairs in f64. */
#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_onednn_attention, tn_kernel_onednn_attention_grad,
    tn_kernel_onednn_attention_grad_joined;

/* ---- attention by definition, in f64 ---- */

enum { Q, K, V, Y, LSE, DY, DQ, DK, DV, TENSORS };

/* Operands and results by name; a launch has some of them. */
typedef struct tensors {
  const tn_attention_attributes *a;
  int64_t batch, heads, queries, keys, width, value_width;
  tn_view at[TENSORS];
} tensors;

/* Concatenated gradients. */
static int64_t place_joined(const tensors *t, int32_t name, int64_t head, int64_t row, int64_t column) {
  int64_t width = name == DV ? t->value_width : t->width;
  int64_t first = (name - DQ) * t->heads * t->width, token = head / t->heads * t->queries + row;
  return token * t->heads * (2 * t->width + t->value_width) + first + head % t->heads * width + column;
}

static int64_t place(const tensors *t, int32_t name, int64_t head, int64_t row, int64_t column) {
  if (name >= DQ && t->at[DK].data == t->at[DQ].data) return place_joined(t, name, head, row, column);
  bool of_keys = name == K || name == V || name == DK || name == DV;
  bool of_values = name == V || name == Y || name == DY || name == DV;
  int64_t rows = of_keys ? t->keys : t->queries, width = of_values ? t->value_width : t->width;
  if (t->a->heads == 0 || name == LSE) return (head * rows + row) * (name == LSE ? 1 : width) + column;
  return ((head / t->heads * rows + row) * t->heads + head % t->heads) * width + column;
}

static double get(const tensors *t, int32_t name, int64_t head, int64_t row, int64_t column) {
  return rig_get(&t->at[name].type, t->at[name].data, place(t, name, head, row, column));
}

static void put(const tensors *t, int32_t name, int64_t head, int64_t row, int64_t column, double value) {
  rig_put(&t->at[name].type, t->at[name].data, place(t, name, head, row, column), value);
}

static int64_t seen(const tensors *t, int64_t query) {
  return t->a->causal ? query + 1 + t->keys - t->queries : t->keys;
}

static double inner(const tensors *t, int32_t x, int64_t i, int32_t y, int64_t j, int64_t head, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; c++) sum += get(t, x, head, i, c) * get(t, y, head, j, c);
  return sum;
}

/* Scores of a query; returns their log-sum-exp. */
static double scores_of(const tensors *t, int64_t head, int64_t i, double scale, double *s) {
  double lse = -INFINITY;
  for (int64_t j = 0; j < seen(t, i); j++) {
    s[j] = scale * inner(t, Q, i, K, j, head, t->width);
    lse = fmax(lse, s[j]) + log1p(exp(-fabs(lse - s[j])));
  }
  return lse;
}

static void attend(const tensors *t, int64_t head, int64_t i, double scale) {
  double y[128] = {0}, *s = calloc((size_t)t->keys, sizeof *s), lse = scores_of(t, head, i, scale, s);
  for (int64_t j = 0; j < seen(t, i); j++)
    for (int64_t c = 0; c < t->value_width; c++) y[c] += exp(s[j] - lse) * get(t, V, head, j, c);
  put(t, LSE, head, i, 0, lse);
  for (int64_t c = 0; c < t->value_width; c++) put(t, Y, head, i, c, y[c]);
  free(s);
}

static void differentiate(const tensors *t, int64_t head, int64_t i, double scale, double *dk, double *dv) {
  double delta = 0, dq[128] = {0}, *s = calloc((size_t)t->keys, sizeof *s),
         lse = scores_of(t, head, i, scale, s); /* the operand has its rounding */
  for (int32_t pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < seen(t, i); j++) {
      double p = exp(s[j] - lse);
      double d = inner(t, DY, i, V, j, head, t->value_width), ds = scale * p * (d - delta);
      if (pass == 0) {
        delta += p * d;
        continue;
      }
      for (int64_t c = 0; c < t->width; c++) {
        dq[c] += ds * get(t, K, head, j, c);
        dk[j * t->width + c] += ds * get(t, Q, head, i, c);
      }
      for (int64_t c = 0; c < t->value_width; c++) dv[j * t->value_width + c] += p * get(t, DY, head, i, c);
    }
  for (int64_t c = 0; c < t->width; c++) put(t, DQ, head, i, c, dq[c]);
  free(s);
}

static void differentiate_head(const tensors *t, int64_t head, double scale) {
  double *dk = calloc((size_t)(t->keys * (t->width + t->value_width)), sizeof *dk),
         *dv = dk + t->keys * t->width;
  for (int64_t i = 0; i < t->queries; i++) differentiate(t, head, i, scale, dk, dv);
  for (int64_t j = 0; j < t->keys; j++) {
    for (int64_t c = 0; c < t->width; c++) put(t, DK, head, j, c, dk[j * t->width + c]);
    for (int64_t c = 0; c < t->value_width; c++) put(t, DV, head, j, c, dv[j * t->value_width + c]);
  }
  free(dk);
}

/* ---- as a kernel ---- */

static const tn_attention_attributes *now; /* of the match that is checked */

static tn_status naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status naive_launch(tn_launch *l) {
  tensors t = {.a = now};
  bool together = now->heads > 0;
  for (int32_t i = 0; i < l->n_in; i++) t.at[i] = l->in[i];
  for (int32_t i = 0; i < l->n_out; i++) t.at[l->n_in + i] = l->out[i];
  if (l->n_in > 3 && l->n_out == 1) t.at[DK] = t.at[DV] = l->out[0];
  const int64_t *q = t.at[Q].type.dims, *v = t.at[V].type.dims;
  t.batch = q[0];
  t.heads = together ? now->heads : q[1];
  t.queries = q[together ? 1 : 2];
  t.keys = v[together ? 1 : 2];
  t.width = together ? q[2] / now->heads : q[3];
  t.value_width = together ? v[2] / now->heads : v[3];
  double scale = now->scale != 0 ? now->scale : 1 / sqrt((double)t.width);
  for (int64_t head = 0; head < t.batch * t.heads; head++) {
    if (l->n_in > 3) differentiate_head(&t, head, scale);
    for (int64_t i = 0; i < t.queries && l->n_in == 3; i++) attend(&t, head, i, scale);
  }
  return TN_OK;
}

static const tn_kernel naive = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "attention as it is defined"),
    .family = "cpu",
    .pattern = "y, lse = attention(q, k, v)",
    .query = naive_query,
    .launch = naive_launch};

/* ---- cases ---- */

typedef struct shape {
  int64_t batch, heads, queries, keys, width, value_width;
  int32_t causal;
} shape;

static tn_type rows(const shape *s, int32_t dtype, bool together, int64_t tokens, int64_t width) {
  return together ? RIG_TYPE(dtype, s->batch, tokens, s->heads * width)
                  : RIG_TYPE(dtype, s->batch, s->heads, tokens, width);
}

/* The same operands with concatenated gradients. */
static void check_joined(const shape *s, const tn_attention_attributes *a, const tn_type *types,
                         void *const *data) {
  const tn_axis_attributes last = {.axis = 2};
  tn_type all = rows(s, types[0].dtype, true, s->queries, 2 * s->width + s->value_width);
  rig_match m;
  int32_t in[6];
  rig_start(&m);
  for (int32_t i = 0; i < 6; i++) in[i] = rig_in(&m, &types[i]);
  int32_t first = rig_node(&m, "attention_grad", a, in, 6, types, 3);
  const int32_t parts[] = {first, first + 1, first + 2};
  rig_out(&m, rig_node(&m, "concat", &last, parts, 3, &all, 1));
  ways_check(&tn_kernel_onednn_attention_grad_joined, &naive, &m, data, all.dtype == TN_BF16 ? 1e-2 : 2e-5,
             1);
}

static void check(const shape *s, int32_t dtype, bool together, tn_rng *rng) {
  tn_attention_attributes a = {.causal = s->causal, .scale = 0.2, .heads = together ? s->heads : 0};
  tn_type q = rows(s, dtype, together, s->queries, s->width), k = rows(s, dtype, together, s->keys, s->width);
  tn_type v = rows(s, dtype, together, s->keys, s->value_width);
  tn_type y = rows(s, dtype, together, s->queries, s->value_width);
  tn_type types[] = {q, k, v, y, RIG_TYPE(TN_F32, s->batch, s->heads, s->queries), y}, out[] = {q, k, v};
  rig_match forward, backward;
  int32_t in[6];
  void *data[6];
  now = &a;
  for (int32_t i = 0; i < 6; i++) data[i] = rig_drawn(&types[i], rng);
  rig_start(&forward);
  for (int32_t i = 0; i < 3; i++) in[i] = rig_in(&forward, &types[i]);
  int32_t first = rig_node(&forward, "attention", &a, in, 3, types + 3, 2);
  for (int32_t i = 0; i < 2; i++) rig_out(&forward, first + i);
  ways_check(&tn_kernel_onednn_attention, &naive, &forward, data, 1e-5, 1);
  rig_memory memory = {.in = data, .out = data + 3, .threads = 1};
  assert_int_equal(rig_run(&naive, &forward, &memory, NULL), TN_OK);
  rig_start(&backward);
  for (int32_t i = 0; i < 6; i++) in[i] = rig_in(&backward, &types[i]);
  first = rig_node(&backward, "attention_grad", &a, in, 6, out, 3);
  for (int32_t i = 0; i < 3; i++) rig_out(&backward, first + i);
  ways_check(&tn_kernel_onednn_attention_grad, &naive, &backward, data, dtype == TN_BF16 ? 1e-2 : 2e-5, 1);
  if (together && s->queries == s->keys) check_joined(s, &a, types, data);
  for (int32_t i = 0; i < 6; i++) free(data[i]);
}

static void several_tiles_of_queries_and_keys(void **state) {
  (void)state;
  static const shape shapes[] = {
      {1, 2, 64, 64, 32, 32, 1}, {2, 1, 64, 64, 16, 32, 0},   {1, 1, 140, 140, 8, 8, 1},
      {1, 2, 65, 130, 17, 5, 0}, {1, 1, 40, 140, 16, 33, 1},  {1, 2, 130, 20, 16, 16, 0},
      {2, 1, 3, 5, 1, 1, 1},     {1, 1, 20, 70, 128, 100, 1}, {1, 1, 1, 129, 24, 24, 1},
  };
  tn_rng rng = tn_rng_at(71, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int32_t k = 0; k < 4; k++) check(&shapes[i], k < 2 ? TN_F32 : TN_BF16, k % 2, &rng);
}

/* Where one key is visible its probability is 1, and scores have no gradient, although lse is rounded. */
static void one_key_has_no_gradient(void **state) {
  (void)state;
  enum { ROWS = 40, WIDTH = 32 };
  static const shape one = {1, 1, ROWS, 1, WIDTH, WIDTH, 0};
  static const double scale = 8;
  tn_attention_attributes a = {.scale = scale};
  tn_rng rng = tn_rng_at(72, 0);
  tn_type many = rows(&one, TN_F32, false, ROWS, WIDTH), key = rows(&one, TN_F32, false, 1, WIDTH);
  tn_type types[] = {many, key, key, many, RIG_TYPE(TN_F32, 1, 1, ROWS), many, many, key, key};
  rig_match m;
  int32_t in[6];
  void *data[TENSORS];
  for (int32_t i = 0; i < TENSORS; i++) data[i] = rig_drawn(&types[i], &rng);
  const float *q = data[Q], *k = data[K], *v = data[V], *dy = data[DY], *dq = data[DQ];
  for (int32_t i = 0; i < ROWS; i++) {
    double s = 0;
    for (int32_t c = 0; c < WIDTH; c++) s += (double)q[i * WIDTH + c] * (double)k[c];
    ((float *)data[LSE])[i] = (float)(scale * s);
  }
  rig_start(&m);
  for (int32_t i = 0; i < 6; i++) in[i] = rig_in(&m, &types[i]);
  int32_t first = rig_node(&m, "attention_grad", &a, in, 6, types + DQ, 3);
  for (int32_t i = 0; i < 3; i++) rig_out(&m, first + i);
  rig_memory memory = {.in = data, .out = data + DQ, .threads = 1};
  assert_int_equal(rig_run(&tn_kernel_onednn_attention_grad, &m, &memory, NULL), TN_OK);
  for (int32_t i = 0; i < ROWS; i++) {
    double d = 0;
    for (int32_t c = 0; c < WIDTH; c++) d += (double)dy[i * WIDTH + c] * (double)v[c];
    for (int32_t c = 0; c < WIDTH; c++)
      if (!(fabs((double)dq[i * WIDTH + c]) <= 4 * 0x1p-24 * fabs(scale * d * (double)k[c]) + 1e-12))
        fail_msg("dq[%d, %d] is %g", (int)i, (int)c, (double)dq[i * WIDTH + c]);
  }
  for (int32_t i = 0; i < TENSORS; i++) free(data[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(several_tiles_of_queries_and_keys),
                                     cmocka_unit_test(one_key_has_no_gradient)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
