/* Kernels of products and of products with the ops around them, against sums in f64, on several numbers of
 * threads. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "tests/unit/backends/onednn/defined_gelu.h"

extern const tn_kernel tn_kernel_onednn_matmul, tn_kernel_onednn_matmul_add, tn_kernel_onednn_matmul_cast,
    tn_kernel_onednn_matmul_bias_grad, tn_kernel_onednn_matmul_gelu, tn_kernel_onednn_matmul_gelu_grad,
    tn_kernel_onednn_matmul_kept_gelu, tn_kernel_onednn_matmul_relu, tn_kernel_onednn_matmul_relu_grad,
    tn_kernel_onednn_matmul_split_2, tn_kernel_onednn_matmul_split_3;

typedef struct operand {
  tn_type type;
  void *data;
} operand;

static operand drawn(tn_type type, tn_rng *rng) { return (operand){type, rig_drawn(&type, rng)}; }
static operand zeroed(tn_type type) { return (operand){type, rig_tensor(&type)}; }
static double at2(const operand *x, int64_t i, int64_t j) {
  return rig_get(&x->type, x->data, i * x->type.dims[x->type.rank - 1] + j);
}

static tn_type matrix(int32_t dtype, int64_t rows, int64_t columns, int32_t transposed) {
  return transposed ? RIG_TYPE(dtype, columns, rows) : RIG_TYPE(dtype, rows, columns);
}

/* Sum and magnitude of an element of a product of two matrices. */
static double element(const operand *a, const operand *b, const tn_matmul_attributes *t, int64_t i, int64_t j,
                      double *magnitude) {
  int64_t k = a->type.dims[t->transpose_a ? 0 : 1];
  double sum = 0;
  *magnitude = 0;
  for (int64_t p = 0; p < k; p++) {
    double term =
        (t->transpose_a ? at2(a, p, i) : at2(a, i, p)) * (t->transpose_b ? at2(b, j, p) : at2(b, p, j));
    sum += term;
    *magnitude += fabs(term);
  }
  return sum;
}

static void expect_near(const operand *y, int64_t i, int64_t j, double expected, double magnitude) {
  double bound = 0.51 * rig_ulp(y->type.dtype, expected) + 40 * rig_ulp(TN_F32, magnitude + 1);
  double got = at2(y, i, j);
  if (!(fabs(got - expected) <= bound))
    fail_msg("element %lld, %lld is %.9g, expected %.9g +- %g", (long long)i, (long long)j, got, expected,
             bound);
}

typedef struct shape {
  int64_t m, n, k;
} shape;
static const shape shapes[] = {{1, 1, 1},      {1, 130, 70},   {32, 10, 128}, {7, 33, 65},
                               {130, 20, 12},  {64, 300, 9},   {200, 97, 33}, {140, 150, 400},
                               {90, 70, 2000}, {40, 500, 650}, {5, 4, 0}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const int32_t dtypes[2] = {TN_F32, TN_BF16};

static void products_with_bias_and_relu_are_right(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(41, 0);
  for (int32_t c = 0; c < SHAPES * 32; c++) {
    shape s = shapes[c / 32];
    tn_matmul_attributes t = {c & 1, c >> 1 & 1};
    int32_t dtype = dtypes[c >> 2 & 1], relu = c >> 3 & 1, with_bias = c % 3 != 0;
    operand a = drawn(matrix(dtype, s.m, s.k, t.transpose_a), &rng),
            b = drawn(matrix(dtype, s.k, s.n, t.transpose_b), &rng), bias = drawn(RIG_TYPE(dtype, s.n), &rng),
            limit = zeroed(rig_type(dtype, 0, NULL)), y = zeroed(RIG_TYPE(dtype, s.m, s.n));
    static rig_match m;
    rig_start(&m);
    int32_t in[4] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, with_bias ? &bias.type : NULL), -1};
    if (relu) in[3] = rig_in(&m, &limit.type), rig_is_zero(&m, in[3]);
    if (c >> 4 & 1) rig_is_constant(&m, in[1]);
    int32_t product = rig_node(&m, "matmul", &t, in, 3, &y.type, 1);
    rig_out(&m, relu ? rig_node(&m, "maximum", NULL, (int32_t[]){product, in[3]}, 2, &y.type, 1) : product);
    rig_run_on_all(relu ? &tn_kernel_onednn_matmul_relu : &tn_kernel_onednn_matmul, &m,
                   (void *[]){a.data, b.data, with_bias ? bias.data : NULL, limit.data}, (void *[]){y.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
      for (int64_t j = 0; j < s.n; j++) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        if (with_bias) sum += at2(&bias, 0, j);
        expect_near(&y, i, j, relu ? fmax(sum, 0) : sum, magnitude);
      }
    free(a.data), free(b.data), free(bias.data), free(limit.data), free(y.data);
  }
}

