/* core/model/total_loss.c: the total loss, and the reduction of losses and metrics over ranks and micro-
 * batches.
 *
 * The total that is differentiated is the part of this rank and micro-batch in the global loss: local sums
 * divided by global weights. Weights depend only on targets and sample weights, so they are summed over
 * ranks before the first backward pass: in the program itself, or, with several micro-batches, in a
 * weighing program that runs on all of them first. The reported sums are reduced over ranks in one small
 * vector. */
#include "core/model/assemble.h"

#include <string.h>

#include "tenon/ops.h"

/* Concatenates n scalars to a vector. */
static tn_val total_concat(tn_build *b, const tn_val *scalars, int32_t n) {
  tn_op_begin(b, "concat");
  for (int32_t i = 0; i < n; i++) tn_op_arg(b, tn_reshape(b, scalars[i], 1, (int64_t[]){1}));
  tn_op_set_int(b, "axis", 0);
  return tn_op_end(b);
}

static tn_val total_element(tn_build *b, tn_val vector, int32_t i) {
  return tn_reshape(b, tn_slice_axis(b, vector, 0, i, i + 1), 0, NULL);
}

static tn_val total_all_reduce(tn_build *b, tn_val v) {
  return tn_build_ranks(b) > 1 ? tn_all_reduce(b, v, TN_REDUCTION_SUM) : v;
}

static int32_t total_count_losses(const tn_model *model) {
  int32_t n = 0;
  while (n < model->n_measures && model->measures[n].is_loss) n++;
  return n;
}

/* sum / weight. A zero weight is replaced by one, since its sum is zero, too. */
static tn_val total_mean(tn_build *b, tn_val sum, tn_val weight) {
  tn_val zero = tn_scalar(b, TN_F32, 0.0), one = tn_scalar(b, TN_F32, 1.0);
  return tn_div(b, sum, tn_where(b, tn_eq(b, weight, zero), one, weight));
}

/* The global weights of the losses as one vector; 0: the local weights are the global ones. */
static tn_val total_global_weights(tn_build *b, tn_model *model, const tn_measure_sums *sums, int32_t n) {
  tn_graph *graph = tn_builder_graph(b);
  tn_type type = {TN_F32, 1, {n}};
  if (graph->ranks == 1 && graph->micro_batches == 1) return 0;
  tn_val local = total_concat(b, sums->weight, n);
  if (graph->micro_batches == 1) return total_all_reduce(b, local);
  model->loss_weights = local;
  tn_val all = tn_graph_state(graph, TN_LOSS_WEIGHTS_STATE, &type, TN_STATE_SCRATCH, "", "");
  if (all == 0) tn_builder_fail(b, graph->env->record->code);
  return all;
}

/* Whether a measure belongs to the phase of the program. */
static bool total_takes(const tn_model_request *request, const tn_measure *measure) {
  return request->phase == NULL || measure->phase == NULL || strcmp(measure->phase, request->phase) == 0;
}

/* exp(-s) mean + s, with the log variance s as a parameter that begins at 0 (Kendall, Gal, Cipolla,
 * "Multi-task learning using uncertainty to weigh losses", CVPR 2018). The parts of ranks add up to
 * s, which the last micro-batch of an update has: how many there are is not known here. */
static tn_val total_weigh_by_variance(tn_build *b, const tn_model_request *request, tn_model *model,
                                      const tn_measure *measure, tn_val mean) {
  tn_graph *graph = tn_builder_graph(b);
  const tn_type scalar = {.dtype = TN_F32};
  const char *path = tn_arena_printf(&model->arena, "%s" TN_LOG_VARIANCE, measure->name);
  tn_val s = path != NULL ? tn_graph_state(graph, path, &scalar, TN_STATE_PARAM, "zeros", "") : 0;
  if (s == 0) tn_builder_fail(b, path != NULL ? graph->env->record->code : TN_ENOMEM);
  double part = request->accumulates ? 0 : 1.0 / graph->ranks; /* both programs have the same nodes */
  return tn_add(b, tn_mul(b, tn_exp(b, tn_neg(b, s)), mean), tn_affine(b, s, part, 0));
}

/* A mean times the weight of its loss, which may move, or be learned: then validation has the mean itself. */
static tn_val total_weigh(tn_build *b, const tn_model_request *request, tn_model *model,
                          const tn_measure *measure, tn_val mean) {
  if (measure->learned && request->training) return total_weigh_by_variance(b, request, model, measure, mean);
  tn_val weight = tn_moved_value(b, request, NULL, measure->name, measure->weight);
  if (weight != 0) return tn_mul(b, mean, weight);
  return measure->weight != 1.0 ? tn_affine(b, mean, measure->weight, 0.0) : mean;
}

