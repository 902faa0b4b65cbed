/* core/train/programs/check_model.c: names in other sections that the model has not. */
#include "core/train/programs/check_model.h"

#include "core/train/graphs/training_graph.h"

/* [run] best must be "loss" or the name of a measure. */
static tn_status check_model_best(tn_run *run, const tn_model *model) {
  const char *best = run->settings.run.best;
  if (best == NULL || *best == '\0' || tn_text_equal(best, "loss")) return TN_OK;
  tn_text names = tn_text_new(&run->env);
  for (int32_t i = 0; i < model->n_measures; i++) {
    if (tn_text_equal(model->measures[i].name, best)) {
      tn_text_free(&names);
      return TN_OK;
    }
    tn_text_addf(&names, ", %s", model->measures[i].name);
  }
  tn_status status = tn_failf(&run->env, TN_EINVAL,
                              "%s: [run] best: there is no loss or metric '%s', expected one of loss%s",
                              tn_settings_where(&run->ini, "run", "best"), best, names.v ? names.v : "");
  tn_text_free(&names);
  return tn_ini_note(&run->env, &run->ini, status);
}

tn_status tn_model_check(tn_run *run, const tn_model *model, bool trains) {
  if (trains) TN_TRY(tn_patterns_check(&run->env, &run->ini, &run->settings, model->graph));
  return check_model_best(run, model);
}
