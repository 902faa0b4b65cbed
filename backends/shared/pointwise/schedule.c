/* The order of instructions by how often they run, and how long values live (ir.h). */
#include "backends/shared/pointwise/ir.h"

static int32_t schedule_rate(const tn_pw_region *r, const tn_pw_insn *insn) {
  return insn->out == TN_PW_NONE ? TN_PW_PER_ELEMENT : r->values[insn->out].rate;
}

/* In their old order within a rate. */
static void schedule_sort(tn_pw_region *r) {
  tn_pw_insn *sorted = r->spare;
  int32_t n = 0;
  for (int32_t rate = 0; rate < TN_PW_RATES; rate++) {
    for (int32_t i = 0; i < r->n_insns; i++)
      if (schedule_rate(r, &r->insns[i]) == rate) sorted[n++] = r->insns[i];
    r->end[rate] = n;
  }
  r->spare = r->insns;
  r->insns = sorted;
}

/* Values for instructions that run more often stay alive, since those run again and again. */
void tn_pw_find_uses(tn_pw_region *r) {
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    if (insn->out != TN_PW_NONE) r->values[insn->out].made = r->values[insn->out].last_use = i;
    for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
      if (insn->in[k] == TN_PW_NONE) continue;
      tn_pw_value *v = &r->values[insn->in[k]];
      v->last_use = v->rate < schedule_rate(r, insn) ? TN_PW_LATER : i;
    }
  }
}

void tn_pw_schedule(tn_pw_region *r) {
  schedule_sort(r);
  tn_pw_find_uses(r);
}
