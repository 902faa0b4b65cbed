/* core/compile/loop_pairs.c: which outputs of a loop may have the memory of its sequences. A loop without
 * states works on each part of its sequences alone, so that it is enough to look at the launches of one step.
 */
#include "core/compile/loop_pairs.h"

#include "core/compile/program.h"

/* Whether an operand or result of a step of the body is the input or output of that name. */
static const tn_binding *loop_pairs_binding(const tn_program *p, const tn_location *location) {
  bool in = location->base == TN_BASE_SLOT;
  const tn_binding *list = in ? p->inputs : p->outputs, *found = NULL;
  int32_t n = in ? p->n_inputs : p->n_outputs;
  if (!in && location->base != TN_BASE_OUTPUT) return NULL;
  for (int32_t i = 0; i < n; i++)
    if (list[i].offset <= location->offset && (found == NULL || list[i].offset > found->offset))
      found = &list[i];
  return found;
}

/* The first step of the body that writes an output, and the number of that result; -1: no step does. */
static int32_t loop_pairs_writer(const tn_program *p, const tn_binding *output, int32_t *result) {
  for (int32_t s = 0; s < p->n_steps; s++)
    for (*result = 0; *result < p->steps[s].n_out; ++*result)
      if (loop_pairs_binding(p, &p->steps[s].out[*result].location) == output) return s;
  return -1;
}

/* A step of the loop may write an output over its part of a sequence if the body does not read that later,
 * and the launch that writes may do so. */
static bool loop_pairs_may_overwrite(const tn_program *p, const tn_binding *input, const tn_binding *output) {
  int32_t result, writer = loop_pairs_writer(p, output, &result);
  bool may = writer >= 0 && tn_type_bytes(&input->type) == tn_type_bytes(&output->type);
  for (int32_t s = writer; may && s < p->n_steps; s++) {
    const tn_step *step = &p->steps[s];
    for (int32_t i = 0; may && i < step->n_in; i++)
      if (loop_pairs_binding(p, &step->in[i].location) == input)
        may = s == writer && step->in[i].location.offset == input->offset &&
              step->out[result].location.offset == output->offset &&
              tn_group_is_inplace_pair(step->group, i, result);
  }
  return may;
}

tn_status tn_loop_pairs_find(tn_arena *arena, const tn_loop_attributes *a, tn_loop_body *body) {
  const tn_program *p = body->program;
  size_t most = tn_size_mul((size_t)p->n_inputs + 1, (size_t)p->n_outputs + 1);
  body->inplace = tn_arena_alloc(arena, tn_size_mul(most, sizeof *body->inplace));
  if (body->inplace == NULL) return TN_ENOMEM;
  for (int32_t i = 0; a->states == 0 && a->before == 0 && i < p->n_inputs; i++)
    for (int32_t k = 0; k < p->n_outputs; k++) {
      if (!loop_pairs_may_overwrite(p, &p->inputs[i], &p->outputs[k])) continue;
      int32_t *pair = body->inplace[body->n_inplace++];
      pair[0] = tn_loop_binding_number(&p->inputs[i]);
      pair[1] = tn_loop_binding_number(&p->outputs[k]);
    }
  return TN_OK;
}