/* The sum over losses of factor * sum / weight; 0 without losses. */
static tn_val total_emit(tn_build *b, const tn_model_request *request, tn_model *model,
                         const tn_measure_sums *sums) {
  int32_t n = total_count_losses(model);
  tn_val total = 0, weights = n > 0 && request->training ? total_global_weights(b, model, sums, n) : 0;
  for (int32_t i = 0; i < n; i++) {
    if (!total_takes(request, &model->measures[i])) continue;
    tn_val mean = total_mean(b, sums->sum[i], weights != 0 ? total_element(b, weights, i) : sums->weight[i]);
    mean = total_weigh(b, request, model, &model->measures[i], mean);
    total = total != 0 ? tn_add(b, total, mean) : mean;
  }
  return total;
}

/* Replaces sums and weights by their sums over all ranks. */
static tn_status total_reduce_sums(tn_build *b, const tn_model_request *request, const tn_model *model,
                                   tn_measure_sums *sums) {
  int32_t n = 0;
  tn_val *all = tn_alloc(b, tn_size_mul(2 * (size_t)model->n_measures, sizeof *all));
  if (all == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < model->n_measures; i++) {
    if (!total_takes(request, &model->measures[i])) continue;
    all[n++] = sums->sum[i];
    all[n++] = sums->weight[i];
  }
  tn_val vector = total_all_reduce(b, total_concat(b, all, n));
  tn_release(b, all);
  n = 0;
  for (int32_t i = 0; i < model->n_measures; i++) {
    if (!total_takes(request, &model->measures[i])) continue;
    sums->sum[i] = total_element(b, vector, n++);
    sums->weight[i] = total_element(b, vector, n++);
  }
  return tn_build_status(b);
}

/* The outputs of one measure. */
static tn_status total_output(tn_graph *graph, tn_model *model, const tn_measure_sums *sums, int32_t i) {
  tn_arena *names = &model->arena;
  const char *name = model->measures[i].name;
  TN_TRY(tn_graph_output(graph, tn_arena_printf(names, "%s.sum", name), sums->sum[i]));
  TN_TRY(tn_graph_output(graph, tn_arena_printf(names, "%s.weight", name), sums->weight[i]));
  if (sums->more[i] == 0) return TN_OK;
  const char *part = model->measures[i].of_sums != NULL ? "sums" : "rows";
  return tn_graph_output(graph, tn_arena_printf(names, "%s.%s", name, part), sums->more[i]);
}

tn_status tn_total_loss_build(tn_build *b, const tn_model_request *request, tn_model *model,
                              tn_measure_sums *sums) {
  tn_graph *graph = tn_builder_graph(b);
  /* training differentiates its part of the total; otherwise the total is that of the reduced sums */
  tn_val total = request->training ? total_emit(b, request, model, sums) : 0;
  if (graph->ranks > 1 && model->n_measures > 0) TN_TRY(total_reduce_sums(b, request, model, sums));
  if (!request->training) total = total_emit(b, request, model, sums);
  TN_TRY(tn_build_status(b));
  for (int32_t i = 0; i < model->n_measures; i++)
    if (total_takes(request, &model->measures[i])) TN_TRY(total_output(graph, model, sums, i));
  return total != 0 ? tn_graph_output(graph, "loss", total) : TN_OK;
}

/* ---- the weighing program ---- */

/* The first micro-batch of an update, found by the block counter, resets the state; later ones add to it. */
static tn_status total_commit_weights(tn_build *b, const tn_model *model) {
  tn_graph *graph = model->graph;
  tn_type type = *tn_val_type(b, model->loss_weights);
  tn_val before = tn_graph_state(graph, TN_LOSS_WEIGHTS_STATE, &type, TN_STATE_SCRATCH, "", "");
  if (before == 0) return graph->env->record->code;
  tn_val first = tn_lt(b, tn_build_counter(b, TN_BATCH_BLOCK), tn_scalar(b, TN_I64, graph->ranks));
  tn_val kept = tn_where(b, first, tn_scalar(b, TN_F32, 0.0), before);
  tn_val now = tn_add(b, kept, total_all_reduce(b, model->loss_weights));
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(graph, TN_LOSS_WEIGHTS_STATE, now, 0);
}

tn_status tn_model_weigh(tn_env *env, tn_model *model) {
  tn_builder *builder = NULL;
  if (model->loss_weights == 0)
    return tn_failf(env, TN_EINVAL, "a weighing program needs a loss and several micro-batches");
  tn_graph_clear_ends(model->graph);
  TN_TRY(tn_builder_create(model->graph, &builder));
  tn_build_frame frame = {.prefix = "", .where = "", .training = true};
  tn_builder_push(tn_builder_handle(builder), &frame);
  tn_status status = total_commit_weights(tn_builder_handle(builder), model);
  tn_builder_pop(tn_builder_handle(builder));
  tn_builder_destroy(builder);
  return status;
}
