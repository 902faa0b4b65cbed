/* core/exec/prepared_steps.c: prepares the kernels of a program, notes those that decline, and releases them.
 */
#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/transfer_kernel.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/declines.h"
#include "core/exec/loop.h"

static tn_status prepare_loop(tn_executor *e, const tn_step *step, int32_t *use, void **prepared) {
  tn_bound_loop *loop = NULL;
  tn_status status = tn_loop_prepare(e, tn_device_of(e, step), step, use, &loop);
  *prepared = loop;
  return status;
}

/* The number of a step is the use of its kernel. */
static tn_status prepare_step(tn_executor *e, tn_bound_program *bound, int32_t number, void **prepared) {
  const tn_program *program = bound->program;
  const tn_step *step = &program->steps[number];
  const tn_group *group = step->group;
  tn_device *device = tn_device_of(e, step);
  if (tn_kernel_is_collective(group->kernel)) return tn_collective_prepare(e, program, step, prepared);
  if (tn_kernel_is_transfer(group->kernel)) return tn_transfer_prepare(e, step, prepared);
  if (tn_kernel_is_loop(group->kernel)) return prepare_loop(e, step, &bound->uses, prepared);
  const tn_choice *choice = &group->choice;
  return tn_device_prepare(device, group->kernel, group->match, choice, choice->in_layout, choice->out_layout,
                           number, prepared);
}

/* A child of the process that prepared a kernel does not release it: the kernel may hold objects of a driver.
 */
static void release_step(tn_executor *e, const tn_step *step, void *prepared) {
  const tn_kernel *kernel = step->group->kernel;
  tn_device *device = tn_device_of(e, step);
  if (tn_kernel_is_collective(kernel))
    tn_collective_release(e, prepared);
  else if (tn_kernel_is_transfer(kernel))
    tn_release(e->env, prepared);
  else if (tn_kernel_is_loop(kernel))
    tn_loop_release(e, prepared);
  else if (prepared != NULL && kernel->release != NULL && tn_device_check_process(device) == TN_OK)
    kernel->release(&device->env, prepared);
}

/* The kernel of a step has failed when it was prepared, with a message in the device's env. true: it declines
 * its match, so that another is chosen when the program is compiled again. A collective has no other kernel.
 */
static bool note_failed_step(tn_executor *e, const tn_bound_program *bound, int32_t number,
                             tn_status status) {
  const tn_step *step = &bound->program->steps[number];
  const tn_group *group = step->group;
  tn_device *device = tn_device_of(e, step);
  bool declines = status == TN_EUNSUPPORTED && !tn_kernel_is_collective(group->kernel) &&
                  !tn_kernel_is_loop(group->kernel) &&
                  tn_decline_note(device, TN_LOG_WARN, step->name, group->entry, &group->choice, group->key);
  if (device != e->device) tn_error_move(&e->device->env, &device->env);
  tn_executor_fail(e, tn_executor_wrap_step(e, bound, step, status));
  return declines;
}

/* Goes on after a kernel that declines, so that all such kernels are known at once. */
static tn_status prepare_steps(tn_executor *e, tn_bound_program *bound) {
  tn_status declined = TN_OK;
  bound->uses = tn_program_all_steps(bound->program);
  for (int32_t i = 0; i < tn_program_all_steps(bound->program); i++) {
    TN_TRY(tn_check_stop(e->env));
    tn_status status = prepare_step(e, bound, i, &bound->prepared[i]);
    if (status == TN_OK) continue;
    if (!note_failed_step(e, bound, i, status)) return status;
    declined = status;
  }
  return declined;
}

/* A kernel of the body of a loop has declined. */
static bool note_declined_body(tn_executor *e, const tn_bound_program *bound, int32_t use, tn_status status) {
  for (int32_t i = 0; i < tn_program_all_steps(bound->program); i++) {
    const tn_step *step = &bound->program->steps[i];
    if (step->body == NULL || bound->prepared[i] == NULL) continue;
    if (!tn_loop_note_decline(e, bound->prepared[i], use)) continue;
    tn_device *device = tn_device_of(e, step);
    if (device != e->device) tn_error_move(&e->device->env, &device->env);
    tn_executor_fail(e, tn_executor_wrap_step(e, bound, step, status));
    return true;
  }
  return false;
}

/* The use is that of a step, or of a kernel in a loop. */
static bool note_declined_use(tn_executor *e, tn_bound_program *bound, int32_t use, tn_status status) {
  if (use >= tn_program_all_steps(bound->program)) return note_declined_body(e, bound, use, status);
  if (!note_failed_step(e, bound, use, status)) return false;
  release_step(e, &bound->program->steps[use], bound->prepared[use]);
  bound->prepared[use] = NULL;
  return true;
}

/* A kernel that declines is released, so its use is not reported again. */
static tn_status finish_steps(tn_executor *e, tn_bound_program *bound, tn_device *device) {
  tn_status declined = TN_OK, status;
  int32_t use;
  while ((status = tn_device_finish_prepare(device, &use)) != TN_OK) {
    bool step = use >= 0 && use < tn_program_all_steps(bound->program);
    if (use < 0 || use >= bound->uses || (step && bound->prepared[use] == NULL)) {
      if (device != e->device) tn_error_move(&e->device->env, &device->env);
      return tn_executor_fail(e, status);
    }
    if (!note_declined_use(e, bound, use, status)) return status;
    declined = status;
  }
  return declined;
}

tn_status tn_prepared_steps_create(tn_executor *e, tn_bound_program *bound) {
  tn_device *host = e->device->fallback;
  TN_TRY(prepare_steps(e, bound));
  TN_TRY(finish_steps(e, bound, e->device));
  return host != NULL ? finish_steps(e, bound, host) : TN_OK;
}

void tn_prepared_steps_destroy(tn_executor *e, tn_bound_program *bound) {
  for (int32_t i = 0; bound->prepared != NULL && i < tn_program_all_steps(bound->program); i++)
    release_step(e, &bound->program->steps[i], bound->prepared[i]);
  tn_release(e->env, bound->prepared);
}
