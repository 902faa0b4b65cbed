#include "core/infer/prediction/predict_classes.h"

#include <math.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/infer/prediction/class_scores.h"
#include "core/step/values/finite_rows.h"

/* The value of [model] loss, which may have options and several losses. */
static bool predict_has_cross_entropy(tn_run *run) {
  tn_section *section = tn_ini_section(&run->ini, "model");
  const tn_key *loss = section != NULL ? tn_section_key(section, "loss") : NULL;
  return loss != NULL && strstr(loss->value, "cross_entropy") != NULL;
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

void tn_predict_classes_start(tn_run *run, const tn_type *row, int32_t top, tn_predict_classes *classes) {
  *classes = (tn_predict_classes){.top = top > 0 ? top : 5};
  if (row->rank != 1 || row->dtype != TN_F32 || !predict_has_cross_entropy(run)) return;
  classes->classes = row->dims[0];
  if (classes->top > classes->classes) classes->top = (int32_t)classes->classes;
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

json_t *tn_predict_classes_row(const tn_predict_classes *c, const float *scores) {
  json_t *list = json_array();
  if (!tn_scores_are_numbers(scores, c->classes)) return list;
  int64_t class = predict_next_class(scores, c->classes, -1);
  double largest = class >= 0 ? (double)scores[class] : 0;
  double sum = tn_class_scores_sum(scores, c->classes, largest);
  for (int32_t k = 0; list != NULL && k < c->top && class >= 0; k++) {
    double probability = exp((double)scores[class] - largest) / sum;
    json_array_append_new(list, predict_describe_class(c, class, probability));
    class = predict_next_class(scores, c->classes, class);
  }
  return list;
}
