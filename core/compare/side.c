/* core/compare/side.c: one of two backends: a training of its own. */
#include "core/compare/side.h"

#include <math.h>

#include "core/base/system/system.h"
#include "core/records/runs/weights_file.h"
#include "core/distributed/ranks/devices.h"

/* ---- life ---- */

static tn_status side_check_devices(tn_run *run, const tn_device *device) {
  TN_TRY(tn_devices_count(run, device));
  int32_t n = run->ranks;
  run->ranks = 0;
  if (n == 1) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [distributed] devices = %s: backends are compared on one device each; add --set "
                  "distributed.devices=1",
                  tn_settings_where(&run->ini, "distributed", "devices"), run->settings.distributed.devices);
}

tn_status tn_compare_side_open(tn_compare_side *side, tn_run *run) {
  tn_training *t = &side->training;
  side->run = run;
  *t = (tn_training){.run = run, .progress = {.best = NAN, .ended = true}, .started_s = tn_clock_s()};
  TN_TRY(tn_run_open_device(run, &t->device));
  TN_TRY(side_check_devices(run, t->device));
  TN_TRY(tn_ranks_create(&run->env, 1, NULL, &t->ranks));
  return tn_training_prepare(t);
}

void tn_compare_side_close(tn_compare_side *side) {
  if (side->run == NULL) return;
  tn_trainings_release(&side->training, 1);
  tn_ranks_destroy(side->training.ranks);
}

/* ---- state ---- */

tn_status tn_compare_side_start(tn_compare_side *side) {
  tn_training *t = &side->training;
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  TN_TRY(tn_weights_load_configured(side->run, t->executor, t->set.map));
  TN_TRY(tn_programs_refresh(&t->set, t->executor));
  t->max_ahead = 0;
  t->steps_per_launch = 1; /* so that the loss of every step is read */
  return TN_OK;
}

/* Regions and derived copies follow from the other states. */
static bool side_copies(const tn_placement *state) {
  return state->path[0] != '@' && state->what != TN_STATE_DERIVED && state->what != TN_STATE_SCRATCH;
}

static tn_status side_copy_one(tn_compare_side *to, tn_compare_side *from, const tn_placement *state) {
  tn_env *env = &to->run->env;
  size_t bytes = tn_type_bytes(&state->type);
  const tn_placement *other = tn_state_map_find(from->training.set.map, state->path);
  if (other == NULL || !tn_type_equal(&other->type, &state->type))
    return tn_failf(env, TN_EINVAL,
                    "state '%s' is not the same on both backends: with them the model has other states, so "
                    "they cannot be compared",
                    state->path);
  void *data = tn_alloc(env, bytes + 1);
  tn_status status = data ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && tn_executor_read(from->training.executor, state->path, data, bytes) != TN_OK)
    status = tn_error_move(env, &from->run->env);
  if (status == TN_OK) status = tn_executor_write(to->training.executor, state->path, data, bytes);
  tn_release(env, data);
  return status;
}

tn_status tn_compare_side_copy_state(tn_compare_side *to, tn_compare_side *from) {
  const tn_state_map *map = to->training.set.map;
  for (size_t i = 0; i < map->states.n; i++)
    if (side_copies(&map->states.v[i])) TN_TRY(side_copy_one(to, from, &map->states.v[i]));
  return tn_programs_refresh(&to->training.set, to->training.executor);
}

/* ---- steps ---- */

tn_status tn_compare_side_step(tn_compare_side *side, double *loss, bool *ended) {
  tn_training *t = &side->training;
  TN_TRY(tn_training_begin_epoch(t));
  tn_status status = tn_training_step(t);
  *loss = tn_metric_sums_means(&t->step_sums)[0].value;
  if (status != TN_ENONFINITE) return status;
  *ended = true;
  tn_error_clear(&side->run->env);
  return TN_OK;
}