/* Products of bf16 with results in bf16 and in f32, and sums that are longer than the scratch of a chunk. */
static void long_sums_of_bf16_are_right(void **state) {
  (void)state;
  static const shape some[] = {{140, 60, 4100}, {70, 130, 2500}, {64, 300, 9}, {140, 150, 400}, {5, 4, 0}};
  tn_rng rng = tn_rng_at(47, 0);
  for (int32_t c = 0; c < 40; c++) {
    shape s = some[c / 8];
    tn_matmul_attributes t = {c & 1, c >> 1 & 1};
    int32_t wide = c >> 2 & 1;
    if (s.k > 2048 && s.m <= 128 && t.transpose_b && !t.transpose_a)
      continue; /* refused: dots of whole rows */
    operand a = drawn(matrix(TN_BF16, s.m, s.k, t.transpose_a), &rng),
            b = drawn(matrix(TN_BF16, s.k, s.n, t.transpose_b), &rng),
            y = zeroed(RIG_TYPE(wide ? TN_F32 : TN_BF16, s.m, s.n));
    tn_type narrow = RIG_TYPE(TN_BF16, s.m, s.n);
    static rig_match m;
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a.type), rig_in(&m, &b.type), wide ? -1 : rig_in(&m, NULL)};
    int32_t product = rig_node(&m, "matmul", &t, in, wide ? 2 : 3, &narrow, 1);
    rig_out(&m, wide ? rig_node(&m, "cast", NULL, &product, 1, &y.type, 1) : product);
    rig_run_on_all(wide ? &tn_kernel_onednn_matmul_cast : &tn_kernel_onednn_matmul, &m,
                   (void *[]){a.data, b.data, NULL}, (void *[]){y.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 10)
      for (int64_t j = 0; j < s.n; j += 1 + s.n / 40) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        expect_near(&y, i, j, sum, magnitude);
      }
    free(a.data), free(b.data), free(y.data);
  }
}

static void the_gradient_of_a_relu_joins_the_product(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(42, 0);
  for (int32_t c = 0; c < SHAPES * 2; c++) {
    shape s = shapes[c / 2];
    tn_matmul_attributes t = {0, 0};
    int32_t dtype = dtypes[c & 1];
    operand a = drawn(RIG_TYPE(dtype, s.m, s.k), &rng), b = drawn(RIG_TYPE(dtype, s.k, s.n), &rng),
            r = drawn(RIG_TYPE(dtype, s.m, s.n), &rng), limit = zeroed(rig_type(dtype, 0, NULL)),
            other = zeroed(RIG_TYPE(dtype, 1)), y = zeroed(RIG_TYPE(dtype, s.m, s.n));
    tn_type truth = RIG_TYPE(TN_BOOL, s.m, s.n);
    static rig_match m;
    rig_start(&m);
    int32_t in[5] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, &r.type), rig_in(&m, &limit.type),
                     rig_in(&m, &other.type)};
    rig_is_zero(&m, in[3]), rig_is_zero(&m, in[4]);
    int32_t product = rig_node(&m, "matmul", &t, in, 2, &y.type, 1);
    int32_t gate = rig_node(&m, "gt", NULL, in + 2, 2, &truth, 1);
    rig_out(&m, rig_node(&m, "where", NULL, (int32_t[]){gate, product, in[4]}, 3, &y.type, 1));
    rig_run_on_all(&tn_kernel_onednn_matmul_relu_grad, &m,
                   (void *[]){a.data, b.data, r.data, limit.data, other.data}, (void *[]){y.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
      for (int64_t j = 0; j < s.n; j++) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        expect_near(&y, i, j, at2(&r, i, j) > 0 ? sum : 0, magnitude);
      }
    free(a.data), free(b.data), free(r.data), free(limit.data), free(other.data), free(y.data);
  }
}

