/* tests/bench/curves_page.c: writes the page for a result of curves.sh. */
#include "curves.h"

size_t curves_losses(const json_t *run, const char *key, double losses[CURVES_MOST_STEPS]) {
  const json_t *list = json_object_get(run, key);
  size_t n = json_array_size(list);
  if (n > CURVES_MOST_STEPS) n = CURVES_MOST_STEPS;
  for (size_t i = 0; i < n; i++) losses[i] = json_number_value(json_array_get(list, i));
  return n;
}

/* The row of a curve, with its differences from the first run's curve `peer`. */
static void write_row(FILE *to, const char *name, const double *losses, size_t n, const double *peer,
                      size_t n_peer) {
  size_t common = n < n_peer ? n : n_peer;
  if (common == 0) return;
  curve_gap gap = curve_apart(losses, peer, common);
  fprintf(to, "| %s | %zu | ", name, n);
  if (losses == peer)
    fputs("\xe2\x80\x93 | \xe2\x80\x93", to);
  else
    fprintf(to, "%.2g | %.2g", gap.largest, gap.mean);
  fprintf(to, " | %.4f |\n", curve_smooth(losses, n - 1));
}

static void write_table(FILE *to, const json_t *runs) {
  double peer[CURVES_MOST_STEPS], losses[CURVES_MOST_STEPS];
  const json_t *first = json_array_get(runs, 0), *run;
  size_t n_peer = curves_losses(first, "losses", peer), i;
  char name[128];
  fprintf(
      to,
      "| run | steps | largest difference | mean difference | loss at the end |\n|---|---|---|---|---|\n");
  write_row(to, text(first, "run"), peer, n_peer, peer, n_peer);
  snprintf(name, sizeof name, "%s, twin", text(first, "run"));
  write_row(to, name, losses, curves_losses(first, "twin", losses), peer, n_peer);
  json_array_foreach(runs, i, run) {
    if (run != first)
      write_row(to, text(run, "run"), losses, curves_losses(run, "losses", losses), peer, n_peer);
  }
}

/* The origin of a run: the version of the peer, or the version of Tenon and its command. */
static void write_origin(FILE *to, const json_t *run) {
  if (json_object_get(run, "peer")) {
    fprintf(to, "- %s: %s, by tests/golden/make_curves.py\n", text(run, "run"), text(run, "peer"));
    return;
  }
  fprintf(to, "- %s: Tenon %s (%s), %s, %s, threads = %.0f: `%s`\n", text(run, "run"), text(run, "tenon"),
          text(run, "commit"), text(run, "date"), text(run, "cpu"), number(run, "threads"),
          text(run, "command"));
}

static void write_model(FILE *to, const json_t *model, const char *name) {
  const json_t *runs = json_object_get(model, "runs"), *run;
  const char *of = text(model, "model");
  size_t i;
  fprintf(to, "## %s\n\n[tests/golden/curves/%s.ini](../../tests/golden/curves/%s.ini)\n\n", of, of, of);
  fprintf(to, "![Losses of %s](%s_%s.svg)\n\n", of, name, of);
  write_table(to, runs);
  fputs("\n", to);
  json_array_foreach(runs, i, run) { write_origin(to, run); }
  fputs("\n", to);
}

void curves_page(FILE *to, const json_t *result, const char *name) {
  const json_t *model;
  size_t i;
  fprintf(to,
          "# Loss curves\n\nMade by `tests/bench/curves.sh` and `bench_curves`; do not edit.\n\n"
          "Losses of training on a CPU, step by step, of PyTorch, of the reference backend `cpu`, and of "
          "`onednn` in fp32 and in bf16. All runs start from the same initial weights and read the same "
          "samples in the same order. Rounding differences grow during training: where the gradient of a "
          "step depends strongly on the weights, two runs that add in different orders soon differ as "
          "much as runs with different seeds, and only the trend of the loss can be compared. The curves "
          "and the losses at the end are therefore means over the last %d steps. The twin of PyTorch is a "
          "second run of PyTorch from initial weights that are one unit in the last place larger; its "
          "difference from PyTorch shows the effect of rounding alone. Differences are absolute "
          "differences of the smoothed loss from PyTorch's, over all steps of a run. A picture ends with "
          "the shortest run.\n\n",
          CURVE_WINDOW);
  json_array_foreach(json_object_get(result, "models"), i, model) { write_model(to, model, name); }
}
