/* core/compile/kernels/loop_in_place.c: which states of a loop its body can write over. */
#include <stdlib.h>
#include <string.h>

#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/program.h"

/* A state in the body's program: where it is read, and where its next value is written. */
typedef struct loop_state_use {
  const tn_binding *read, *written;
  int32_t last_read, first_write; /* steps */
} loop_state_use;

int32_t tn_loop_binding_number(const tn_binding *binding) {
  return (int32_t)strtol(binding->name + strcspn(binding->name, "0123456789"), NULL, 10);
}

static const tn_binding *in_place_input(const tn_program *p, int64_t number) {
  for (int32_t i = 0; i < p->n_inputs; i++)
    if (tn_loop_binding_number(&p->inputs[i]) == number) return &p->inputs[i];
  return NULL;
}

static const tn_binding *in_place_next(const tn_program *p, int64_t state) {
  for (int32_t i = 0; i < p->n_outputs; i++)
    if (p->outputs[i].name[0] == 'n' && tn_loop_binding_number(&p->outputs[i]) == state)
      return &p->outputs[i];
  return NULL;
}

static bool in_place_lies_in(const tn_operand *operand, int32_t base, const tn_binding *binding) {
  int64_t end = binding->offset + (int64_t)tn_type_bytes(&binding->type);
  return operand->location.base == base && operand->location.offset >= binding->offset &&
         operand->location.offset < end;
}

static void in_place_visit(const tn_step *step, int32_t number, loop_state_use *use) {
  for (int32_t k = 0; k < step->n_in; k++)
    if (in_place_lies_in(&step->in[k], TN_BASE_SLOT, use->read)) use->last_read = number;
  for (int32_t k = 0; k < step->n_out; k++)
    if (use->first_write < 0 && in_place_lies_in(&step->out[k], TN_BASE_OUTPUT, use->written))
      use->first_write = number;
}

/* Whether the step that reads the state writes the next one element by element over it. */
static bool in_place_pairs(const tn_step *step, const loop_state_use *use) {
  for (int32_t out = 0; out < step->n_out; out++) {
    if (!in_place_lies_in(&step->out[out], TN_BASE_OUTPUT, use->written)) continue;
    for (int32_t in = 0; in < step->n_in; in++)
      if (in_place_lies_in(&step->in[in], TN_BASE_SLOT, use->read) &&
          (!tn_group_is_inplace_pair(step->group, in, out) ||
           step->in[in].location.offset != use->read->offset ||
           step->out[out].location.offset != use->written->offset))
        return false;
  }
  return true;
}

bool tn_loop_state_is_in_place(const tn_program *p, const tn_loop_attributes *a, int64_t state) {
  loop_state_use use = {.read = in_place_input(p, a->sequences + a->before + state),
                        .written = in_place_next(p, state),
                        .last_read = -1,
                        .first_write = -1};
  if (use.read == NULL || use.written == NULL) return false;
  for (int32_t s = 0; s < p->n_steps; s++) in_place_visit(&p->steps[s], s, &use);
  if (use.first_write < use.last_read || use.first_write < 0) return false;
  return use.first_write > use.last_read || in_place_pairs(&p->steps[use.last_read], &use);
}