/* Alone, and with the operand of GELU as a result, which the gradient reads. */
static void a_gelu_joins_the_product(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(45, 0);
  for (int32_t c = 0; c < SHAPES * 16; c++) {
    shape s = shapes[c / 16];
    int32_t keeps = c & 1, with_bias = c >> 2 & 1;
    tn_matmul_attributes t = {0, with_bias};
    tn_gelu_attributes g = {c >> 1 & 1};
    operand a = drawn(RIG_TYPE(TN_F32, s.m, s.k), &rng),
            b = drawn(matrix(TN_F32, s.k, s.n, t.transpose_b), &rng),
            bias = drawn(RIG_TYPE(TN_F32, s.n), &rng), y = zeroed(RIG_TYPE(TN_F32, s.m, s.n)),
            z = zeroed(y.type);
    static rig_match m;
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, with_bias ? &bias.type : NULL)};
    if (c >> 3 & 1) rig_is_constant(&m, in[1]);
    int32_t product = rig_node(&m, "matmul", &t, in, 3, &y.type, 1);
    int32_t end = rig_node(&m, "gelu", &g, &product, 1, &z.type, 1);
    if (keeps) rig_out(&m, product);
    rig_out(&m, end);
    rig_run_on_all(keeps ? &tn_kernel_onednn_matmul_kept_gelu : &tn_kernel_onednn_matmul_gelu, &m,
                   (void *[]){a.data, b.data, with_bias ? bias.data : NULL},
                   (void *[]){keeps ? y.data : z.data, z.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
      for (int64_t j = 0; j < s.n; j++) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        if (with_bias) sum += at2(&bias, 0, j);
        if (keeps) expect_near(&y, i, j, sum, magnitude);
        expect_near(&z, i, j, defined_gelu(sum, g.approximate), magnitude);
      }
    free(a.data), free(b.data), free(bias.data), free(y.data), free(z.data);
  }
}

static void the_gradient_of_a_gelu_joins_the_product(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(46, 0);
  for (int32_t c = 0; c < SHAPES * 2; c++) {
    shape s = shapes[c / 2];
    tn_matmul_attributes t = {0, 0};
    tn_gelu_attributes g = {c & 1};
    operand a = drawn(RIG_TYPE(TN_F32, s.m, s.k), &rng), b = drawn(RIG_TYPE(TN_F32, s.k, s.n), &rng),
            x = drawn(RIG_TYPE(TN_F32, s.m, s.n), &rng), y = zeroed(x.type);
    static rig_match m;
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, &x.type)};
    int32_t product = rig_node(&m, "matmul", &t, in, 2, &y.type, 1);
    rig_out(&m, rig_node(&m, "gelu_grad", &g, (int32_t[]){product, in[2]}, 2, &y.type, 1));
    rig_run_on_all(&tn_kernel_onednn_matmul_gelu_grad, &m, (void *[]){a.data, b.data, x.data},
                   (void *[]){y.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
      for (int64_t j = 0; j < s.n; j++) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        expect_near(&y, i, j, sum * defined_gelu_slope(at2(&x, i, j), g.approximate), magnitude);
      }
    free(a.data), free(b.data), free(x.data), free(y.data);
  }
}

