/* core/compile/kernels/choice.c: copies of variants. */
#include "core/compile/kernels/choice.h"

/* NULL rules mean row-major and stay NULL. */
static tn_status copy_layout_rules(tn_arena *arena, const tn_operand_layout *rules, int32_t n,
                                   const tn_operand_layout **copy) {
  *copy = rules == NULL ? NULL : tn_arena_copy(arena, rules, (size_t)n * sizeof *rules);
  return rules != NULL && *copy == NULL ? TN_ENOMEM : TN_OK;
}

tn_status tn_choice_copy(tn_arena *arena, const tn_match *m, const tn_choice *from, tn_choice *to) {
  *to = *from;
  to->name = tn_arena_strdup(arena, from->name);
  to->inplace = tn_arena_copy(arena, from->inplace, (size_t)from->n_inplace * sizeof *from->inplace);
  to->in_layout = tn_arena_alloc(arena, (size_t)m->n_in * sizeof *to->in_layout);
  to->out_layout = tn_arena_alloc(arena, (size_t)m->n_out * sizeof *to->out_layout);
  if (to->name == NULL || to->inplace == NULL || to->in_layout == NULL || to->out_layout == NULL)
    return TN_ENOMEM;
  TN_TRY(copy_layout_rules(arena, from->in_rule, m->n_in, &to->in_rule));
  return copy_layout_rules(arena, from->out_rule, m->n_out, &to->out_rule);
}
