/* core/conformance/items/layer_cases.c: layers, losses and metrics: on the device against the reference,
 * their gradients against finite differences, in training and in evaluation. */
#include <math.h>

#include "core/conformance/items/items.h"
#include "core/conformance/suite.h"
#include "tenon/plugin/layer.h"

enum { TRIES = 64, INPUTS = 4 };

/* ---- inputs ---- */

typedef struct layer_input {
  tn_type type;
  tn_range domain;
} layer_input;

/* (N, C), (N, T, C), (N, C, H, W), (N), and numbers of tokens (N, T); or (N, C, D, H, W), a volume. */
static layer_input draw_layer_input(tn_draw *d, bool volume) {
  int64_t many = d->large ? 19 : 4;
  const int64_t n = tn_draw_between(d, 1, 3), c = tn_draw_size(d, 1, 6), t = tn_draw_between(d, 1, 5);
  const int64_t picture[] = {n, c, tn_draw_between(d, 1, 4 + many), tn_draw_between(d, 1, 4 + many)};
  const int64_t sequence[] = {n, t, c}, tokens[] = {n, t};
  const int64_t solid[] = {n, c, 2 + t, 2 + t, 3};
  if (volume) return (layer_input){tn_draw_type_of(TN_F32, 5, solid), tn_domain_any()};
  switch (tn_draw_between(d, 0, 4)) {
  case 0: return (layer_input){tn_draw_type_of(TN_F32, 1, &c), tn_domain_any()};
  case 1: return (layer_input){tn_draw_type_of(TN_F32, 3, sequence), tn_domain_any()};
  case 2: return (layer_input){tn_draw_type_of(TN_F32, 4, picture), tn_domain_any()};
  case 3: return (layer_input){tn_draw_type_of(TN_I64, 2, tokens), {0, 1, false, false}};
  default: return (layer_input){tn_draw_type_of(TN_F32, 2, picture), tn_domain_any()};
  }
}

/* Class numbers of the last dimension or of dimension 1, or numbers of the same shape. */
static layer_input draw_target(tn_draw *d, const tn_type *x) {
  int32_t kind = (int32_t)tn_draw_between(d, 0, 2), axis = kind == 0 ? x->rank - 1 : 1;
  if (kind == 2 || x->rank < 2) return (layer_input){*x, tn_domain_any()};
  tn_type type = {tn_draw_flag(d) ? TN_I64 : TN_I32, x->rank - 1, {0}};
  for (int32_t i = 0, k = 0; i < x->rank; i++)
    if (i != axis) type.dims[k++] = x->dims[i];
  return (layer_input){type, {0, (double)x->dims[axis], false, true}};
}

static void draw_layer_inputs(tn_draw *d, const tn_layer_kind *kind, bool volume, layer_input *in,
                              int32_t *n) {
  int32_t most = kind->max_in < 0 || kind->max_in > INPUTS ? INPUTS : kind->max_in;
  *n = (int32_t)tn_draw_between(d, kind->min_in < most ? kind->min_in : most, most);
  for (int32_t i = 0; i < *n; i++)
    in[i] = i == 0 ? draw_layer_input(d, volume)
            : kind->role != TN_LAYER_PLAIN && i == *n - 1
                ? draw_target(d, &in[0].type)
                : (layer_input){tn_draw_between(d, 0, 3) == 0 ? tn_draw_narrower(d, &in[0].type) : in[0].type,
                                in[0].domain};
}

/* ---- one use ---- */

static tn_status layer_check_measure(const tn_draw *d, const tn_val *yielded) {
  const tn_type *value = tn_graph_type(d->graph, yielded[0]);
  if (yielded[1] == 0 || tn_type_same_dims(value, tn_graph_type(d->graph, yielded[1]))) return TN_OK;
  return tn_failf(d->graph->env, TN_EABI,
                  "value and weight have different shapes, expected one of each for every element");
}

static tn_status layer_use(tn_draw *d, const tn_item_case *ic, bool volume, tn_val *first) {
  const tn_layer_kind *kind = (const tn_layer_kind *)(const void *)ic->item;
  tn_item_use use = {.d = d, .registry = ic->registry, .item = ic->item, .scope = ""};
  layer_input inputs[INPUTS];
  tn_val in[INPUTS], yielded[TN_ITEM_YIELDS];
  const void *options;
  int32_t n;
  draw_layer_inputs(d, kind, volume, inputs, &n);
  for (int32_t i = 0; i < n; i++) in[i] = tn_draw_domain(d, inputs[i].type, inputs[i].domain);
  TN_TRY(tn_item_options(d, ic->item, ic->c.op, &options));
  TN_TRY(tn_item_build_layer(&use, ic->item, options, d->draw / 2 % 2 == 1, in, n, yielded));
  if (kind->role != TN_LAYER_PLAIN) TN_TRY(layer_check_measure(d, yielded));
  for (int32_t i = 0; i < TN_ITEM_YIELDS && yielded[i] != 0 && d->n_results < TN_CASE_RESULTS; i++)
    d->results[d->n_results++] = yielded[i];
  for (int32_t i = 0; i < use.n_states && d->n_inner < TN_CASE_INNER; i++)
    if (use.states[i].committed != 0) d->inner[d->n_inner++] = use.states[i].committed;
  *first = yielded[0];
  return TN_OK;
}