static void what_is_added_joins_the_product(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(47, 0);
  for (int32_t c = 0; c < SHAPES * 8; c++) {
    shape s = shapes[c / 8];
    int32_t with_bias = c & 1;
    tn_matmul_attributes t = {0, c >> 1 & 1};
    operand a = drawn(RIG_TYPE(TN_F32, s.m, s.k), &rng),
            b = drawn(matrix(TN_F32, s.k, s.n, t.transpose_b), &rng),
            bias = drawn(RIG_TYPE(TN_F32, s.n), &rng), r = drawn(RIG_TYPE(TN_F32, s.m, s.n), &rng),
            y = zeroed(r.type);
    static rig_match m;
    rig_start(&m);
    int32_t in[4] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, with_bias ? &bias.type : NULL),
                     rig_in(&m, &r.type)};
    if (c >> 2 & 1) rig_is_constant(&m, in[1]);
    int32_t product = rig_node(&m, "matmul", &t, in, 3, &y.type, 1);
    rig_out(&m, rig_node(&m, "add", NULL, (int32_t[]){product, in[3]}, 2, &y.type, 1));
    rig_run_on_all(&tn_kernel_onednn_matmul_add, &m,
                   (void *[]){a.data, b.data, with_bias ? bias.data : NULL, r.data}, (void *[]){y.data});
    for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
      for (int64_t j = 0; j < s.n; j++) {
        double magnitude, sum = element(&a, &b, &t, i, j, &magnitude);
        if (with_bias) sum += at2(&bias, 0, j);
        expect_near(&y, i, j, sum + at2(&r, i, j), magnitude);
      }
    free(a.data), free(b.data), free(bias.data), free(r.data), free(y.data);
  }
}

static void a_product_goes_to_several_results(void **state) {
  (void)state;
  static const int64_t order[] = {2, 0, 1}; /* of the results among the slices */
  tn_rng rng = tn_rng_at(48, 0);
  for (int32_t c = 0; c < SHAPES * 16; c++) {
    shape s = shapes[c / 16];
    int32_t dtype = dtypes[c & 1], with_bias = c >> 1 & 1, parts = 2 + (c >> 2 & 1);
    tn_matmul_attributes t = {0, 1};
    operand a = drawn(RIG_TYPE(dtype, s.m, s.k), &rng), b = drawn(RIG_TYPE(dtype, s.n * parts, s.k), &rng),
            bias = drawn(RIG_TYPE(dtype, s.n * parts), &rng), y[3];
    tn_type whole = RIG_TYPE(dtype, s.m, s.n * parts);
    static rig_match m;
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a.type), rig_in(&m, &b.type), rig_in(&m, with_bias ? &bias.type : NULL)};
    if (c >> 3 & 1) rig_is_constant(&m, in[1]);
    int32_t product = rig_node(&m, "matmul", &t, in, 3, &whole, 1);
    int64_t starts[3][2], stops[3][2];
    tn_slice_attributes slices[3];
    for (int32_t i = 0; i < parts; i++) {
      int64_t first = order[i] % parts * s.n;
      y[i] = zeroed(RIG_TYPE(dtype, s.m, s.n));
      starts[i][0] = 0, starts[i][1] = first, stops[i][0] = s.m, stops[i][1] = first + s.n;
      slices[i] = (tn_slice_attributes){.starts = {2, starts[i]}, .stops = {2, stops[i]}};
      rig_out(&m, rig_node(&m, "slice", &slices[i], &product, 1, &y[i].type, 1));
    }
    rig_run_on_all(parts == 2 ? &tn_kernel_onednn_matmul_split_2 : &tn_kernel_onednn_matmul_split_3, &m,
                   (void *[]){a.data, b.data, with_bias ? bias.data : NULL},
                   (void *[]){y[0].data, y[1].data, parts > 2 ? y[2].data : NULL});
    for (int32_t p = 0; p < parts; p++)
      for (int64_t i = 0; i < s.m; i += 1 + s.m / 40)
        for (int64_t j = 0; j < s.n; j++) {
          double magnitude, sum = element(&a, &b, &t, i, starts[p][1] + j, &magnitude);
          if (with_bias) sum += at2(&bias, 0, starts[p][1] + j);
          expect_near(&y[p], i, j, sum, magnitude);
        }
    free(a.data), free(b.data), free(bias.data);
    for (int32_t p = 0; p < parts; p++) free(y[p].data);
  }
}

