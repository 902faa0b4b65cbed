/* outputs.c: a model with several inputs and outputs, of several element types, on buffers of the program.
 *
 *     cc outputs.c $(pkg-config --cflags --libs tenon) -lm -o outputs
 *     ./outputs outputs.ini
 *
 * outputs.ini has a score for each of four classes, of which only those that are allowed count:
 *
 *     [model]
 *     inputs = x: f32[4], allowed: bool[4]
 *     layers =
 *         scores = x if allowed else -1e9
 *         probs  = softmax(scores)
 *         best   = argmax(scores, axis=1)
 *     outputs = scores, probs, best */
#include <stdint.h>
#include <stdio.h>
#include <tenon/session.h>

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

int main(int argc, char **argv) {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  float x[4] = {1, 2, 4, 3}, probs[4];
  uint8_t allowed[4] = {1, 1, 0, 1}; /* an element of bool is a byte, 0 or 1 */
  int32_t best;
  if (argc != 2) return 2;
  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open(context, argv[1], NULL, &run) != TN_OK) return fail(context);
  if (tn_session_open(run, NULL, &session) != TN_OK) return fail(run);
  tn_session_bind(session, "x", x, sizeof x);
  tn_session_bind(session, "allowed", allowed, sizeof allowed);
  tn_session_bind(session, "probs", probs, sizeof probs);
  tn_session_bind(session, "best", &best, sizeof best);
  if (tn_session_infer(session, 1) != TN_OK) return fail(session);
  printf("class %d with probability %.2f\n", (int)best, (double)probs[best]);
  tn_session_close(session);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}
