/* tests/integration/from_c/attention_test.c: options of the layer attention against the same attention
 * written with other layers and ops. */
#include "tenon/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tenon/model.h"
#include "tenon/ops.h"

enum { BATCH = 2, TOKENS = 5, SEEN = 3, WIDTH = 8, NARROW = 4, HEAD = 2 };

#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)

static const tn_type q_type = {TN_F32, 2, {TOKENS, WIDTH}}, k_type = {TN_F32, 2, {TOKENS, NARROW}},
                     mask_type = {TN_BOOL, 1, {TOKENS}}, one = {TN_F32, 0, {0}};

/* Heads 0 and 1 of q use head 0 of k and v, heads 2 and 3 use head 1. */
static tn_val heads_by_hand(tn_build *b, tn_val x) {
  tn_val first = tn_slice_axis(b, x, 2, 0, HEAD), second = tn_slice_axis(b, x, 2, HEAD, 2 * HEAD);
  return tn_concat(b, 4, (tn_val[]){first, first, second, second}, 2);
}

/* The parameter and the loss are there for the session, which trains. */
static tn_status attentions(tn_build *b, void *user) {
  tn_val q = tn_mul(b, tn_model_input(b, "q", &q_type), tn_build_param(b, "scale", &one, "ones"));
  tn_val k = tn_model_input(b, "k", &k_type), v = tn_model_input(b, "v", &k_type);
  tn_val mask = tn_model_input(b, "mask", &mask_type), wide_k = heads_by_hand(b, k),
         wide_v = heads_by_hand(b, v);
  (void)user;
  tn_val y = tn_build_layer(b, "", "attention(4, kv_heads=2, causal=yes)", (tn_val[]){q, k, v}, 3);
  tn_model_output(b, "output", y);
  if (tn_model_measured(b)) tn_model_loss_value(b, "square", tn_mul(b, y, y), 0, 1.0);
  tn_model_output(b, "grouped_by_hand",
                  tn_build_layer(b, "", "attention(4, causal=yes)", (tn_val[]){q, wide_k, wide_v}, 3));
  tn_model_output(b, "masked",
                  tn_build_layer(b, "", "attention(4, kv_heads=2)", (tn_val[]){q, k, v, mask}, 4));
  tn_val seen[] = {q, tn_slice_axis(b, wide_k, 1, 0, SEEN), tn_slice_axis(b, wide_v, 1, 0, SEEN)};
  tn_model_output(b, "masked_by_hand", tn_build_layer(b, "", "attention(4)", seen, 3));
  tn_model_output(b, "alone",
                  tn_build_layer(b, "", "attention(4, window=1)", (tn_val[]){q, wide_k, wide_v}, 3));
  tn_model_output(b, "values", wide_v);
  return tn_build_status(b);
}

static float qs[BATCH][TOKENS][WIDTH], ks[BATCH][TOKENS][NARROW], vs[BATCH][TOKENS][NARROW];
static uint8_t masks[BATCH][TOKENS];
static float results[6][BATCH * TOKENS * WIDTH];

static void make_operands(void) {
  for (int i = 0; i < BATCH * TOKENS * WIDTH; i++) (&qs[0][0][0])[i] = sinf((float)i);
  for (int i = 0; i < BATCH * TOKENS * NARROW; i++) {
    (&ks[0][0][0])[i] = cosf((float)(3 * i));
    (&vs[0][0][0])[i] = sinf((float)(7 * i + 1));
  }
  for (int i = 0; i < BATCH * TOKENS; i++) (&masks[0][0])[i] = i % TOKENS < SEEN;
}

static void expect_equal(const float *x, const float *y) {
  for (int i = 0; i < BATCH * TOKENS * WIDTH; i++)
    if (!(fabsf(x[i] - y[i]) <= 1e-5f))
      fail_msg("element %d is %g, expected %g", i, (double)x[i], (double)y[i]);
}

static void options_give_the_attention_that_they_describe(void **state) {
  static const char *const name[] = {"output",         "grouped_by_hand", "masked",
                                     "masked_by_hand", "alone",           "values"};
  tn_context *context;
  tn_run *run;
  tn_session *s;
  const tn_session_options o = {.struct_size = sizeof o, .train = 1, .infer = 1, .batch = BATCH};
  (void)state;
  make_operands();
  OK(NULL, tn_context_open(NULL, &context));
  OK(context, tn_run_open_model(context, attentions, NULL, "[run]\nseed = 3\noutput =\n", NULL, &run));
  OK(run, tn_session_open(run, &o, &s));
  OK(s, tn_session_bind(s, "q", qs, sizeof qs));
  OK(s, tn_session_bind(s, "k", ks, sizeof ks));
  OK(s, tn_session_bind(s, "v", vs, sizeof vs));
  OK(s, tn_session_bind(s, "mask", masks, sizeof masks));
  for (int i = 0; i < 6; i++) OK(s, tn_session_bind(s, name[i], results[i], sizeof results[i]));
  OK(s, tn_session_infer(s, 0));
  for (int i = 0; i < 6; i += 2) expect_equal(results[i], results[i + 1]);
  tn_session_close(s);
  tn_run_close(run);
  tn_context_close(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(options_give_the_attention_that_they_describe)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
