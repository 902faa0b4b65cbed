/* Small convolutions and their gradients, against the reference backend; with ReLU and the gradient of the
 * bias, against those without. */
#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_conv2d, tn_kernel_cpu_conv2d_grad_input,
    tn_kernel_cpu_conv2d_grad_weight, tn_kernel_onednn_conv2d_small, tn_kernel_onednn_conv2d_small_grad_bias,
    tn_kernel_onednn_conv2d_small_grad_input, tn_kernel_onednn_conv2d_small_grad_weight,
    tn_kernel_onednn_conv2d_small_relu;

typedef struct conv {
  int64_t n, c, o, h, w, kernel[2], padding[2], dilation[2];
} conv;

/* The two of LeNet; one pixel, one tap; more padding than the reach of the kernel; rows of one, two and more
 * vectors; filters beyond a vector; enough pictures for several chunks and blocks. */
static const conv convs[] = {
    {3, 1, 6, 28, 28, {5, 5}, {2, 2}, {1, 1}},  {2, 6, 16, 14, 14, {5, 5}, {0, 0}, {1, 1}},
    {1, 1, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}},    {2, 2, 3, 4, 5, {1, 2}, {2, 3}, {1, 1}},
    {2, 3, 5, 9, 33, {3, 3}, {1, 1}, {1, 1}},   {1, 4, 9, 7, 17, {3, 7}, {2, 1}, {2, 2}},
    {2, 5, 33, 6, 7, {2, 6}, {1, 0}, {1, 1}},   {1, 3, 20, 11, 13, {6, 11}, {5, 10}, {1, 1}},
    {60, 3, 8, 12, 11, {3, 3}, {1, 1}, {2, 1}}, {50, 2, 16, 16, 18, {5, 4}, {0, 2}, {1, 1}},
    {3, 2, 16, 5, 6, {3, 3}, {1, 1}, {3, 1}},
};
enum { CONVS = sizeof convs / sizeof *convs };

typedef struct problem {
  tn_type x, w, b, y;
  void *x_data, *w_data, *b_data, *dy_data;
  int64_t stride[2];
  tn_conv2d_attributes attributes;
} problem;

static void start(problem *p, const conv *c, tn_rng *rng) {
  int64_t out[2];
  for (int32_t i = 0; i < 2; i++)
    out[i] = (i == 0 ? c->h : c->w) + 2 * c->padding[i] - (c->kernel[i] - 1) * c->dilation[i];
  p->x = RIG_TYPE(TN_F32, c->n, c->c, c->h, c->w);
  p->w = RIG_TYPE(TN_F32, c->o, c->c, c->kernel[0], c->kernel[1]);
  p->b = RIG_TYPE(TN_F32, c->o);
  p->y = RIG_TYPE(TN_F32, c->n, c->o, out[0], out[1]);
  p->x_data = rig_drawn(&p->x, rng);
  p->w_data = rig_drawn(&p->w, rng);
  p->b_data = rig_drawn(&p->b, rng);
  p->dy_data = rig_drawn(&p->y, rng);
  p->stride[0] = p->stride[1] = 1;
  p->attributes = (tn_conv2d_attributes){
      .stride = {2, p->stride}, .padding = {2, c->padding}, .dilation = {2, c->dilation}, .groups = 1};
}

static void finish(problem *p) { free(p->x_data), free(p->w_data), free(p->b_data), free(p->dy_data); }

/* A match of one op; its result's dims are an attribute of gradients. */
static rig_match *one_op(const char *op, problem *p, const tn_type *const *in, int32_t n_in,
                         const tn_type *out) {
  static rig_match m;
  int32_t number[3];
  rig_start(&m);
  for (int32_t i = 0; i < n_in; i++) number[i] = rig_in(&m, in[i]);
  p->attributes.dims = strcmp(op, "conv2d") == 0 ? (tn_ints){0, NULL} : (tn_ints){4, out->dims};
  rig_out(&m, rig_node(&m, op, &p->attributes, number, n_in, out, 1));
  return &m;
}

static void convolutions_are_those_of_the_cpu(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(51, 0);
  for (int32_t i = 0; i < CONVS; i++) {
    problem p;
    start(&p, &convs[i], &rng);
    const tn_type *in[3] = {&p.x, &p.w, i % 2 == 0 ? &p.b : NULL};
    rig_match *m = one_op("conv2d", &p, in, 3, &p.y);
    ways_check(&tn_kernel_onednn_conv2d_small, &tn_kernel_cpu_conv2d, m,
               (void *[]){p.x_data, p.w_data, p.b_data}, 2e-6, 1);
    rig_sweep_allocations(&tn_kernel_onednn_conv2d_small, m);
    finish(&p);
  }
}

static void gradients_of_inputs_are_those_of_the_cpu(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(52, 0);
  for (int32_t i = 0; i < CONVS; i++) {
    problem p;
    start(&p, &convs[i], &rng);
    rig_match *m = one_op("conv2d_grad_input", &p, (const tn_type *[]){&p.y, &p.w}, 2, &p.x);
    ways_check(&tn_kernel_onednn_conv2d_small_grad_input, &tn_kernel_cpu_conv2d_grad_input, m,
               (void *[]){p.dy_data, p.w_data}, 2e-6, 1);
    finish(&p);
  }
}