/* The bytes of the panels that are kept of a weight. */
static int64_t kept_bytes(shape s, int32_t dtype, int32_t transpose_a, int32_t constant) {
  tn_type a = matrix(dtype, s.m, s.k, transpose_a), b = matrix(dtype, s.k, s.n, 1),
          y = RIG_TYPE(dtype, s.m, s.n);
  tn_matmul_attributes t = {transpose_a, 1};
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &a), rig_in(&m, &b), rig_in(&m, NULL)};
  if (constant) rig_is_constant(&m, in[1]);
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &y, 1));
  return rig_query(&tn_kernel_onednn_matmul, &m).folded_bytes;
}

static void panels_of_weights_are_kept_where_packing_them_shows(void **state) {
  (void)state;
  const shape some = {17, 100, 300}, many = {2000, 100, 300}, few = {16, 100, 300}, small = {100, 16, 16};
  assert_int_equal(kept_bytes(some, TN_F32, 0, 1), 144 * 300 * 4); /* columns in panels of 48 */
  assert_int_equal(kept_bytes(many, TN_F32, 0, 1), 144 * 300 * 4);
  assert_int_equal(kept_bytes(some, TN_F32, 0, 0), 0);
  assert_int_equal(kept_bytes(some, TN_BF16, 0, 1), 0);
  assert_int_equal(kept_bytes(some, TN_F32, 1, 1), 0);
  assert_int_equal(kept_bytes(few, TN_F32, 0, 1), 0);
  assert_int_equal(kept_bytes(small, TN_F32, 0, 1), 0);
}

/* Slices of rows, and of a product that is not a linear layer. */
static void other_slices_of_a_product_are_refused(void **state) {
  (void)state;
  tn_type a = RIG_TYPE(TN_F32, 4, 3), b = RIG_TYPE(TN_F32, 6, 3), whole = RIG_TYPE(TN_F32, 4, 6),
          rows = RIG_TYPE(TN_F32, 2, 6);
  int64_t starts[2][2] = {{0, 0}, {2, 0}}, stops[2][2] = {{2, 6}, {4, 6}};
  for (int32_t c = 0; c < 2; c++) {
    tn_matmul_attributes t = {0, c == 0};
    tn_type weight = c == 0 ? b : RIG_TYPE(TN_F32, 3, 6);
    tn_slice_attributes slices[2];
    static rig_match m;
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a), rig_in(&m, &weight), rig_in(&m, NULL)};
    int32_t product = rig_node(&m, "matmul", &t, in, 3, &whole, 1);
    for (int32_t i = 0; i < 2; i++) {
      slices[i] = (tn_slice_attributes){.starts = {2, starts[i]}, .stops = {2, stops[i]}};
      rig_out(&m, rig_node(&m, "slice", &slices[i], &product, 1, &rows, 1));
    }
    rig_answer answer = rig_query(&tn_kernel_onednn_matmul_split_2, &m);
    assert_int_equal(answer.status, TN_EUNSUPPORTED);
    assert_non_null(strstr(answer.text, c == 0 ? "columns" : "linear layer"));
  }
}

