/* core/model/objective.c: losses and metrics. Each returns a value and a weight per element, which are
 * reduced to the sums that training differentiates and reports:
 *
 *   NAME.sum = sum(value * weight * sample weight), NAME.weight = sum(weight * sample weight)
 *
 * A sample weighs 1, or 0 where it pads a batch, times the value of the option `weight`, if that is one.
 *
 * total_loss.c combines them. */
#include "core/model/from_function.h"

#include <string.h>

/* The most numbers that a metric of sums may have for each sample: checkpoints hold their sums as text. */
enum { TN_MOST_STATISTICS = 16384 };

typedef struct tn_objective {
  tn_model_scope *scope;
  const tn_signature *signature;
  tn_model *model;
  const char *phase;       /* of the measures that follow; NULL: there are no phases */
  const tn_results *given; /* inputs of the current measure if a model function gave them, else NULL */
  tn_val sample_weight;    /* f32[batch]: 1, or 0 for padding */
  tn_val weight;           /* f32[batch], of the current measure */
  tn_measure_sums sums;
} tn_objective;

/* Options of losses that the host applies, not the layer. */
typedef struct objective_options {
  double factor;       /* weight = number */
  bool learned;        /* weight = learned */
  const char *weights; /* weight = the name of a value, a number for each sample; NULL: all weigh the same */
  bool sums;           /* reduce = sum: over the elements of a sample */
} objective_options;

static tn_status objective_refuse_weight(const tn_assembly *a, const char *text) {
  return tn_failf(
      a->env, TN_EINVAL,
      "weight is '%s', expected a number, learned, or the name of a value that is one for each sample", text);
}

static tn_status objective_read_weight(const tn_model_scope *scope, const tn_expr *expr,
                                       objective_options *options) {
  tn_assembly *a = scope->assembly;
  tn_value value;
  if (expr->kind == TN_EXPR_WORD && tn_text_equal(expr->word, "learned") && !tn_scope_has(scope, "learned")) {
    options->learned = true;
    return TN_OK;
  }
  if (expr->kind == TN_EXPR_WORD && tn_scope_find_argument(scope, expr->word) < 0) {
    options->weights = expr->word;
    return TN_OK;
  }
  TN_TRY(tn_scope_evaluate(scope, expr, &value));
  options->factor = value.number;
  return value.kind == TN_VALUE_NUMBER ? TN_OK : objective_refuse_weight(a, tn_value_text(&a->arena, &value));
}

static tn_status objective_read_reduce(const tn_model_scope *scope, const tn_expr *expr,
                                       objective_options *options) {
  tn_assembly *a = scope->assembly;
  tn_value value;
  TN_TRY(tn_scope_evaluate(scope, expr, &value));
  const char *text = tn_value_text(&a->arena, &value);
  options->sums = text != NULL && strcmp(text, "sum") == 0;
  if (options->sums || (text != NULL && strcmp(text, "mean") == 0)) return TN_OK;
  return tn_failf(a->env, TN_EINVAL,
                  "reduce is '%s', expected mean, of all elements, or sum, of those of a sample", text);
}

/* Removes the host's options from the arguments of a loss. */
static tn_status objective_take_options(const tn_model_scope *scope, const tn_item_call *call,
                                        const tn_layer_kind *kind, tn_item_call *rest,
                                        objective_options *options) {
  tn_assembly *a = scope->assembly;
  *rest = *call;
  *options = (objective_options){.factor = 1.0};
  rest->args = tn_arena_alloc(&a->arena, tn_size_mul((size_t)call->n_args + 1, sizeof *rest->args));
  rest->n_args = 0;
  if (rest->args == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < call->n_args; i++) {
    const char *name = call->args[i].name;
    bool weighs = tn_text_equal(name, "weight");
    if (!weighs && (!tn_text_equal(name, "reduce") || tn_options_find(&kind->item, "reduce") != NULL)) {
      rest->args[rest->n_args++] = call->args[i];
      continue;
    }
    const tn_expr *expr = call->args[i].value;
    TN_TRY(weighs ? objective_read_weight(scope, expr, options)
                  : objective_read_reduce(scope, expr, options));
  }
  return TN_OK;
}

