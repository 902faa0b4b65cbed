/* conv2d and its two gradients against the definition in f64. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_conv2d, tn_kernel_cpu_conv2d_grad_input,
    tn_kernel_cpu_conv2d_grad_weight;

/* A tensor, its expected values, and the sum of the magnitudes of the terms of each element. */
typedef struct tensor {
  tn_type type;
  void *data;
  double *value, *magnitude;
} tensor;

typedef struct conv {
  int64_t stride[2], padding[2], dilation[2];
  tn_conv2d_attributes attributes;
  tensor x, w, bias, y, dx, dw, dy; /* y, dx and dw are results */
} conv;

static tensor tensor_new(tn_type type, tn_rng *rng) {
  size_t n = (size_t)tn_type_count(&type) + 1;
  tensor t = {type, rng != NULL ? rig_drawn(&type, rng) : rig_tensor(&type), calloc(n, sizeof(double)),
              calloc(n, sizeof(double))};
  for (size_t i = 0; i + 1 < n; i++) t.value[i] = rig_get(&type, t.data, (int64_t)i);
  return t;
}

static void tensor_free(tensor *t) {
  free(t->data);
  free(t->value);
  free(t->magnitude);
}

static void add_term(tensor *t, int64_t at, double term) {
  t->value[at] += term;
  t->magnitude[at] += fabs(term);
}

/* Adds every product of the definition to y, dx and dw. */
static void one_tap(conv *c, const int64_t *at, int64_t r, int64_t q) {
  const int64_t *xd = c->x.type.dims, *wd = c->w.type.dims, *yd = c->y.type.dims;
  int64_t n = at[0], o = at[1], group = o / (wd[0] / c->attributes.groups);
  int64_t row = at[2] * c->stride[0] - c->padding[0] + r * c->dilation[0];
  int64_t column = at[3] * c->stride[1] - c->padding[1] + q * c->dilation[1];
  if (row < 0 || row >= xd[2] || column < 0 || column >= xd[3]) return;
  for (int64_t i = 0; i < wd[1]; i++) {
    int64_t x = ((n * xd[1] + group * wd[1] + i) * xd[2] + row) * xd[3] + column;
    int64_t w = ((o * wd[1] + i) * wd[2] + r) * wd[3] + q;
    int64_t y = ((n * yd[1] + o) * yd[2] + at[2]) * yd[3] + at[3];
    add_term(&c->y, y, c->x.value[x] * c->w.value[w]);
    add_term(&c->dx, x, c->dy.value[y] * c->w.value[w]);
    add_term(&c->dw, w, c->dy.value[y] * c->x.value[x]);
  }
}

static void define(conv *c) {
  for (int64_t i = 0; i < tn_type_count(&c->y.type); i++) {
    int64_t at[4];
    rig_coordinates(&c->y.type, i, at);
    for (int64_t r = 0; r < c->w.type.dims[2]; r++)
      for (int64_t q = 0; q < c->w.type.dims[3]; q++) one_tap(c, at, r, q);
    if (c->bias.data != NULL) add_term(&c->y, i, c->bias.value[at[1]]);
  }
}

static void check(const char *what, const tensor *t) {
  int32_t wide = t->type.dtype == TN_F64 ? TN_F64 : TN_F32;
  for (int64_t i = 0; i < tn_type_count(&t->type); i++) {
    double got = rig_get(&t->type, t->data, i), want = t->value[i];
    double bound = rig_ulp(t->type.dtype, want) / 2 + 40 * rig_ulp(wide, t->magnitude[i]);
    if (!(fabs(got - want) <= bound))
      fail_msg("%s[%lld] is %.17g, expected %.17g +- %g", what, (long long)i, got, want, bound);
  }
}

static void run(const tn_kernel *kernel, const conv *c, const tensor *a, const tensor *b, const tensor *bias,
                const tensor *result) {
  static rig_match m;
  tn_conv2d_attributes attributes = c->attributes;
  if (bias == NULL) attributes.dims = (tn_ints){4, result->type.dims};
  rig_start(&m);
  int32_t in[3] = {rig_in(&m, &a->type), rig_in(&m, &b->type), -1};
  if (bias != NULL) in[2] = rig_in(&m, bias->data != NULL ? &bias->type : NULL);
  rig_out(&m, rig_node(&m, kernel->item.name, &attributes, in, bias != NULL ? 3 : 2, &result->type, 1));
  rig_run_on_all(kernel, &m, (void *[]){a->data, b->data, bias != NULL ? bias->data : NULL},
                 (void *[]){result->data});
}

static void run_all_three(conv *c) {
  define(c);
  run(&tn_kernel_cpu_conv2d, c, &c->x, &c->w, &c->bias, &c->y);
  run(&tn_kernel_cpu_conv2d_grad_input, c, &c->dy, &c->w, NULL, &c->dx);
  run(&tn_kernel_cpu_conv2d_grad_weight, c, &c->x, &c->dy, NULL, &c->dw);
  check("y", &c->y);
  check("dx", &c->dx);
  check("dw", &c->dw);
}

typedef struct shape {
  int32_t dtype, with_bias;
  int64_t batch, groups, c, o, size[2], kernel[2], stride[2], padding[2], dilation[2];
} shape;

static int64_t extent(const shape *s, int32_t i) {
  return (s->size[i] + 2 * s->padding[i] - s->dilation[i] * (s->kernel[i] - 1) - 1) / s->stride[i] + 1;
}

