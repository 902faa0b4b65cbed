/* core/step/checks/check_model.c: names in other sections that the model has not. */
#include "core/step/checks/check_model.h"

#include "core/step/graphs/training_graph.h"

/* A key that names a metric holds "loss", the name of a measure, or nothing. */
static tn_status check_model_metric(tn_run *run, const tn_model *model, const char *section, const char *key,
                                    const char *value) {
  if (value == NULL || *value == '\0' || tn_text_equal(value, "loss")) return TN_OK;
  tn_text names = tn_text_new(&run->env);
  for (int32_t i = 0; i < model->n_measures; i++) {
    if (tn_text_equal(model->measures[i].name, value)) {
      tn_text_free(&names);
      return TN_OK;
    }
    tn_text_addf(&names, ", %s", model->measures[i].name);
  }
  tn_status status =
      tn_failf(&run->env, TN_EINVAL, "%s: [%s] %s: there is no loss or metric '%s', expected one of loss%s",
               tn_settings_where(&run->ini, section, key), section, key, value, names.v ? names.v : "");
  tn_text_free(&names);
  return tn_ini_note(&run->env, &run->ini, status);
}

tn_status tn_model_check(tn_run *run, const tn_model *model, bool trains) {
  const tn_settings *s = &run->settings;
  if (trains) TN_TRY(tn_patterns_check(&run->env, &run->ini, s, model->graph));
  TN_TRY(check_model_metric(run, model, "run", "best", s->run.best));
  TN_TRY(check_model_metric(run, model, "run", "target", s->target_metric));
  return check_model_metric(run, model, "schedule", "metric", s->schedule.metric);
}
