/* graph.c: defines a model in C, trains it on data of this program, saves it, loads it and runs it.
 *
 *     cc graph.c $(pkg-config --cflags --libs tenon) -lm -o graph && ./graph */
#include <math.h>
#include <stdio.h>
#include <tenon/model.h>
#include <tenon/ops.h>
#include <tenon/random.h>
#include <tenon/session.h>

enum { BATCH = 64, STEPS = 1000 };

/* Fits a curve to points: two layers and a skip connection. Training and inference use the same function. */
static tn_status curve(tn_build *b, void *user) {
  const tn_type number = {TN_F32, 1, {1}};
  (void)user;
  tn_val x = tn_model_input(b, "x", &number);
  tn_val h = tn_build_layer(b, "hidden", "linear(32)", &x, 1);
  h = tn_tanh(b, h);
  tn_val y = tn_add(b, tn_build_layer(b, "out", "linear(1)", &h, 1), x);
  tn_model_output(b, "output", y);
  if (tn_model_measured(b)) {
    tn_val wanted = tn_model_target(b, "y", &number);
    tn_model_loss(b, "mse", (tn_val[]){y, wanted}, 2);
  }
  return tn_build_status(b);
}

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

int main(void) {
  static float x[BATCH], y[BATCH], guess[BATCH];
  const char *const set[] = {"run.seed=7", "run.output=", "optimizer.type=adamw", "optimizer.lr=0.02",
                             "schedule.type=cosine"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 5};
  const tn_session_options learning = {
      .struct_size = sizeof learning, .train = 1, .infer = 1, .batch = BATCH, .steps = STEPS};
  tn_rng random = tn_rng_at(7, 0);
  tn_context *context;
  tn_run *run;
  tn_session *session;
  double loss;

  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open_model(context, curve, NULL, NULL, &options, &run) != TN_OK) return fail(context);
  if (tn_session_open(run, &learning, &session) != TN_OK) return fail(run);
  tn_session_bind(session, "x", x, sizeof x);
  tn_session_bind(session, "y", y, sizeof y);
  tn_session_bind(session, "output", guess, sizeof guess);

  for (int step = 1; step <= STEPS; step++) {
    for (int i = 0; i < BATCH; i++) {
      x[i] = (float)tn_rng_between(&random, -3.0, 3.0);
      y[i] = sinf(x[i]);
    }
    if (tn_session_train(session, 0) != TN_OK) return fail(session);
    tn_session_metric(session, "loss", &loss);
    if (step % 250 == 0) printf("step %d: loss %.4f\n", step, loss);
  }
  if (tn_session_save(session, "curve.safetensors") != TN_OK) return fail(session);
  if (tn_session_load(session, "curve.safetensors") != TN_OK) return fail(session);

  x[0] = 1.0f;
  if (tn_session_infer(session, 1) != TN_OK) return fail(session);
  printf("sin(1) is %.2f, the curve says %.2f\n", sin(1.0), guess[0]);

  tn_session_close(session);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}