/* f16 and bf16 are summed in f32; f32 and f64 in their own type. */
static tn_val objective_widen(tn_build *b, tn_val v) {
  return tn_val_type(b, v)->dtype == TN_F64 ? v : tn_to_dtype(b, v, TN_F32);
}

/* The weights of the samples in a measure: where it has some of its own, their products with those of the
 * batch. */
static tn_status objective_weigh(tn_objective *o, const tn_layer_kind *kind, const char *weights) {
  tn_assembly *a = o->scope->assembly;
  tn_build *b = a->b;
  char text[TN_TYPE_TEXT];
  tn_val own;
  o->weight = o->sample_weight;
  if (weights == NULL) return TN_OK;
  if (kind->of_rows != NULL)
    return tn_failf(a->env, TN_EINVAL,
                    "weight is %s, but '%s' compares samples with each other; leave weight out", weights,
                    kind->item.name);
  tn_status status = tn_scope_resolve(o->scope, weights, &own);
  if (status == TN_EINVAL) return objective_refuse_weight(a, weights);
  TN_TRY(status);
  if (own == 0) return TN_OK; /* behind a line that is wrong */
  const tn_type *type = tn_val_type(b, own);
  if (type->rank != 1 || type->dims[0] != tn_val_dim(b, o->sample_weight, 0))
    return tn_failf(a->env, TN_EINVAL,
                    "weight is %s of type %s, expected a number for each sample, as of a target %s: f32[]",
                    weights, tn_type_format(type, text), weights);
  o->weight = tn_mul(b, o->sample_weight, tn_to_dtype(b, own, TN_F32));
  return tn_build_status(b);
}

/* The sample weights as [batch, 1, 1, ...] with the rank and dtype of `like`. */
static tn_val objective_spread_weight(const tn_objective *o, tn_build *b, tn_val like) {
  const tn_type *type = tn_val_type(b, like);
  int64_t dims[TN_MAX_RANK] = {tn_val_dim(b, o->weight, 0), 1, 1, 1, 1, 1, 1, 1};
  int32_t rank = type->rank, dtype = type->dtype;
  return tn_to_dtype(b, tn_reshape(b, o->weight, rank, dims), dtype);
}

/* sum(value * weight) over all elements as an f32 scalar; sum(weight) if `value` is 0. */
static tn_val objective_weighted_sum(tn_build *b, tn_val value, tn_val weight) {
  tn_val product = value != 0 ? tn_mul(b, value, weight) : weight;
  return tn_to_dtype(b, tn_reduce_sum(b, product, 0, NULL, 0), TN_F32);
}

/* The sum of the elements of each sample. */
static tn_val objective_sum_samples(tn_build *b, tn_val value) {
  const int64_t axes[] = {1, 2, 3, 4, 5, 6, 7};
  int32_t rank = tn_val_type(b, value)->rank;
  return rank > 1 ? tn_reduce_sum(b, value, rank - 1, axes, 0) : value;
}

