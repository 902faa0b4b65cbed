/* core/step/programs/open_programs.c: programs and their executor. A kernel that declines when it is
 * prepared is left out, and the programs are compiled again. */
#include "core/exec/declines.h"
#include "core/step/programs/programs.h"

/* The arguments of tn_programs_open. */
typedef struct opened_programs {
  tn_run *run;
  tn_env *env;
  tn_device *device;
  const tn_program_request *request;
  tn_program_set *set;
  tn_executor **executor;
} opened_programs;

static tn_status open_make(void *context) {
  const opened_programs *o = context;
  const tn_program_request *request = o->request;
  TN_TRY(tn_programs_build(o->run, &o->device->target, request, o->set));
  int32_t slots = request->count_slots != NULL ? request->count_slots(request->context) : request->slots;
  return tn_executor_create(o->env, o->device, o->set->map, o->set->list, o->set->n, slots, o->executor);
}

static void open_undo(void *context) {
  const opened_programs *o = context;
  tn_programs_free(o->run, o->set);
}

tn_status tn_programs_open(tn_run *run, tn_env *env, tn_device *device, const tn_program_request *request,
                           tn_program_set *set, tn_executor **executor) {
  opened_programs o = {run, env, device, request, set, executor};
  return tn_attempt_repeat(env, device, &(tn_attempt){&o, open_make, open_undo});
}

const tn_binding *tn_program_main_output(const tn_program *program) {
  for (int32_t i = 0; i < program->n_outputs; i++)
    if (tn_text_equal(program->outputs[i].name, "output")) return &program->outputs[i];
  return program->n_outputs > 0 ? &program->outputs[0] : NULL;
}
