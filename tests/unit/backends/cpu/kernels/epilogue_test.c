/* Kernels with an epilogue against the op's kernel and the pointwise kernel, launched one after the other:
 * the bits are equal. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "backends/shared/constants.h"

extern const tn_kernel tn_kernel_cpu_conv2d_grad_input, tn_kernel_cpu_conv2d_grad_input_epilogue,
    tn_kernel_cpu_conv2d_grad_weight, tn_kernel_cpu_conv2d_grad_weight_epilogue, tn_kernel_cpu_moments,
    tn_kernel_cpu_moments_epilogue, tn_kernel_cpu_pointwise;

static bool has_pair(const rig_answer *a, int32_t operand, int32_t result) {
  for (int32_t i = 0; i < a->n_inplace; i++)
    if (a->inplace[i][0] == operand && a->inplace[i][1] == result) return true;
  return false;
}

static void assert_same(const tn_type *type, const void *a, const void *b) {
  assert_memory_equal(a, b, (size_t)tn_type_bytes(type));
}

/* ---- moments ---- */

static const int64_t axes[] = {0, 2, 3};
static const tn_reduce_attributes sums = {.axes = {3, axes}};
static const tn_affine_attributes mean_of = {1.0 / 50, 0.25};

/* next = where(is_finite(mean), mean, old) with mean = affine(s) */
static int32_t add_update(rig_match *m, int32_t s, int32_t old, const tn_type *channels) {
  tn_type flags = *channels;
  flags.dtype = TN_BOOL;
  int32_t mean = rig_node(m, "affine", &mean_of, &s, 1, channels, 1);
  int32_t finite = rig_node(m, "is_finite", NULL, &mean, 1, &flags, 1);
  return rig_node(m, "where", NULL, (int32_t[]){finite, mean, old}, 3, channels, 1);
}

typedef struct moments_case {
  tn_type x, channels;
  void *in[2], *parts[3], *out[2];
} moments_case;

static void moments_by_parts(moments_case *c) {
  static rig_match m;
  rig_start(&m);
  int32_t x = rig_in(&m, &c->x),
          s = rig_node(&m, "moments", &sums, &x, 1, (tn_type[]){c->channels, c->channels}, 2);
  rig_out(&m, s);
  rig_out(&m, s + 1);
  rig_run_on_all(&tn_kernel_cpu_moments, &m, c->in, c->parts);
  rig_start(&m);
  s = rig_in(&m, &c->channels);
  int32_t old = rig_in(&m, &c->channels);
  rig_out(&m, add_update(&m, s, old, &c->channels));
  rig_run_on_all(&tn_kernel_cpu_pointwise, &m, (void *[]){c->parts[0], c->in[1]}, &c->parts[2]);
}

/* The sums of squares are a result, the sums are not. */
static void build_moments(rig_match *m, const moments_case *c) {
  rig_start(m);
  int32_t x = rig_in(m, &c->x), old = rig_in(m, &c->channels),
          s = rig_node(m, "moments", &sums, &x, 1, (tn_type[]){c->channels, c->channels}, 2);
  rig_out(m, add_update(m, s, old, &c->channels));
  rig_out(m, s + 1);
}

static void moments_are_finalized_in_their_launch(void **state) {
  (void)state;
  static const int32_t dtypes[] = {TN_F32, TN_F16, TN_BF16};
  tn_rng rng = tn_rng_at(12, 0);
  for (int32_t i = 0; i < 3; i++) {
    static rig_match m;
    moments_case c = {RIG_TYPE(dtypes[i], 4, 3, 5, 7), RIG_TYPE(TN_F32, 3)};
    c.in[0] = rig_drawn(&c.x, &rng);
    c.in[1] = rig_drawn(&c.channels, &rng);
    for (int k = 0; k < 3; k++) c.parts[k] = rig_tensor(&c.channels);
    for (int k = 0; k < 2; k++) c.out[k] = rig_tensor(&c.channels);
    rig_put(&c.x, c.in[0], 40, INFINITY); /* in channel 1 */
    moments_by_parts(&c);
    build_moments(&m, &c);
    rig_run_on_all(&tn_kernel_cpu_moments_epilogue, &m, c.in, c.out);
    assert_same(&c.channels, c.out[0], c.parts[2]);
    assert_same(&c.channels, c.out[1], c.parts[1]);
    /* the channel that is not finite keeps its statistic, the others change */
    for (int k = 0; k < 3; k++) assert_int_equal(((float *)c.out[0])[k] == ((float *)c.in[1])[k], k == 1);
    rig_answer answer = rig_query(&tn_kernel_cpu_moments_epilogue, &m);
    assert_true(has_pair(&answer, 1, 0)); /* the new statistic overwrites the old one */
    assert_false(has_pair(&answer, 1, 1));
    rig_sweep_allocations(&tn_kernel_cpu_moments_epilogue, &m);
    for (int k = 0; k < 2; k++) {
      free(c.in[k]);
      free(c.out[k]);
    }
    for (int k = 0; k < 3; k++) free(c.parts[k]);
  }
}