/* `sums`: a sample's value is the sum of its elements, and its weight 1. */
static tn_status objective_emit_sums(tn_objective *o, const char *name, const tn_results *given, bool sums,
                                     tn_val *sum, tn_val *weight_sum) {
  tn_assembly *a = o->scope->assembly;
  tn_build *b = a->b;
  const tn_type *type = tn_val_type(b, given->v[0]);
  char text[TN_TYPE_TEXT];
  if (type->rank < 1 || type->dims[0] != tn_val_dim(b, o->sample_weight, 0))
    return tn_failf(
        a->env, TN_EINVAL,
        "'%s' gives %s, expected a value for each sample, with the batch of %lld in front: a sum or mean "
        "leaves axis 0 out, as in sum(x, axis=1)",
        name, tn_type_format(type, text), (long long)tn_val_dim(b, o->sample_weight, 0));
  tn_results summed = {{0}, 1};
  const tn_results *yields = given;
  if (sums) {
    tn_val wide = objective_widen(b, given->v[0]);
    if (given->n > 1) wide = tn_mul(b, wide, tn_to_dtype(b, given->v[1], tn_val_type(b, wide)->dtype));
    summed.v[0] = objective_sum_samples(b, wide);
    yields = &summed;
  }
  tn_val value = objective_widen(b, yields->v[0]), weight = objective_spread_weight(o, b, value);
  if (yields->n > 1) weight = tn_mul(b, tn_to_dtype(b, yields->v[1], tn_val_type(b, value)->dtype), weight);
  const tn_type *full = tn_val_type(b, value);
  weight = tn_broadcast(b, weight, full->rank, full->dims);
  *sum = objective_weighted_sum(b, value, weight);
  *weight_sum = objective_weighted_sum(b, 0, weight);
  return tn_build_status(b);
}

/* The statistics of each sample in f32, or wider, as (batch, numbers). */
static tn_val objective_flat(tn_build *b, tn_val value, int64_t batch) {
  const tn_type *type = tn_val_type(b, value);
  const int64_t flat[] = {batch, batch > 0 ? tn_type_count(type) / batch : 0};
  return tn_reshape(b, objective_widen(b, value), 2, flat);
}

static tn_val objective_all_ranks(tn_build *b, tn_val value, bool rows) {
  if (tn_build_ranks(b) == 1) return value;
  return rows ? tn_all_gather(b, value, tn_build_ranks(b)) : tn_all_reduce(b, value, TN_REDUCTION_SUM);
}

/* A metric of sums or rows: besides these, "NAME.sum" and "NAME.weight" are those of all its numbers. */
static tn_status objective_emit_statistics(tn_objective *o, int32_t index, tn_val value) {
  tn_build *b = o->scope->assembly->b;
  tn_measure *measure = &o->model->measures[index];
  const tn_type *type = tn_val_type(b, value);
  const int64_t batch = tn_val_dim(b, o->sample_weight, 0), column[] = {batch, 1}, samples = 0;
  measure->row = (tn_type){.dtype = TN_F64, .rank = type->rank - 1};
  memcpy(measure->row.dims, type->dims + 1, (size_t)measure->row.rank * sizeof *type->dims);
  if (tn_type_count(&measure->row) > TN_MOST_STATISTICS)
    return tn_failf(o->scope->assembly->env, TN_EINVAL, "'%s' has %lld numbers a sample, expected at most %d",
                    measure->name, (long long)tn_type_count(&measure->row), TN_MOST_STATISTICS);
  tn_val flat = objective_flat(b, value, batch), weight = tn_reshape(b, o->weight, 2, column);
  if (measure->of_rows != NULL && !o->scope->assembly->request->training) {
    const tn_val parts[] = {tn_to_dtype(b, flat, TN_F32), weight};
    o->sums.more[index] = objective_all_ranks(b, tn_concat(b, 2, parts, 1), true);
  } else if (measure->of_sums != NULL) {
    tn_val weighted = tn_mul(b, tn_to_dtype(b, flat, TN_F64), tn_to_dtype(b, weight, TN_F64));
    o->sums.more[index] = objective_all_ranks(b, tn_reduce_sum(b, weighted, 1, &samples, 0), false);
  }
  return tn_build_status(b);
}

static tn_status objective_check_learned(const tn_objective *o, const objective_options *options,
                                         bool is_loss) {
  if (!options->learned || is_loss) return TN_OK;
  return tn_failf(o->scope->assembly->env, TN_EINVAL,
                  "weight is learned, which losses alone may have; expected a metric without it");
}

static tn_status objective_refuse_role(tn_objective *o, const char *name, bool is_loss) {
  return tn_failf(o->scope->assembly->env, TN_EINVAL,
                  "'%s' is not a %s; `tenon inspect` lists those that are", name,
                  is_loss ? "loss" : "metric");
}