static void gradients_of_weights_are_those_of_the_cpu(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(53, 0);
  for (int32_t i = 0; i < CONVS; i++) {
    problem p;
    start(&p, &convs[i], &rng);
    rig_match *m = one_op("conv2d_grad_weight", &p, (const tn_type *[]){&p.x, &p.y}, 2, &p.w);
    ways_check(&tn_kernel_onednn_conv2d_small_grad_weight, &tn_kernel_cpu_conv2d_grad_weight, m,
               (void *[]){p.x_data, p.dy_data}, 4e-6, 1);
    finish(&p);
  }
}

static void a_relu_is_applied_to_the_same_sums(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(54, 0);
  for (int32_t i = 0; i < CONVS; i++) {
    problem p;
    float zero = 0;
    tn_type scalar = rig_type(TN_F32, 0, NULL);
    start(&p, &convs[i], &rng);
    void *data[4] = {p.x_data, p.w_data, p.b_data, &zero};
    float *plain = rig_tensor(&p.y), *rectified = rig_tensor(&p.y);
    rig_match *m = one_op("conv2d", &p, (const tn_type *[]){&p.x, &p.w, &p.b}, 3, &p.y);
    rig_run_on_all(&tn_kernel_onednn_conv2d_small, m, data, (void *[]){plain});
    rig_start(m);
    int32_t in[4] = {rig_in(m, &p.x), rig_in(m, &p.w), rig_in(m, &p.b), rig_in(m, &scalar)};
    rig_is_zero(m, in[3]);
    int32_t y = rig_node(m, "conv2d", &p.attributes, in, 3, &p.y, 1);
    rig_out(m, rig_node(m, "maximum", NULL, (int32_t[]){y, in[3]}, 2, &p.y, 1));
    rig_run_on_all(&tn_kernel_onednn_conv2d_small_relu, m, data, (void *[]){rectified});
    for (int64_t k = 0; k < tn_type_count(&p.y); k++) assert_true(rectified[k] == fmaxf(plain[k], 0));
    free(plain), free(rectified);
    finish(&p);
  }
}

static void the_gradient_of_the_bias_comes_with_that_of_the_weights(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(55, 0);
  for (int32_t i = 0; i < CONVS; i++) {
    problem p;
    start(&p, &convs[i], &rng);
    void *data[2] = {p.x_data, p.dy_data};
    void *alone = rig_tensor(&p.w), *together = rig_tensor(&p.w);
    float *bias = rig_tensor(&p.b);
    rig_match *m = one_op("conv2d_grad_weight", &p, (const tn_type *[]){&p.x, &p.y}, 2, &p.w);
    rig_run_on_all(&tn_kernel_onednn_conv2d_small_grad_weight, m, data, (void *[]){alone});
    int64_t axes[3] = {0, 2, -1};
    tn_reduce_attributes all_but_filters = {.axes = {3, axes}};
    rig_start(m);
    int32_t in[2] = {rig_in(m, &p.x), rig_in(m, &p.y)};
    rig_out(m, rig_node(m, "conv2d_grad_weight", &p.attributes, in, 2, &p.w, 1));
    rig_out(m, rig_node(m, "reduce_sum", &all_but_filters, in + 1, 1, &p.b, 1));
    rig_run_on_all(&tn_kernel_onednn_conv2d_small_grad_bias, m, data, (void *[]){together, bias});
    assert_memory_equal(alone, together, (size_t)tn_type_count(&p.w) * sizeof(float));
    int64_t plane = p.y.dims[2] * p.y.dims[3];
    for (int64_t o = 0; o < p.y.dims[1]; o++) {
      double sum = 0;
      for (int64_t k = 0; k < p.y.dims[0] * plane; k++)
        sum += (double)((float *)p.dy_data)[(k / plane * p.y.dims[1] + o) * plane + k % plane];
      assert_true(fabs(sum - (double)bias[o]) < 1e-3 * (1 + fabs(sum)));
    }
    free(alone), free(together), free(bias);
    finish(&p);
  }
}

static void what_is_not_small_is_refused(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(56, 0);
  for (int32_t i = 0; i < 4; i++) {
    conv c = {1, 2, 2, i == 0 ? 300 : 8, i == 0 ? 300 : 8, {3, 3}, {1, 1}, {1, 1}};
    problem p;
    start(&p, &c, &rng);
    if (i == 1) p.stride[1] = 2;
    if (i == 2) p.attributes.groups = 2;
    if (i == 3) p.attributes.math = TN_MATH_TF32;
    rig_match *m = one_op("conv2d", &p, (const tn_type *[]){&p.x, &p.w, &p.b}, 3, &p.y);
    rig_answer a = rig_query(&tn_kernel_onednn_conv2d_small, m);
    assert_int_equal(a.status, TN_EUNSUPPORTED);
    assert_non_null(strstr(a.text, i == 0 ? "not small" : i == 3 ? "tf32" : "groups and stride"));
    finish(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_are_those_of_the_cpu),
      cmocka_unit_test(gradients_of_inputs_are_those_of_the_cpu),
      cmocka_unit_test(gradients_of_weights_are_those_of_the_cpu),
      cmocka_unit_test(a_relu_is_applied_to_the_same_sums),
      cmocka_unit_test(the_gradient_of_the_bias_comes_with_that_of_the_weights),
      cmocka_unit_test(what_is_not_small_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