static void the_gradient_of_the_bias_comes_with_that_of_the_weights(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(43, 0);
  for (int32_t c = 0; c < SHAPES * 4; c++) {
    shape s = shapes[c / 4];
    tn_matmul_attributes t = {1, c >> 1 & 1};
    int32_t dtype = dtypes[c & 1];
    operand d = drawn(RIG_TYPE(dtype, s.k, s.m), &rng),
            x = drawn(matrix(dtype, s.k, s.n, t.transpose_b), &rng), w = zeroed(RIG_TYPE(dtype, s.m, s.n)),
            sums = zeroed(RIG_TYPE(dtype, 1, s.m));
    int64_t axis = 0;
    tn_reduce_attributes rows = {.axes = {1, &axis}, .keep = 1};
    static rig_match m;
    rig_start(&m);
    int32_t in[2] = {rig_in(&m, &d.type), rig_in(&m, &x.type)};
    int32_t sum_node = rig_node(&m, "reduce_sum", &rows, in, 1, &sums.type, 1);
    rig_out(&m, rig_node(&m, "matmul", &t, in, 2, &w.type, 1));
    rig_out(&m, sum_node);
    rig_run_on_all(&tn_kernel_onednn_matmul_bias_grad, &m, (void *[]){d.data, x.data},
                   (void *[]){w.data, sums.data});
    for (int64_t i = 0; i < s.m; i++) {
      double magnitude = 0, sum = 0;
      for (int64_t p = 0; p < s.k; p++) sum += at2(&d, p, i), magnitude += fabs(at2(&d, p, i));
      expect_near(&sums, 0, i, sum, magnitude);
      for (int64_t j = 0; j < s.n; j += 1 + s.n / 40) {
        sum = element(&d, &x, &t, i, j, &magnitude);
        expect_near(&w, i, j, sum, magnitude);
      }
    }
    free(d.data), free(x.data), free(w.data), free(sums.data);
  }
}

/* The slices of broadcast batches equal those of single products. */
static void batches_broadcast(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(44, 0);
  for (int32_t c = 0; c < 8; c++) {
    tn_matmul_attributes t = {c & 1, c >> 1 & 1};
    int32_t dtype = dtypes[c >> 2];
    int64_t k = 21, m = 9, n = 33;
    tn_type a_type = t.transpose_a ? RIG_TYPE(dtype, 3, 1, k, m) : RIG_TYPE(dtype, 3, 1, m, k),
            b_type = t.transpose_b ? RIG_TYPE(dtype, 4, n, k) : RIG_TYPE(dtype, 4, k, n);
    operand a = drawn(a_type, &rng), b = drawn(b_type, &rng), y = zeroed(RIG_TYPE(dtype, 3, 4, m, n));
    static rig_match match;
    rig_start(&match);
    int32_t in[3] = {rig_in(&match, &a.type), rig_in(&match, &b.type), rig_in(&match, NULL)};
    rig_out(&match, rig_node(&match, "matmul", &t, in, 3, &y.type, 1));
    rig_run_on_all(&tn_kernel_onednn_matmul, &match, (void *[]){a.data, b.data, NULL}, (void *[]){y.data});
    int64_t size = (int64_t)tn_dtype_size(dtype);
    for (int64_t p = 0; p < 12; p++) {
      operand one = {matrix(dtype, m, k, t.transpose_a), (char *)a.data + p / 4 * m * k * size},
              two = {matrix(dtype, k, n, t.transpose_b), (char *)b.data + p % 4 * k * n * size},
              slice = {RIG_TYPE(dtype, m, n), (char *)y.data + p * m * n * size};
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
          double magnitude, sum = element(&one, &two, &t, i, j, &magnitude);
          expect_near(&slice, i, j, sum, magnitude);
        }
    }
    free(a.data), free(b.data), free(y.data);
  }
}

static void what_is_not_done_here_is_refused(void **state) {
  (void)state;
  tn_type a = RIG_TYPE(TN_F64, 3, 4), b = RIG_TYPE(TN_F64, 4, 5), y = RIG_TYPE(TN_F64, 3, 5);
  tn_matmul_attributes t = {0, 0, 0};
  static rig_match m;
  for (int32_t i = 0; i < 2; i++) {
    rig_start(&m);
    int32_t in[3] = {rig_in(&m, &a), rig_in(&m, &b), rig_in(&m, NULL)};
    rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &y, 1));
    rig_answer answer = rig_query(&tn_kernel_onednn_matmul, &m);
    assert_int_equal(answer.status, TN_EUNSUPPORTED);
    assert_non_null(strstr(answer.text, i == 0 ? "f64" : "tf32"));
    a.dtype = b.dtype = y.dtype = TN_F32;
    t.math = TN_MATH_TF32;
  }
}

/* The GELU of a product in bf16 is that of the rounded product; the operand of the gradient has the dims of
 * the product. */