static tn_status objective_check_role(tn_objective *o, const tn_layer_kind *kind, bool is_loss) {
  uint32_t wanted = is_loss ? TN_LAYER_LOSS : TN_LAYER_METRIC;
  /* a loss may serve as a metric; a metric has no gradient */
  if (kind->role == wanted || (!is_loss && kind->role == TN_LAYER_LOSS)) return TN_OK;
  return objective_refuse_role(o, kind->item.name, is_loss);
}

/* The values that the line refers to, or the last value and, where the loss takes two, the first target. */
static tn_status objective_inputs(tn_objective *o, const tn_line *line, const tn_layer_kind *kind,
                                  const char *path, const char *where, tn_results *in) {
  if (o->given != NULL) {
    *in = *o->given;
    return TN_OK;
  }
  if (line->n_refs > 0) return tn_line_inputs(o->scope, line, path, where, in);
  in->v[0] = o->scope->last;
  in->n = 1;
  if (o->signature->n_targets > 0 && kind->min_in > 1) {
    TN_TRY(tn_scope_resolve(o->scope, o->signature->targets[0].name, &in->v[1]));
    in->n = 2;
  }
  return TN_OK;
}

/* `kind` is NULL for values that a function gives as a loss. A loss among the metrics is better when small,
 * too. */
static tn_status objective_add_measure(tn_objective *o, const tn_layer_kind *kind, const char *name,
                                       double factor, bool is_loss) {
  tn_env *env = o->scope->assembly->env;
  for (int32_t i = 0; i < o->model->n_measures; i++)
    if (tn_text_equal(o->model->measures[i].name, name))
      return tn_failf(env, TN_EINVAL,
                      "two losses or metrics are called '%s', expected a name in front, as in `second: ...`",
                      name);
  if (tn_text_equal(name, "loss") || tn_text_equal(name, "output"))
    return tn_failf(env, TN_EINVAL, "'%s' is the name of the total, expected another one", name);
  bool falls = kind == NULL || kind->role == TN_LAYER_LOSS || kind->falls;
  o->model->measures[o->model->n_measures++] =
      (tn_measure){.name = name,
                   .weight = factor,
                   .is_loss = is_loss,
                   .phase = o->phase,
                   .falls = falls,
                   .of_mean = kind != NULL ? kind->of_mean : TN_OF_MEAN_ITSELF,
                   .of_sums = kind != NULL ? kind->of_sums : NULL,
                   .of_rows = kind != NULL ? kind->of_rows : NULL};
  return TN_OK;
}

/* Builds one item of a line. All items of a line have the same inputs. */
static tn_status objective_build_measure(tn_objective *o, const tn_line *line, const tn_item_call *item,
                                         const char *where, bool is_loss) {
  tn_assembly *a = o->scope->assembly;
  tn_item_call call;
  objective_options options;
  tn_results in = {{0}, 0}, yields = {{0}, 0};
  const tn_layer_kind *kind = NULL;
  if (item->layer == NULL || item->repeat != NULL || line->condition != NULL || line->n_names > 1 ||
      (line->n_names > 0 && line->n_items > 1))
    return tn_failf(a->env, TN_EINVAL,
                    "expected losses or metrics as in `cross_entropy <- fc, label`, at most one "
                    "name a line, no repeats, no conditions");
  if (!tn_registry_has(a->request->registry, TN_LAYER, item->layer) &&
      tn_registry_has(a->request->registry, TN_OP, item->layer))
    return objective_refuse_role(o, item->layer, is_loss);
  TN_TRY(tn_find_layer(a, item->layer, &kind));
  TN_TRY(objective_take_options(o->scope, item, kind, &call, &options));
  TN_TRY(objective_check_role(o, kind, is_loss));
  const char *name = line->n_names > 0 ? line->names[0] : call.layer;
  TN_TRY(objective_add_measure(o, kind, tn_arena_strdup(&o->model->arena, name), options.factor, is_loss));
  TN_TRY(objective_check_learned(o, &options, is_loss));
  o->model->measures[o->model->n_measures - 1].learned = options.learned;
  const char *path = tn_scope_path(o->scope, name);
  if (path == NULL) return TN_ENOMEM;
  TN_TRY(objective_weigh(o, kind, options.weights));
  TN_TRY(objective_inputs(o, line, kind, path, where, &in));
  tn_use use = {
      .call = &call, .path = path, .named = line->n_names > 0, .where = where, .in = in.v, .n_in = in.n};
  tn_status status = tn_use_layer(o->scope, &use, kind, &yields);
  if (status != TN_OK) return tn_habits_explain_loss(o->scope, tn_val_type(a->b, in.v[0]), status);
  if (yields.v[0] == 0) return TN_OK; /* behind a line that is wrong */
  int32_t index = o->model->n_measures - 1;
  TN_TRY(objective_emit_sums(o, name, &yields, options.sums, &o->sums.sum[index], &o->sums.weight[index]));
  bool more = kind->of_sums != NULL || kind->of_rows != NULL;
  return more ? objective_emit_statistics(o, index, yields.v[0]) : TN_OK;
}

