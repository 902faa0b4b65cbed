/* core/step/programs/optimizer_place.c: [optimizer] place (docs/decisions/0111-optimizer-on-the-host.md). */
#include "core/step/programs/programs.h"

static bool place_updates_elements(const tn_run *run) {
  const tn_settings *s = &run->settings;
  bool elements = s->optimizer_kind == NULL || s->optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE;
  for (int32_t i = 0; i < s->n_turns; i++)
    elements = elements && s->turns[i].optimizer_kind->granularity == TN_UPDATE_ELEMENTWISE;
  return elements;
}

bool tn_programs_can_place(const tn_run *run, const tn_target *target) {
  return !target->properties.host_addressable && target->fallback != NULL && tn_run_ranks(run) == 1 &&
         place_updates_elements(run);
}

/* On a device that computes in memory of the host nothing changes its place. */
tn_status tn_programs_check_place(tn_run *run, const tn_target *target) {
  const char *where = tn_settings_where(&run->ini, "optimizer", "place");
  if (run->settings.optimizer.place != TN_OPTIMIZER_ON_HOST || target->properties.host_addressable)
    return TN_OK;
  if (tn_run_ranks(run) > 1)
    return tn_failf(
        &run->env, TN_EINVAL,
        "%s: [optimizer] place = host with %d devices, expected one; [distributed] shard = optimizer "
        "divides the optimizer's state among several",
        where, (int)tn_run_ranks(run));
  if (!place_updates_elements(run))
    return tn_failf(
        &run->env, TN_EINVAL,
        "%s: [optimizer] place = host: optimizer '%s' updates a whole parameter at a time; expected "
        "one that updates each element by itself, such as sgd or adamw, or place = device",
        where, run->settings.optimizer_kind->item.name);
  if (target->fallback == NULL)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: [optimizer] place = host: no backend that computes in memory of the host is there "
                    "beside device '%s' "
                    "(a rehearsed device has none); expected backend cpu, or place = device",
                    where, target->properties.name);
  return TN_OK;
}
