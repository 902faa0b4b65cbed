/* core/train/programs/open_programs.c: programs and their executor. A kernel whose `prepare` declines is left
 * out, and the programs are compiled again. */
#include "core/compile/kernels/answers.h"
#include "core/train/programs/programs.h"

/* Each attempt leaves out at least one variant, so the loop ends: with an executor, or with an op that no
 * kernel takes. */
tn_status tn_programs_open(tn_run *run, tn_env *env, tn_device *device, const tn_program_request *request,
                           tn_program_set *set, tn_executor **executor) {
  for (;;) {
    size_t declines = tn_answers_declines(&device->target);
    TN_TRY(tn_programs_build(run, &device->target, request, set));
    int32_t slots = request->count_slots != NULL ? request->count_slots(request->context) : request->slots;
    tn_status status = tn_executor_create(env, device, set->map, set->list, set->n, slots, executor);
    if (status != TN_EUNSUPPORTED || tn_answers_declines(&device->target) == declines) return status;
    tn_programs_free(run, set);
    tn_error_clear(env);
  }
}