static tn_status objective_make_room(tn_objective *o, int32_t items) {
  tn_arena *arena = &o->model->arena;
  size_t n = (size_t)o->model->n_measures, room = (size_t)items + 1;
  tn_measure *measures = tn_arena_alloc(arena, tn_size_mul(room, sizeof *measures));
  tn_measure_sums sums = {tn_arena_alloc(arena, tn_size_mul(room, sizeof *sums.sum)),
                          tn_arena_alloc(arena, tn_size_mul(room, sizeof *sums.weight)),
                          tn_arena_alloc(arena, tn_size_mul(room, sizeof *sums.more))};
  if (measures == NULL || sums.sum == NULL || sums.weight == NULL || sums.more == NULL) return TN_ENOMEM;
  if (n > 0) {
    memcpy(measures, o->model->measures, n * sizeof *measures);
    memcpy(sums.sum, o->sums.sum, n * sizeof *sums.sum);
    memcpy(sums.weight, o->sums.weight, n * sizeof *sums.weight);
    memcpy(sums.more, o->sums.more, n * sizeof *sums.more);
  }
  o->model->measures = measures;
  o->sums = sums;
  return TN_OK;
}

/* The text may begin with the line of a layer: then that of the loss is not put in front of it. */
static tn_status objective_note(tn_objective *o, tn_status status, const char *where) {
  tn_assembly *a = o->scope->assembly;
  bool placed = a->spread.where != NULL && tn_text_starts(tn_error_text(a->env), a->spread.where);
  return tn_scope_note(o->scope, placed ? status : tn_error_add_context(a->env, status, where, ""));
}

/* `kl = ...` among the losses. */
static tn_status objective_refuse_value(const tn_objective *o, const tn_line *line, bool is_loss) {
  return tn_failf(o->scope->assembly->env, TN_EINVAL,
                  "'=' stands behind '%s', expected a %s; for one that is a value write `%s: value <- ...`",
                  line->names[0], is_loss ? "loss" : "metric", line->names[0]);
}

static tn_status objective_build_list(tn_objective *o, tn_section *section, const char *name, bool is_loss) {
  tn_assembly *a = o->scope->assembly;
  tn_key *key = tn_section_key(section, name);
  tn_line *lines;
  int32_t n;
  if (key == NULL) return TN_OK;
  key->used = true;
  TN_TRY(tn_syntax_lines(a->env, &a->arena, key, a->request->ini, &lines, &n));
  int32_t items = o->model->n_measures;
  for (int32_t i = 0; i < n; i++) items += lines[i].n_items;
  TN_TRY(objective_make_room(o, items));
  for (int32_t i = 0; i < n; i++) {
    const char *where = tn_line_where(a, &lines[i]);
    tn_status status = where != NULL ? TN_OK : TN_ENOMEM;
    if (status == TN_OK && lines[i].value != NULL) {
      a->met_unknown = false;
      status = objective_note(o, objective_refuse_value(o, &lines[i], is_loss), where);
    }
    for (int32_t k = 0; status == TN_OK && !lines[i].wrong && k < lines[i].n_items; k++) {
      a->met_unknown = false;
      status = objective_build_measure(o, &lines[i], &lines[i].items[k], where, is_loss);
      if (status != TN_OK) status = objective_note(o, status, where);
    }
    TN_TRY(status);
  }
  return TN_OK;
}

