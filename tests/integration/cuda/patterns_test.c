/* A use of each pattern that a kernel of cuDNN computes, on the double, against the reference in f64: the
 * kernel is the one that is chosen. Kernels that fold constants are of infer_test.c. A kernel of cuDNN that
 * neither test reaches is an error. PLUGIN: the backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/conformance/trial/trial.h"
#include "cudnn_models.h"
#include "double_device.h"

static fixture f;
static tn_device *device;

/* ---- operands ---- */

static tn_val draw_image(tn_draw *d, int64_t n, int64_t channels, int64_t size, int32_t fill) {
  return tn_draw_tensor(d, tn_draw_type_of(d->dtype, 4, (int64_t[]){n, channels, size, size}), fill);
}

static tn_val draw_row(tn_draw *d, int64_t channels, int32_t fill) {
  return tn_draw_tensor(d, tn_draw_type_of(TN_F32, 1, &channels), fill);
}

static tn_val add_result(tn_draw *d, tn_val result) {
  d->results[d->n_results++] = result;
  return d->results[0];
}

static const int64_t none[] = {0, 0}, one[] = {1, 1}, channels_apart[] = {0, 2, 3};

static tn_val draw_conv(tn_draw *d, tn_val bias) {
  tn_val x = draw_image(d, 2, 8, 9, TN_FILL_ANY);
  tn_val w = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 4, (int64_t[]){16, 8, 3, 3}), TN_FILL_ANY);
  return tn_conv2d(d->b, x, w, bias, 2, one, 2, one, 2, one, 1, TN_MATH_FULL);
}

/* ---- convolutions ---- */

static tn_val emit_conv2d(tn_draw *d, const tn_case *c) {
  (void)c;
  return draw_conv(d, 0);
}

static tn_val emit_conv2d_relu(tn_draw *d, const tn_case *c) {
  (void)c;
  int64_t channels = 16;
  tn_val y = draw_conv(d, tn_draw_tensor(d, tn_draw_type_of(d->dtype, 1, &channels), TN_FILL_ANY));
  return add_result(d, tn_relu(d->b, y));
}

static tn_val emit_conv2d_grad_input(tn_draw *d, const tn_case *c) {
  (void)c;
  tn_val dy = draw_image(d, 2, 16, 9, TN_FILL_ANY), w = draw_image(d, 16, 8, 3, TN_FILL_ANY);
  return tn_conv2d_grad_input(d->b, dy, w, 2, one, 2, one, 2, one, 1, TN_MATH_FULL, 4,
                              (int64_t[]){2, 8, 9, 9});
}

static tn_val emit_conv2d_grad_weight(tn_draw *d, const tn_case *c) {
  (void)c;
  tn_val x = draw_image(d, 2, 8, 9, TN_FILL_ANY), dy = draw_image(d, 2, 16, 9, TN_FILL_ANY);
  return tn_conv2d_grad_weight(d->b, x, dy, 2, one, 2, one, 2, one, 1, TN_MATH_FULL, 4,
                               (int64_t[]){16, 8, 3, 3});
}

static tn_val emit_moments(tn_draw *d, tn_val y, bool epilogue) {
  tn_val mean = tn_moments(d->b, y, 3, channels_apart), variance = tn_op_result(d->b, mean, 1);
  add_result(d, y);
  add_result(d, mean);
  return add_result(d, epilogue ? tn_rsqrt(d->b, tn_affine(d->b, variance, 1, 1e-5)) : variance);
}

static tn_val emit_conv2d_moments(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_moments(d, draw_conv(d, 0), false);
}

static tn_val emit_conv2d_moments_epilogue(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_moments(d, draw_conv(d, 0), true);
}

/* ---- batch norm and ReLU ---- */

typedef struct normed {
  tn_val x, mean, rstd, zero, relu;
} normed;

