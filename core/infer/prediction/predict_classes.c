#include "core/infer/prediction/predict_classes.h"

#include <math.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/infer/prediction/class_scores.h"
#include "core/model/model.h"
#include "core/step/values/finite_rows.h"

/* The value of [model] loss may have options and several losses. */
int32_t tn_predict_scores(tn_run *run) {
  static const char binary[] = "binary_";
  const size_t n = sizeof binary - 1;
  tn_section *section = tn_ini_section(&run->ini, "model");
  const tn_key *loss = section != NULL ? tn_section_key(section, "loss") : NULL;
  const char *at = loss != NULL ? strstr(loss->value, "cross_entropy") : NULL;
  if (at == NULL) return TN_SCORES_NONE;
  bool labels = (size_t)(at - loss->value) >= n && memcmp(at - n, binary, n) == 0;
  return labels ? TN_SCORES_OF_LABELS : TN_SCORES_OF_CLASSES;
}

/* The list of the first target that has so many names. */
static json_t *predict_find_names(json_t *document, int64_t classes) {
  const char *target;
  json_t *names;
  json_object_foreach(document, target, names) {
    if (json_is_array(names) && (int64_t)json_array_size(names) == classes) return names;
  }
  return NULL;
}

/* The number of names of the first target. */
static int64_t predict_count_names(json_t *document) {
  const char *target;
  json_t *names;
  json_object_foreach(document, target, names) return (int64_t)json_array_size(names);
  return 0;
}

static void predict_warn_names(const tn_run *run, const tn_predict_classes *c) {
  const char *file = run->weights_file != NULL ? run->weights_file : "the weights";
  if (c->unfit > 0)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: the model gives scores of %lld classes, but %s names %lld; the names are not used",
            run->ini.path, (long long)c->classes, file, (long long)c->unfit);
}

/* The name of the first target, for a single label. */
static void predict_name_label(tn_run *run, tn_predict_classes *c) {
  tn_signature signature;
  if (tn_signature_read(&run->env, &run->arena, &run->ini, &signature) != TN_OK || signature.n_targets < 1)
    return;
  c->document = json_pack("{s:[s]}", signature.targets[0].name, signature.targets[0].name);
  c->names = c->document != NULL ? json_object_get(c->document, signature.targets[0].name) : NULL;
}

void tn_predict_classes_start(tn_run *run, const tn_type *row, int32_t top, tn_predict_classes *classes) {
  *classes = (tn_predict_classes){.top = top > 0 ? top : 5};
  int32_t scores = tn_predict_scores(run);
  bool independent = scores == TN_SCORES_OF_LABELS;
  bool fits = row->rank == 1 || (row->rank == 0 && independent);
  if (!fits || row->dtype != TN_F32 || scores == TN_SCORES_NONE) return;
  classes->independent = independent;
  classes->classes = tn_type_count(row);
  if (classes->top > classes->classes) classes->top = (int32_t)classes->classes;
  if (independent && classes->classes == 1) {
    predict_name_label(run, classes);
    return;
  }
  if (run->class_names == NULL) return;
  classes->document = json_loads(run->class_names, 0, NULL);
  if (classes->document == NULL) return;
  classes->names = predict_find_names(classes->document, classes->classes);
  if (classes->names == NULL) classes->unfit = predict_count_names(classes->document);
  predict_warn_names(run, classes);
}

void tn_predict_classes_finish(tn_predict_classes *classes) { json_decref(classes->document); }

/* The class with the largest score of those that come behind `before` in descending order; equal scores are
 * in the order of the classes. -1: none. */
static int64_t predict_next_class(const float *scores, int64_t n, int64_t before) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; i++) {
    bool taken = before >= 0 && (scores[i] > scores[before] || (scores[i] == scores[before] && i <= before));
    if (!taken && (best < 0 || scores[i] > scores[best])) best = i;
  }
  return best;
}

static json_t *predict_describe_class(const tn_predict_classes *c, int64_t class, double probability) {
  json_t *one = json_pack("{s:I}", "class", (json_int_t) class);
  json_t *name = c->names != NULL ? json_array_get(c->names, (size_t) class) : NULL;
  if (one != NULL && json_is_string(name)) json_object_set(one, "name", name);
  if (one != NULL) json_object_set_new(one, "probability", json_real(probability));
  return one;
}

tn_score_scale tn_predict_scale(const tn_predict_classes *c, const float *scores) {
  double largest = (double)scores[predict_next_class(scores, c->classes, -1)];
  return (tn_score_scale){largest, tn_class_scores_sum(scores, c->classes, largest)};
}

double tn_predict_probability(const tn_predict_classes *c, const tn_score_scale *all, float score) {
  return c->independent ? 1 / (1 + exp(-(double)score)) : exp((double)score - all->largest) / all->sum;
}

json_t *tn_predict_classes_row(const tn_predict_classes *c, const float *scores) {
  json_t *list = json_array();
  if (!tn_scores_are_numbers(scores, c->classes)) return list;
  const tn_score_scale all = tn_predict_scale(c, scores);
  int64_t class = predict_next_class(scores, c->classes, -1);
  for (int32_t k = 0; list != NULL && k < c->top && class >= 0; k++) {
    json_array_append_new(list,
                          predict_describe_class(c, class, tn_predict_probability(c, &all, scores[class])));
    class = predict_next_class(scores, c->classes, class);
  }
  return list;
}
