/* tests/integration/peers/peers.c: trains, reads losses and compares them. */
#include "peers.h"

#include <math.h>

#include "curve.h"

void peers_need(const char *file) {
  char path[512];
  snprintf(path, sizeof path, DATA "/%s", file);
  if (file_exists(path)) return;
  print_message("skipped: there is no %s\n", path);
  skip();
}

const json_t *peers_golden(const char *path) {
  char whole[512];
  snprintf(whole, sizeof whole, ROOT "/tests/golden/%s", path);
  return file_json(whole);
}

/* Reads the losses of metrics.jsonl, which has one event per line. */
static int read_losses(const char *run, double losses[PEERS_MOST_STEPS]) {
  char path[512];
  int n = 0;
  snprintf(path, sizeof path, "%s/metrics.jsonl", run);
  for (char *rest = file_read(path, NULL), *line; (line = strsep(&rest, "\n")) && *line;) {
    json_t *event = json_loads(line, 0, NULL);
    assert_non_null(event);
    if (strcmp(program_text(event, "event"), "step") == 0) {
      assert_true(n < PEERS_MOST_STEPS);
      losses[n++] = program_number(event, "train.loss");
    }
    json_decref(event);
  }
  return n;
}

int peers_train(const char *ini, double losses[PEERS_MOST_STEPS], char weights[512]) {
  const json_t *result = program_json(0, "train %s --output runs", ini);
  const char *run = program_text(result, "run");
  if (weights) snprintf(weights, 512, "%s/checkpoints/last/model.safetensors", run);
  return read_losses(run, losses);
}

void peers_compare(const double *ours, const json_t *golden, int first, int last, double relative,
                   double least) {
  double worst = 0.0;
  for (int i = first; i < last; i++) {
    double theirs = json_number_value(json_array_get(golden, (size_t)i)), off = fabs(ours[i] - theirs);
    if (!(off <= fmax(relative * fabs(theirs), least)))
      fail_msg("step %d: loss %.9g, the peer's %.9g: off by %.2g, allowed %g of it or %g", i + 1, ours[i],
               theirs, off, relative, least);
    if (relative * fabs(theirs) >= least) worst = fmax(worst, off / fabs(theirs));
  }
  print_message("steps %d to %d: largest relative difference %.2g\n", first + 1, last, worst);
}

void peers_compare_smoothed(const double *ours, const json_t *golden, size_t n, double band) {
  double theirs[PEERS_MOST_STEPS];
  assert_true(n <= json_array_size(golden) && n <= PEERS_MOST_STEPS);
  for (size_t i = 0; i < n; i++) theirs[i] = json_number_value(json_array_get(golden, i));
  curve_gap gap = curve_apart(ours, theirs, n);
  if (!(gap.largest <= band))
    fail_msg("means of %d losses are %.3g apart, allowed %g", CURVE_WINDOW, gap.largest, band);
  print_message("%zu steps: smoothed losses at most %.2g apart\n", n, gap.largest);
}