/* The sign of the ReLU's operand is that of x, so that no rounding decides about the gate. */
static normed draw_norm_relu(tn_draw *d, int64_t n, int64_t channels, int64_t size) {
  tn_build *b = d->b;
  const int64_t wide[] = {1, channels, 1, 1};
  normed r = {.x = draw_image(d, n, channels, size, TN_FILL_AWAY)};
  r.rstd = draw_row(d, channels, TN_FILL_POSITIVE);
  tn_val gamma = draw_row(d, channels, TN_FILL_POSITIVE);
  r.mean = tn_affine(b, draw_row(d, channels, TN_FILL_ANY), 0.01, 0);
  tn_val beta = tn_affine(b, draw_row(d, channels, TN_FILL_ANY), 0.001, 0);
  tn_val factor = tn_reshape(b, tn_mul(b, r.rstd, gamma), 4, wide);
  tn_val centered = tn_sub(b, tn_to_dtype(b, r.x, TN_F32), tn_reshape(b, r.mean, 4, wide));
  tn_val sum = tn_add(b, tn_mul(b, centered, factor), tn_reshape(b, beta, 4, wide));
  r.zero = tn_scalar(b, d->dtype, 0);
  r.relu = tn_maximum(b, tn_to_dtype(b, sum, d->dtype), r.zero);
  return r;
}

/* Images so large that a launch costs less than writing and reading the ReLU's result. */
enum { LARGE_BATCH = 16, LARGE_CHANNELS = 64, LARGE_SIZE = 64 };

static tn_val emit_norm_relu_conv(tn_draw *d, bool epilogue) {
  normed r = draw_norm_relu(d, LARGE_BATCH, LARGE_CHANNELS, LARGE_SIZE);
  tn_val w = draw_image(d, 8, LARGE_CHANNELS, 1, TN_FILL_ANY);
  return emit_moments(d, tn_conv2d(d->b, r.relu, w, 0, 2, one, 2, none, 2, one, 1, TN_MATH_FULL), epilogue);
}

static tn_val emit_norm_relu_conv2d(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_norm_relu_conv(d, false);
}

static tn_val emit_norm_relu_conv2d_epilogue(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_norm_relu_conv(d, true);
}

static tn_val emit_norm_relu_grad_weight(tn_draw *d, const tn_case *c) {
  (void)c;
  normed r = draw_norm_relu(d, LARGE_BATCH, LARGE_CHANNELS, LARGE_SIZE);
  tn_val dy = draw_image(d, LARGE_BATCH, 8, LARGE_SIZE, TN_FILL_ANY);
  return add_result(d, tn_conv2d_grad_weight(d->b, r.relu, dy, 2, one, 2, none, 2, one, 1, TN_MATH_FULL, 4,
                                             (int64_t[]){8, LARGE_CHANNELS, 1, 1}));
}

static tn_val emit_norm_grad(tn_draw *d, bool epilogue) {
  tn_build *b = d->b;
  normed r = draw_norm_relu(d, 2, 16, 8);
  tn_val dy = draw_image(d, 2, 8, 8, TN_FILL_ANY), w = draw_image(d, 8, 16, 3, TN_FILL_ANY);
  tn_val dx =
      tn_conv2d_grad_input(b, dy, w, 2, one, 2, one, 2, one, 1, TN_MATH_FULL, 4, (int64_t[]){2, 16, 8, 8});
  tn_val h = tn_where(b, tn_gt(b, r.relu, r.zero), dx, r.zero);
  tn_val sums = tn_norm_grad_sums(b, h, r.x, r.mean, r.rstd, 3, channels_apart);
  add_result(d, h);
  if (!epilogue) add_result(d, sums);
  tn_val second = tn_op_result(b, sums, 1);
  return add_result(d, epilogue ? tn_neg(b, tn_mul(b, tn_mul(b, sums, second), r.rstd)) : second);
}

static tn_val emit_conv2d_norm_grad(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_norm_grad(d, false);
}

/* The first sum has no memory. */
static tn_val emit_conv2d_norm_grad_epilogue(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_norm_grad(d, true);
}

/* ---- attention ---- */

enum { TOKENS = 192, HEADS = 2, WIDTH = 32 };

typedef struct heads {
  tn_val q, k, v, y, lse;
} heads;