/* ---- convolutions ---- */

static const int64_t ones[] = {1, 1};
static const int64_t image[] = {2, 3, 65, 65}, kernel[] = {5, 3, 3, 3};
static const tn_conv2d_attributes grad_input = {{2, ones}, {2, ones}, {2, ones}, 1, {4, image}, 0};
static const tn_conv2d_attributes grad_weight = {{2, ones}, {2, ones}, {2, ones}, 1, {4, kernel}, 0};

/* The gradient of the weight in f16 needs memory, since the result is f32. */
static void a_weight_gradient_is_widened_in_its_launch(void **state) {
  (void)state;
  static rig_match m;
  tn_rng rng = tn_rng_at(34, 0);
  tn_type x = RIG_TYPE(TN_F16, 2, 3, 9, 9), dy = RIG_TYPE(TN_F16, 2, 5, 9, 9),
          dw = RIG_TYPE(TN_F16, 5, 3, 3, 3), wide = RIG_TYPE(TN_F32, 5, 3, 3, 3);
  const tn_cast_attributes to = {TN_F32};
  void *in[] = {rig_drawn(&x, &rng), rig_drawn(&dy, &rng)}, *narrow = rig_tensor(&dw),
       *out = rig_tensor(&wide);
  rig_start(&m);
  int32_t operands[] = {rig_in(&m, &x), rig_in(&m, &dy)};
  rig_out(&m, rig_node(&m, "conv2d_grad_weight", &grad_weight, operands, 2, &dw, 1));
  rig_run_on_all(&tn_kernel_cpu_conv2d_grad_weight, &m, in, &narrow);
  int64_t alone = rig_query(&tn_kernel_cpu_conv2d_grad_weight, &m).workspace_bytes;
  rig_start(&m);
  rig_in(&m, &x);
  rig_in(&m, &dy);
  int32_t made = rig_node(&m, "conv2d_grad_weight", &grad_weight, operands, 2, &dw, 1);
  rig_out(&m, rig_node(&m, "cast", &to, &made, 1, &wide, 1));
  rig_run_on_all(&tn_kernel_cpu_conv2d_grad_weight_epilogue, &m, in, &out);
  for (int64_t i = 0; i < tn_type_count(&dw); i++)
    assert_true(rig_get(&wide, out, i) == rig_get(&dw, narrow, i));
  assert_true(rig_query(&tn_kernel_cpu_conv2d_grad_weight_epilogue, &m).workspace_bytes >=
              alone + (int64_t)tn_type_bytes(&dw));
  rig_sweep_allocations(&tn_kernel_cpu_conv2d_grad_weight_epilogue, &m);
  free(in[0]);
  free(in[1]);
  free(narrow);
  free(out);
}

static const tn_full_attributes zeros = {.dtype = TN_F32};

/* d = where(gt(y, 0), add(dx, other), 0) */
static int32_t add_gate(rig_match *m, int32_t dx, int32_t other, int32_t y, const tn_type *type) {
  tn_type one = {type->dtype, 0, {0}}, flags = *type;
  flags.dtype = TN_BOOL;
  int32_t sum = rig_node(m, "add", NULL, (int32_t[]){dx, other}, 2, type, 1);
  int32_t none = rig_node(m, "full", &zeros, NULL, 0, &one, 1);
  int32_t open = rig_node(m, "gt", NULL, (int32_t[]){y, none}, 2, &flags, 1);
  return rig_node(m, "where", NULL, (int32_t[]){open, sum, none}, 3, type, 1);
}