/* Whether the layer takes what the draw has next; the draw does not move on. */
static tn_status layer_takes(const tn_draw *d, const tn_item_case *ic, bool volume, bool *taken) {
  tn_draw probe = *d;
  tn_builder *builder = NULL;
  tn_val first;
  TN_TRY(tn_graph_create(d->graph->env, d->graph->ops, &probe.graph));
  tn_status status = tn_builder_create(probe.graph, &builder);
  if (status == TN_OK) {
    probe.b = tn_builder_handle(builder);
    status = layer_use(&probe, ic, volume, &first);
    *taken = status == TN_OK;
    if (!*taken && probe.b->env.record->code != TN_OK) tn_error_move(d->graph->env, probe.b);
    tn_builder_destroy(builder);
  }
  tn_graph_destroy(probe.graph);
  return status == TN_ENOMEM ? status : TN_OK;
}

tn_val tn_layer_emit(tn_draw *d, const tn_case *c) {
  const tn_item_case *ic = (const tn_item_case *)c;
  tn_val first = 0;
  bool taken = false, volume = false;
  tn_status status = TN_OK;
  /* Rounding errors of a chain of ops grow with the largest value inside, which no result shows. */
  if (!d->exact) d->style = TN_STYLE_ORDINARY;
  for (int32_t i = 0; i < TRIES && status == TN_OK && !taken; i++) {
    if (i > 0) d->rng = tn_rng_at((uint64_t)d->draw, 100 + (uint64_t)i);
    /* Volumes are tried last, so layers that take other inputs have the same draws as without them. */
    volume = i >= TRIES / 2;
    status = layer_takes(d, ic, volume, &taken);
  }
  if (status == TN_OK && !taken)
    status = tn_failf(d->graph->env, TN_EUNSUPPORTED,
                      "%s takes none of the inputs that are tried: (N), (N, C), (N, T, C), (N, C, H, W), "
                      "(N, C, D, H, W), tokens; of the last it says: %s",
                      ic->item->name, tn_error_text(d->graph->env));
  if (status == TN_OK) {
    tn_error_clear(d->graph->env);
    status = layer_use(d, ic, volume, &first);
  }
  if (status != TN_OK) tn_builder_fail(d->b, status);
  return status == TN_OK ? first : 0;
}

/* ---- the weight of a loss ---- */

static tn_status compare_weights(tn_check *check, tn_item_run *run, int64_t draw) {
  int64_t n = 0;
  const tn_suite *suite = check->suite;
  double *before = tn_item_run_copy(run, 1, &n),
         *x = tn_reference_input(run->reference, run->d.inputs[0].name);
  if (before == NULL || x == NULL) {
    tn_release(suite->env, before);
    return TN_OK;
  }
  for (int64_t i = 0; i < tn_type_count(&run->d.inputs[0].type); i++) x[i] = 0.75 * x[i] + 1.5;
  tn_status status = tn_reference_run(run->reference);
  const double *now = tn_reference_output(run->reference, "y.1", NULL);
  for (int64_t i = 0; i < n && status == TN_OK; i++)
    if (now[i] != before[i])
      tn_check_fail(
          check,
          "draw %lld: other predictions change weight[%lld] from %.9g to %.9g; expected a weight that "
          "depends on the targets only",
          (long long)draw, (long long)i, before[i], now[i]);
  tn_release(suite->env, before);
  return status;
}

static tn_status check_weight(tn_check *check) {
  tn_item_case c = {.c = {.op = check->item, .emit = tn_layer_emit},
                    .item = check->entry->item,
                    .registry = check->suite->site.registry};
  for (int64_t draw = 0; draw < 4 && check->wrong[0] == '\0'; draw++) {
    tn_item_run run;
    tn_status status = tn_item_run_open(&check->suite->site, &c, draw, &run);
    if (status == TN_OK) status = compare_weights(check, &run, draw);
    tn_item_run_close(&run);
    TN_TRY(status);
  }
  return TN_OK;
}

tn_status tn_layer_cases(tn_suite *suite, const tn_entry *entry, const char *item) {
  const tn_layer_kind *kind = (const tn_layer_kind *)(const void *)entry->item;
  tn_item_case c = {.c = {.op = item,
                          .emit = tn_layer_emit,
                          .forward_only = kind->role == TN_LAYER_METRIC,
                          .draws = TN_ITEM_DRAWS},
                    .item = entry->item,
                    .registry = suite->site.registry};
  TN_TRY(tn_suite_run_dtype(suite, &c.c, TN_F32));
  if (kind->role != TN_LAYER_METRIC) TN_TRY(tn_suite_run_differences(suite, &c.c));
  return kind->role == TN_LAYER_PLAIN ? TN_OK : tn_check_run(suite, entry, item, "weight", check_weight);
}