static tn_val slice_columns(tn_draw *d, tn_val x, int64_t part) {
  const int64_t columns = HEADS * WIDTH;
  tn_op_begin(d->b, "slice");
  tn_op_arg(d->b, x);
  tn_op_set_ints(d->b, "starts", 3, (int64_t[]){0, 0, part * columns});
  tn_op_set_ints(d->b, "stops", 3, (int64_t[]){2, TOKENS, (part + 1) * columns});
  return tn_op_end(d->b);
}

/* Side by side, as three operands or as the columns of one. */
static heads draw_heads(tn_draw *d, bool split) {
  heads h;
  tn_val parts[3], all = 0;
  const int64_t columns = HEADS * WIDTH;
  if (split)
    all = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 3, (int64_t[]){2, TOKENS, 3 * columns}), TN_FILL_ANY);
  for (int64_t i = 0; i < 3; i++)
    parts[i] =
        split ? slice_columns(d, all, i)
              : tn_draw_tensor(d, tn_draw_type_of(d->dtype, 3, (int64_t[]){2, TOKENS, columns}), TN_FILL_ANY);
  h = (heads){.q = parts[0], .k = parts[1], .v = parts[2]};
  h.y = tn_attention(d->b, h.q, h.k, h.v, 1, 0.1, TN_MATH_FULL, HEADS);
  h.lse = tn_op_result(d->b, h.y, 1);
  return h;
}

static tn_val emit_attention_results(tn_draw *d, const heads *h) {
  add_result(d, h->y);
  return add_result(d, h->lse);
}

static tn_val emit_attention(tn_draw *d, const tn_case *c) {
  (void)c;
  heads h = draw_heads(d, false);
  return emit_attention_results(d, &h);
}

static tn_val emit_attention_split(tn_draw *d, const tn_case *c) {
  (void)c;
  heads h = draw_heads(d, true);
  return emit_attention_results(d, &h);
}

static tn_val emit_gradient(tn_draw *d, bool split, bool joined) {
  tn_build *b = d->b;
  heads h = draw_heads(d, split);
  tn_val dy = tn_draw_tensor(d, *tn_val_type(b, h.y), TN_FILL_ANY);
  const tn_val operands[] = {h.q, h.k, h.v, h.y, h.lse, dy};
  tn_op_begin(b, "attention_grad");
  for (int i = 0; i < 6; i++) tn_op_arg(b, operands[i]);
  tn_op_set_int(b, "causal", 1);
  tn_op_set_int(b, "heads", HEADS);
  tn_op_set_float(b, "scale", 0.1);
  tn_val first = tn_op_end(b);
  if (!joined) {
    add_result(d, first);
    add_result(d, tn_op_result(b, first, 1));
    return add_result(d, tn_op_result(b, first, 2));
  }
  tn_op_begin(b, "concat");
  for (int32_t i = 0; i < 3; i++) tn_op_arg(b, i == 0 ? first : tn_op_result(b, first, i));
  tn_op_set_int(b, "axis", 2);
  return add_result(d, tn_op_end(b));
}

static tn_val emit_attention_grad(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_gradient(d, false, false);
}

static tn_val emit_attention_grad_joined(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_gradient(d, false, true);
}

static tn_val emit_attention_grad_split(tn_draw *d, const tn_case *c) {
  (void)c;
  return emit_gradient(d, true, true);
}

/* ---- trials ---- */

/* In f16, and in what cuDNN has besides. */
typedef struct use {
  const char *kernel;
  tn_val (*emit)(tn_draw *d, const tn_case *c);
  bool bf16, f32;
} use;

