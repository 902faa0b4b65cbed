/* train_and_infer.c: trains the model of an INI file, then runs inference on buffers of this program.
 *
 *     cc train_and_infer.c $(pkg-config --cflags --libs tenon) -o train_and_infer
 *     ./train_and_infer digits.ini */
#include <stdio.h>
#include <tenon/session.h>

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

int main(int argc, char **argv) {
  static float image[28 * 28], scores[10];
  tn_context *context;
  tn_run *run;
  tn_session *session;
  char *result;
  if (argc != 2) return 2;
  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open(context, argv[1], NULL, &run) != TN_OK) return fail(context);
  if (tn_run_train(run, &result) != TN_OK) return fail(run);
  printf("%s\n", result);
  tn_string_free(run, result);

  if (tn_session_open(run, NULL, &session) != TN_OK) return fail(run);
  tn_session_bind(session, "image", image, sizeof image);
  tn_session_bind(session, "output", scores, sizeof scores);
  for (int row = 4; row < 24; row++) image[row * 28 + 14] = 3.0f; /* a stroke: is it a one? */
  if (tn_session_infer(session, 1) != TN_OK) return fail(session);
  for (int digit = 0; digit < 10; digit++) printf("%d: %g\n", digit, scores[digit]);

  tn_session_close(session);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}
