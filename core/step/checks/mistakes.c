/* core/step/checks/mistakes.c: tells all mistakes of a configuration. */
#include "core/step/checks/mistakes.h"

#include "core/step/checks/check_model.h"

/* Failures of another kind may follow from the mistakes that are known. */
static void mistakes_check_model(tn_run *run) {
  tn_section *section = tn_ini_section(&run->ini, "model");
  const tn_model_request request = {
      .ini = &run->ini,
      .length = tn_settings_longest(&run->settings),
      .registry = run->registry,
      .ops = run->ops,
      .batch = 1,
      .quantize = &run->settings.quantize,
      .adapters = &run->settings.adapters,
      .training = true,
      .measured = section && (tn_section_key(section, "loss") != NULL || run->settings.n_turns > 0)};
  tn_model model;
  if (section == NULL || tn_model_build(&run->env, &request, &model) != TN_OK) return;
  if (request.measured) (void)tn_model_check(run, &model, true);
  tn_model_free(&model);
}

tn_status tn_run_tell_mistakes(tn_run *run, tn_status status) {
  if (status != TN_EINVAL) return status;
  TN_TRY(tn_ini_note(&run->env, &run->ini, status));
  mistakes_check_model(run);
  (void)tn_settings_check_sections(&run->env, run->registry, &run->ini);
  return tn_ini_tell(&run->env, &run->ini);
}
