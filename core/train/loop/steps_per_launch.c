/* core/train/loop/steps_per_launch.c: how many steps are launched at once.
 *
 * A launch costs the host some microseconds: copies, events, the hand-over of batches and metrics. Where a
 * step takes less, the device waits for the host. Several steps in one launch share these costs. */
#include "core/train/loop/steps_per_launch.h"

#include <math.h>

/* A launch has at least this time, of which ten driver calls are a small part. */
static const double least_launch_s = 200e-6;
/* Of input slots, at most. */
enum { MOST_SLOT_BYTES = 64 << 20 };

/* Whether one capture may hold several steps: all launches of a step, on the device alone. */
static bool steps_can_be_one_capture(const tn_run *run, const tn_device *device, const tn_program *step) {
  if (device->target.properties.host_addressable || !tn_device_captures(device) ||
      run->settings.optimizer.accumulate > 1 || tn_run_ranks(run) > 1 || step->n_segments != 1)
    return false;
  for (int32_t i = 0; i < step->n_steps; i++)
    if (!step->steps[i].group->choice.capturable) return false;
  return !step->segments[0].fallback;
}

static double steps_estimate_s(const tn_program *step) {
  double sum = 0;
  for (int32_t i = 0; i < step->n_steps; i++) sum += step->steps[i].group->choice.cost_s;
  return sum;
}

static bool steps_fit(const tn_run *run, const tn_device *device, const tn_program_set *set, int32_t n) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  int32_t slots = tn_run_input_slots(run, n);
  return slots * (step->slot_bytes + step->output_bytes) <= MOST_SLOT_BYTES &&
         tn_programs_fit(run, &device->target, set, slots);
}

int32_t tn_steps_per_launch(const tn_run *run, const tn_device *device, const tn_program_set *set) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  int32_t asked = run->settings.steps_per_launch;
  if (asked > 0) return asked;
  if (run->settings.n_turns > 0) return 1;   /* so have the phases of a step */
  if (run->settings.n_lengths > 1) return 1; /* steps have programs of different lengths */
  for (int32_t phase = 0; phase < run->settings.n_phases; phase++)
    if (!steps_can_be_one_capture(run, device, set->programs[tn_phase_program(TN_PROGRAM_STEP, phase)]))
      return 1;
  double wanted = ceil(least_launch_s / fmax(steps_estimate_s(step), 1e-9));
  int32_t n = wanted < TN_MAX_STEPS_PER_LAUNCH ? (int32_t)wanted : TN_MAX_STEPS_PER_LAUNCH;
  while (n > 1 && !steps_fit(run, device, set, n)) n--;
  return n;
}