static tn_status objective_take_sample_weight(tn_objective *o) {
  o->sample_weight = tn_model_sample_weight(o->scope->assembly);
  return o->sample_weight != 0 ? TN_OK : TN_ENOMEM;
}

/* Builds a measure of a model function: a layer's line applied to its values, or the values themselves. */
static tn_status objective_build_from_function(tn_objective *o, const tn_function_measure *m) {
  tn_assembly *a = o->scope->assembly;
  tn_line line;
  o->weight = o->sample_weight;
  if (m->line == NULL) {
    TN_TRY(objective_add_measure(o, NULL, tn_arena_strdup(&o->model->arena, m->name), m->factor, true));
    int32_t index = o->model->n_measures - 1;
    return objective_emit_sums(o, m->name, &m->in, false, &o->sums.sum[index], &o->sums.weight[index]);
  }
  TN_TRY(tn_syntax_line(a->env, &a->arena, m->line, "model", 0, &line));
  if (line.n_items != 1 || line.n_refs > 0)
    return tn_failf(a->env, TN_EINVAL, "'%s': expected one loss or metric without inputs, which are given",
                    m->line);
  o->given = &m->in;
  return objective_build_measure(o, &line, &line.items[0], "model", m->is_loss);
}

tn_status tn_objective_from_function(tn_model_scope *scope, const tn_function_measure *measures, int32_t n,
                                     tn_model *model) {
  tn_objective o = {.scope = scope, .model = model};
  TN_TRY(objective_take_sample_weight(&o));
  TN_TRY(objective_make_room(&o, n));
  for (int32_t i = 0; i < 2 * n; i++) /* losses first */
    if (measures[i % n].is_loss == (i < n)) TN_TRY(objective_build_from_function(&o, &measures[i % n]));
  TN_TRY(tn_build_status(scope->assembly->b));
  return tn_total_loss_build(scope->assembly->b, scope->assembly->request, model, &o.sums);
}

/* The losses of each [phase NAME], in the order of the file. */
static tn_status objective_build_phases(tn_objective *o) {
  const tn_ini *ini = o->scope->assembly->request->ini;
  const size_t prefix = strlen(TN_PHASE_SECTION);
  for (int32_t i = 0; i < ini->n_sections; i++) {
    tn_section *section = &ini->sections[i];
    if (!tn_text_starts(section->name, TN_PHASE_SECTION)) continue;
    o->phase = tn_arena_strdup(&o->model->arena, section->name + prefix);
    if (o->phase == NULL) return TN_ENOMEM;
    TN_TRY(objective_build_list(o, section, "loss", true));
  }
  return TN_OK;
}

tn_status tn_objective_build(tn_model_scope *scope, tn_section *section, const tn_signature *signature,
                             tn_model *model) {
  tn_assembly *a = scope->assembly;
  tn_objective o = {.scope = scope, .signature = signature, .model = model};
  TN_TRY(objective_take_sample_weight(&o));
  TN_TRY(objective_build_list(&o, section, "loss", true));
  TN_TRY(objective_build_phases(&o));
  TN_TRY(objective_build_list(&o, section, "metrics", false));
  TN_TRY(tn_build_status(a->b));
  if (a->request->ini->mistakes.n > 0) return TN_OK;
  return tn_total_loss_build(a->b, a->request, model, &o.sums);
}