static const use uses[] = {
    {"cudnn_conv2d", emit_conv2d, true, true},
    {"cudnn_conv2d_relu", emit_conv2d_relu, true, true},
    {"cudnn_conv2d_grad_input", emit_conv2d_grad_input, true, true},
    {"cudnn_conv2d_grad_weight", emit_conv2d_grad_weight, true, true},
    {"cudnn_conv2d_moments", emit_conv2d_moments, true, false},
    {"cudnn_conv2d_moments_epilogue", emit_conv2d_moments_epilogue, true, false},
    {"cudnn_norm_relu_conv2d", emit_norm_relu_conv2d, false, false},
    {"cudnn_norm_relu_conv2d_epilogue", emit_norm_relu_conv2d_epilogue, false, false},
    {"cudnn_norm_relu_grad_weight", emit_norm_relu_grad_weight, false, false},
    {"cudnn_conv2d_norm_grad", emit_conv2d_norm_grad, false, false},
    {"cudnn_conv2d_norm_grad_epilogue", emit_conv2d_norm_grad_epilogue, false, false},
    {"cudnn_attention", emit_attention, true, false},
    {"cudnn_attention_split", emit_attention_split, true, false},
    {"cudnn_attention_grad", emit_attention_grad, true, false},
    {"cudnn_attention_grad_joined", emit_attention_grad_joined, true, false},
    {"cudnn_attention_grad_split", emit_attention_grad_split, true, false},
};
enum { USES = sizeof uses / sizeof *uses };

typedef struct launches {
  const char *wanted;
  int n;
  char all[512];
} launches;

static void note_launch(void *context, const char *kernel, const char *plugin) {
  launches *l = context;
  size_t n = strlen(l->all);
  (void)plugin;
  l->n += strcmp(kernel, l->wanted) == 0;
  snprintf(l->all + n, sizeof l->all - n, " %s", kernel);
}

static int n_wrong;

static void try_use(const use *u, int32_t dtype) {
  const tn_case c = {.op = u->kernel, .emit = u->emit, .forward_only = true};
  const tn_trial trial = {&c, dtype, 2, false};
  const tn_trial_site site = {.env = &f.env, .registry = f.registry, .ops = f.ops, .device = device};
  launches l = {.wanted = u->kernel};
  const tn_trial_watch watch = {note_launch, &l};
  tn_verdict verdict;
  assert_int_equal(tn_trial_run(&site, &trial, &watch, &verdict), TN_OK);
  bool right = verdict.what == TN_VERDICT_PASSED && l.n == 1;
  if (!right)
    print_error("%s/%s: %d launches among%s; %s\n", u->kernel, tn_dtype_name(dtype), l.n, l.all,
                verdict.text);
  n_wrong += !right;
}

static void every_pattern_gives_what_the_reference_gives(void **state) {
  (void)state;
  for (int i = 0; i < USES; i++) {
    try_use(&uses[i], TN_F16);
    if (uses[i].bf16) try_use(&uses[i], TN_BF16);
    if (uses[i].f32) try_use(&uses[i], TN_F32);
  }
  assert_int_equal(n_wrong, 0);
}

/* ---- coverage ---- */

static bool is_used(const char *kernel) {
  for (int i = 0; i < USES; i++)
    if (strcmp(uses[i].kernel, kernel) == 0) return true;
  for (int i = 0; cudnn_folded_kernels[i] != NULL; i++)
    if (strcmp(cudnn_folded_kernels[i], kernel) == 0) return true;
  return false;
}

static void every_kernel_of_cudnn_has_a_use(void **state) {
  const tn_entry *kernels = NULL;
  int32_t n = 0, of_cudnn = 0;
  (void)state;
  assert_int_equal(tn_registry_list(f.registry, &f.env, TN_KERNEL, &kernels, &n), TN_OK);
  for (int32_t i = 0; i < n; i++) {
    const char *name = kernels[i].item->name;
    if (strncmp(name, "cudnn_", strlen("cudnn_")) != 0) continue;
    of_cudnn++;
    if (!is_used(name)) fail_msg("no test reaches %s", name);
  }
  assert_true(of_cudnn > 15);
}

/* ---- the device ---- */

static int start(void **state) {
  (void)state;
  double_device_open(&f, &device);
  device->target.guard_bytes = TN_TRIAL_GUARD;
  return 0;
}

static int end(void **state) {
  (void)state;
  tn_device_destroy(device);
  fixture_close(&f);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pattern_gives_what_the_reference_gives),
                                     cmocka_unit_test(every_kernel_of_cudnn_has_a_use)};
  return cmocka_run_group_tests_name("cuda patterns", tests, start, end);
}
