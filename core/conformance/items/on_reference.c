/* core/conformance/items/on_reference.c: a drawn use of an item on the reference. */
#include <stdio.h>
#include <string.h>

#include "core/conformance/items/items.h"

static tn_status item_run_outputs(tn_item_run *run, tn_val first) {
  tn_val results[TN_REFERENCE_RESULTS];
  int32_t n = tn_draw_results(&run->d, first, results);
  for (int32_t i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "y.%d", i);
    TN_TRY(tn_graph_output(run->d.graph, name, results[i]));
  }
  return TN_OK;
}

static void item_run_fill(tn_item_run *run, int64_t draw) {
  tn_rng rng = tn_rng_at((uint64_t)draw, TN_DRAW_VALUES);
  for (int32_t i = 0; i < run->d.n_inputs; i++) {
    double *v = tn_reference_input(run->reference, run->d.inputs[i].name);
    if (v != NULL) tn_draw_values(&rng, &run->d.inputs[i], v);
  }
}

tn_status tn_item_run_draw(const tn_trial_site *site, const tn_item_case *c, int64_t draw, tn_item_run *run) {
  *run = (tn_item_run){.d = {.rng = tn_rng_at((uint64_t)draw, TN_DRAW_SHAPES),
                             .dtype = TN_F32,
                             .settings = site->settings,
                             .draw = draw}};
  TN_TRY(tn_graph_create(site->env, site->ops, &run->d.graph));
  TN_TRY(tn_builder_create(run->d.graph, &run->builder));
  run->d.b = tn_builder_handle(run->builder);
  tn_val first = c->c.emit(&run->d, &c->c);
  tn_status status = tn_build_status(run->d.b);
  if (status != TN_OK) {
    tn_error_move(site->env, run->d.b);
    return status;
  }
  return item_run_outputs(run, first);
}

tn_status tn_item_run_open(const tn_trial_site *site, const tn_item_case *c, int64_t draw, tn_item_run *run) {
  TN_TRY(tn_item_run_draw(site, c, draw, run));
  TN_TRY(tn_reference_create(run->d.graph, &run->reference));
  item_run_fill(run, draw);
  return tn_reference_run(run->reference);
}

void tn_item_run_close(tn_item_run *run) {
  tn_reference_destroy(run->reference);
  if (run->builder != NULL) tn_builder_destroy(run->builder);
  if (run->d.graph != NULL) tn_graph_destroy(run->d.graph);
}

double *tn_item_run_copy(const tn_item_run *run, int32_t i, int64_t *n) {
  char name[16];
  tn_type type;
  snprintf(name, sizeof name, "y.%d", i);
  const double *values = tn_reference_output(run->reference, name, &type);
  if (values == NULL) return NULL;
  *n = tn_type_count(&type);
  double *copy = tn_alloc(run->d.graph->env, (size_t)(*n + 1) * sizeof *copy);
  if (copy != NULL) memcpy(copy, values, (size_t)*n * sizeof *copy);
  return copy;
}