/* A large gradient lies in the result until the gate overwrites it: no more workspace than alone. */
static void an_input_gradient_passes_its_gate_in_its_launch(void **state) {
  (void)state;
  static rig_match m;
  tn_rng rng = tn_rng_at(56, 0);
  tn_type dy = RIG_TYPE(TN_F32, 2, 5, 65, 65), w = RIG_TYPE(TN_F32, 5, 3, 3, 3),
          dx = RIG_TYPE(TN_F32, 2, 3, 65, 65);
  void *in[] = {rig_drawn(&dx, &rng), rig_drawn(&dy, &rng), rig_drawn(&w, &rng), rig_drawn(&dx, &rng)},
       *alone = rig_tensor(&dx), *gated = rig_tensor(&dx), *out = rig_tensor(&dx);
  rig_start(&m);
  int32_t operands[] = {rig_in(&m, &dy), rig_in(&m, &w)};
  rig_out(&m, rig_node(&m, "conv2d_grad_input", &grad_input, operands, 2, &dx, 1));
  rig_run_on_all(&tn_kernel_cpu_conv2d_grad_input, &m, &in[1], &alone);
  int64_t workspace = rig_query(&tn_kernel_cpu_conv2d_grad_input, &m).workspace_bytes;
  rig_start(&m);
  for (int i = 0; i < 3; i++) rig_in(&m, &dx);
  rig_out(&m, add_gate(&m, 0, 1, 2, &dx));
  rig_run_on_all(&tn_kernel_cpu_pointwise, &m, (void *[]){alone, in[0], in[3]}, &gated);
  rig_start(&m);
  rig_in(&m, &dx);
  operands[0] = rig_in(&m, &dy);
  operands[1] = rig_in(&m, &w);
  rig_in(&m, &dx);
  int32_t made = rig_node(&m, "conv2d_grad_input", &grad_input, operands, 2, &dx, 1);
  rig_out(&m, add_gate(&m, made, 0, 3, &dx));
  rig_run_on_all(&tn_kernel_cpu_conv2d_grad_input_epilogue, &m, in, &out);
  assert_same(&dx, out, gated);
  rig_answer answer = rig_query(&tn_kernel_cpu_conv2d_grad_input_epilogue, &m);
  assert_true(answer.workspace_bytes < workspace + 64);
  /* the op writes the result before the region reads its operands */
  assert_int_equal(answer.n_inplace, 0);
  rig_sweep_allocations(&tn_kernel_cpu_conv2d_grad_input_epilogue, &m);
  for (int i = 0; i < 4; i++) free(in[i]);
  free(alone);
  free(gated);
  free(out);
}

/* ---- the parts' matches ---- */

/* The kernels that epilogue.c calls, by the linker's --wrap: they note which operands are a known number. */
extern const tn_kernel __real_tn_kernel_cpu_moments, __wrap_tn_kernel_cpu_moments,
    __real_tn_kernel_cpu_pointwise, __wrap_tn_kernel_cpu_pointwise;
enum { NOTED = 8 };
typedef struct noted_operands {
  int32_t n;
  bool zero[NOTED];
} noted_operands;
static noted_operands of_op, of_region;

static void note_operands(const tn_match *m, noted_operands *noted) {
  noted->n = m->n_in;
  for (int32_t i = 0; i < m->n_in && i < NOTED; i++) noted->zero[i] = tn_operand_is_zero(m, i);
}

static tn_status query_moments(tn_query *q) {
  note_operands(q->match, &of_op);
  return __real_tn_kernel_cpu_moments.query(q);
}
static tn_status prepare_moments(tn_prepare *p, void **made) {
  return __real_tn_kernel_cpu_moments.prepare(p, made);
}
static void release_moments(tn_env *env, void *made) { __real_tn_kernel_cpu_moments.release(env, made); }
static tn_status launch_moments(tn_launch *l) { return __real_tn_kernel_cpu_moments.launch(l); }
const tn_kernel __wrap_tn_kernel_cpu_moments = {.item =
                                                    TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "moments", "noted"),
                                                .query = query_moments,
                                                .prepare = prepare_moments,
                                                .release = release_moments,
                                                .launch = launch_moments};