static void a_gelu_of_other_elements_is_refused(void **state) {
  (void)state;
  tn_type a = RIG_TYPE(TN_BF16, 3, 4), b = RIG_TYPE(TN_BF16, 4, 5), y = RIG_TYPE(TN_BF16, 3, 5),
          row = RIG_TYPE(TN_F32, 5);
  tn_matmul_attributes t = {0, 0, 0};
  tn_gelu_attributes g = {1};
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &a), rig_in(&m, &b), rig_in(&m, NULL)};
  int32_t product = rig_node(&m, "matmul", &t, in, 3, &y, 1);
  rig_out(&m, rig_node(&m, "gelu", &g, &product, 1, &y, 1));
  rig_answer answer = rig_query(&tn_kernel_onednn_matmul_gelu, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "bf16"));
  a.dtype = b.dtype = y.dtype = TN_F32;
  rig_start(&m);
  in[0] = rig_in(&m, &a), in[1] = rig_in(&m, &b), in[2] = rig_in(&m, &row);
  product = rig_node(&m, "matmul", &t, in, 2, &y, 1);
  rig_out(&m, rig_node(&m, "gelu_grad", &g, (int32_t[]){product, in[2]}, 2, &y, 1));
  answer = rig_query(&tn_kernel_onednn_matmul_gelu_grad, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "broadcast"));
}

/* A kernel without a product to compute would not write the sum. */
static void the_bias_of_an_empty_weight_is_left_to_a_sum(void **state) {
  (void)state;
  tn_type d = RIG_TYPE(TN_F32, 6, 4), x = RIG_TYPE(TN_F32, 6, 0), w = RIG_TYPE(TN_F32, 4, 0),
          sums = RIG_TYPE(TN_F32, 1, 4);
  tn_matmul_attributes t = {1, 0};
  int64_t axis = 0;
  tn_reduce_attributes rows = {.axes = {1, &axis}, .keep = 1};
  static rig_match m;
  rig_start(&m);
  int32_t in[2] = {rig_in(&m, &d), rig_in(&m, &x)};
  int32_t sum = rig_node(&m, "reduce_sum", &rows, in, 1, &sums, 1);
  rig_out(&m, rig_node(&m, "matmul", &t, in, 2, &w, 1));
  rig_out(&m, sum);
  rig_answer answer = rig_query(&tn_kernel_onednn_matmul_bias_grad, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_non_null(strstr(answer.text, "empty"));
}

static void failing_allocations_are_reported(void **state) {
  (void)state;
  tn_type a = RIG_TYPE(TN_F32, 3, 4), b = RIG_TYPE(TN_F32, 4, 5), y = RIG_TYPE(TN_F32, 3, 5);
  tn_matmul_attributes t = {0, 0, 0};
  static rig_match m;
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &a), rig_in(&m, &b), rig_in(&m, NULL)};
  rig_out(&m, rig_node(&m, "matmul", &t, in, 3, &y, 1));
  rig_sweep_allocations(&tn_kernel_onednn_matmul, &m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_sums_of_bf16_are_right),
      cmocka_unit_test(products_with_bias_and_relu_are_right),
      cmocka_unit_test(the_gradient_of_a_relu_joins_the_product),
      cmocka_unit_test(a_gelu_joins_the_product),
      cmocka_unit_test(the_gradient_of_a_gelu_joins_the_product),
      cmocka_unit_test(what_is_added_joins_the_product),
      cmocka_unit_test(a_product_goes_to_several_results),
      cmocka_unit_test(panels_of_weights_are_kept_where_packing_them_shows),
      cmocka_unit_test(other_slices_of_a_product_are_refused),
      cmocka_unit_test(the_gradient_of_the_bias_comes_with_that_of_the_weights),
      cmocka_unit_test(batches_broadcast),
      cmocka_unit_test(what_is_not_done_here_is_refused),
      cmocka_unit_test(a_gelu_of_other_elements_is_refused),
      cmocka_unit_test(the_bias_of_an_empty_weight_is_left_to_a_sum),
      cmocka_unit_test(failing_allocations_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