static void try_shape(const shape *s, tn_rng *rng) {
  conv c = {{s->stride[0], s->stride[1]}, {s->padding[0], s->padding[1]}, {s->dilation[0], s->dilation[1]}};
  c.attributes = (tn_conv2d_attributes){{2, c.stride}, {2, c.padding}, {2, c.dilation}, s->groups, {0, NULL}};
  tn_type x = RIG_TYPE(s->dtype, s->batch, s->groups * s->c, s->size[0], s->size[1]);
  tn_type w = RIG_TYPE(s->dtype, s->groups * s->o, s->c, s->kernel[0], s->kernel[1]);
  tn_type y = RIG_TYPE(s->dtype, s->batch, s->groups * s->o, extent(s, 0), extent(s, 1));
  c.x = tensor_new(x, rng);
  c.w = tensor_new(w, rng);
  c.dy = tensor_new(y, rng);
  if (s->with_bias) c.bias = tensor_new(RIG_TYPE(s->dtype, s->groups * s->o), rng);
  c.y = tensor_new(y, NULL);
  c.dx = tensor_new(x, NULL);
  c.dw = tensor_new(w, NULL);
  run_all_three(&c);
  tensor *all[7] = {&c.x, &c.w, &c.bias, &c.y, &c.dx, &c.dw, &c.dy};
  for (int32_t i = 0; i < 7; i++) tensor_free(all[i]);
}

static const int32_t dtypes[4] = {TN_F32, TN_F64, TN_F16, TN_BF16};

static void convolutions_of_drawn_shapes_follow_the_definition(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(11, 0);
  for (int32_t i = 0; i < 200; i++) {
    shape s = {.dtype = dtypes[i % 4], .with_bias = i / 4 % 2, .batch = 1 + tn_rng_below(&rng, 3)};
    s.groups = i % 3 == 0 ? 1 + tn_rng_below(&rng, 4) : 1;
    s.c = 1 + tn_rng_below(&rng, 5);
    s.o = 1 + tn_rng_below(&rng, 6);
    for (int32_t a = 0; a < 2; a++) {
      s.kernel[a] = 1 + tn_rng_below(&rng, 4);
      s.stride[a] = 1 + tn_rng_below(&rng, 3);
      s.padding[a] = tn_rng_below(&rng, 4);
      s.dilation[a] = 1 + tn_rng_below(&rng, 3);
      s.size[a] = 1 + tn_rng_below(&rng, 12);
      int64_t reach = s.dilation[a] * (s.kernel[a] - 1) + 1;
      if (s.size[a] + 2 * s.padding[a] < reach) s.size[a] = reach;
    }
    try_shape(&s, &rng);
  }
}

/* Large enough for several tiles, several blocks along k, and partial sums of the weight's gradient. */
static void large_convolutions_follow_the_definition(void **state) {
  (void)state;
  static const shape shapes[] = {
      {TN_F32, 1, 4, 1, 33, 40, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 0, 2, 2, 40, 36, {17, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {TN_BF16, 1, 2, 1, 3, 64, {40, 40}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
      {TN_F64, 0, 3, 1, 70, 130, {9, 9}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {TN_F16, 0, 2, 1, 20, 30, {12, 12}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
      {TN_F32, 0, 16, 1, 5, 6, {30, 30}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 1, 2, 30, 1, 1, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 0, 1, 1, 2, 600, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
  };
  tn_rng rng = tn_rng_at(12, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) try_shape(&shapes[i], &rng);
}

static void strides_beyond_the_kernel_leave_zeros_in_the_gradient(void **state) {
  (void)state;
  static const shape s = {TN_F32, 1, 2, 1, 3, 2, {11, 7}, {1, 2}, {4, 5}, {0, 0}, {1, 1}};
  tn_rng rng = tn_rng_at(13, 0);
  try_shape(&s, &rng);
}

static void empty_batches_and_channels_are_harmless(void **state) {
  (void)state;
  static const shape shapes[] = {
      {TN_F32, 1, 0, 1, 3, 2, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 1, 2, 1, 0, 2, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 1, 2, 1, 3, 0, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {TN_F32, 1, 2, 1, 3, 2, {0, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
  };
  tn_rng rng = tn_rng_at(14, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) try_shape(&shapes[i], &rng);
}

static void integer_types_are_unsupported(void **state) {
  (void)state;
  int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  tn_conv2d_attributes attributes = {{2, ones}, {2, zeros}, {2, ones}, 1, {0, NULL}};
  tn_type type = RIG_TYPE(TN_I32, 1, 1, 1, 1);
  static rig_match m;
  rig_start(&m);
  int32_t in[2] = {rig_in(&m, &type), rig_in(&m, &type)};
  rig_out(&m, rig_node(&m, "conv2d", &attributes, in, 2, &type, 1));
  assert_int_equal(rig_query(&tn_kernel_cpu_conv2d, &m).status, TN_EUNSUPPORTED);
  assert_int_equal(rig_query(&tn_kernel_cpu_conv2d_grad_input, &m).status, TN_EUNSUPPORTED);
  assert_int_equal(rig_query(&tn_kernel_cpu_conv2d_grad_weight, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_of_drawn_shapes_follow_the_definition),
      cmocka_unit_test(large_convolutions_follow_the_definition),
      cmocka_unit_test(strides_beyond_the_kernel_leave_zeros_in_the_gradient),
      cmocka_unit_test(empty_batches_and_channels_are_harmless),
      cmocka_unit_test(integer_types_are_unsupported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