static tn_status query_pointwise(tn_query *q) {
  note_operands(q->match, &of_region);
  return __real_tn_kernel_cpu_pointwise.query(q);
}
static tn_status prepare_pointwise(tn_prepare *p, void **made) {
  return __real_tn_kernel_cpu_pointwise.prepare(p, made);
}
static void release_pointwise(tn_env *env, void *made) { __real_tn_kernel_cpu_pointwise.release(env, made); }
static tn_status launch_pointwise(tn_launch *l) { return __real_tn_kernel_cpu_pointwise.launch(l); }
const tn_kernel __wrap_tn_kernel_cpu_pointwise = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "pointwise", "noted"),
    .query = query_pointwise,
    .prepare = prepare_pointwise,
    .release = release_pointwise,
    .launch = launch_pointwise};

static void check_noted(const noted_operands *noted, int32_t n, int32_t zero) {
  assert_int_equal(noted->n, n);
  for (int32_t i = 0; i < n; i++) assert_int_equal(noted->zero[i], i == zero);
}

/* The region's operands are the sums, the squares, and the old statistic. */
static void the_kernels_of_the_parts_read_which_operands_are_a_known_number(void **state) {
  (void)state;
  static rig_match m;
  const moments_case c = {RIG_TYPE(TN_F32, 4, 3, 5, 7), RIG_TYPE(TN_F32, 3)};
  build_moments(&m, &c);
  assert_int_equal(rig_query(&tn_kernel_cpu_moments_epilogue, &m).status, TN_OK);
  check_noted(&of_op, 1, -1);
  check_noted(&of_region, 3, -1);
  rig_is_zero(&m, 0);
  assert_int_equal(rig_query(&tn_kernel_cpu_moments_epilogue, &m).status, TN_OK);
  check_noted(&of_op, 1, 0);
  check_noted(&of_region, 3, -1);
  build_moments(&m, &c);
  rig_is_zero(&m, 1);
  assert_int_equal(rig_query(&tn_kernel_cpu_moments_epilogue, &m).status, TN_OK);
  check_noted(&of_op, 1, -1);
  check_noted(&of_region, 3, 2);
}

/* ---- refusals ---- */

static void what_the_region_does_not_support_is_refused(void **state) {
  (void)state;
  static rig_match m;
  tn_type x = RIG_TYPE(TN_F32, 4, 3, 5, 7), channels = RIG_TYPE(TN_F32, 3);
  rig_start(&m);
  int32_t operand = rig_in(&m, &x),
          s = rig_node(&m, "moments", &sums, &operand, 1, (tn_type[]){channels, channels}, 2);
  rig_out(&m, rig_node(&m, "quux", NULL, &s, 1, &channels, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_moments_epilogue, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_string_equal(answer.text, "quux is not among its ops");
}

static void a_region_in_front_of_the_op_is_refused(void **state) {
  (void)state;
  static rig_match m;
  tn_type x = RIG_TYPE(TN_F32, 4, 3, 5, 7), channels = RIG_TYPE(TN_F32, 3);
  rig_start(&m);
  int32_t operand = rig_in(&m, &x), before = rig_node(&m, "neg", NULL, &operand, 1, &x, 1),
          s = rig_node(&m, "moments", &sums, &before, 1, (tn_type[]){channels, channels}, 2);
  rig_out(&m, rig_node(&m, "neg", NULL, &s, 1, &channels, 1));
  rig_answer answer = rig_query(&tn_kernel_cpu_moments_epilogue, &m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_string_equal(answer.text, "an operand of moments is absent or made in the region");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moments_are_finalized_in_their_launch),
      cmocka_unit_test(a_weight_gradient_is_widened_in_its_launch),
      cmocka_unit_test(an_input_gradient_passes_its_gate_in_its_launch),
      cmocka_unit_test(the_kernels_of_the_parts_read_which_operands_are_a_known_number),
      cmocka_unit_test(what_the_region_does_not_support_is_refused),
      cmocka_unit_test(a_region_in_front_of_the_op_is_refused),
  };
  return cmocka_run_group_tests_name("cpu: epilogues", tests, NULL, NULL);
}
