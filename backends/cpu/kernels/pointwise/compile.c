/* From a match to a program over tiles: operands that lie as the iteration space does are registers
 * themselves. */
#include "backends/cpu/kernels/pointwise/program.h"

#include <string.h>

/* Other loads copy into a register: they convert, or repeat. */
static void compile_bind_operands(tn_pw_region *r) {
  int32_t n = 0;
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    if (insn->op == TN_PW_LOAD && tn_lane_is_stored(insn->dtype) &&
        tn_pw_access_of(&r->maps[insn->map]) == TN_PW_SAME)
      tn_pw_bind(r, insn->out, insn->view, TN_PW_NONE);
    else
      r->insns[n++] = *insn;
  }
  r->n_insns = n;
}

static void compile_fill_insns(const tn_pw_region *r, tn_pw_insn *insns) {
  memcpy(insns, r->insns, (size_t)r->n_insns * sizeof *insns);
  for (int32_t i = 0; i < r->n_insns; i++) {
    insns[i].out = tn_pw_register(r, insns[i].out);
    for (int32_t k = 0; k < TN_PW_INPUTS; k++) insns[i].in[k] = tn_pw_register(r, insns[i].in[k]);
  }
}

static tn_status compile_region(tn_pw_region *r, tn_pw_program **program) {
  const tn_pw_machine machine = {.program = sizeof(tn_pw_program),
                                 .insn = sizeof(tn_pw_insn),
                                 .most = TN_TILE,
                                 .least = TN_CPU_PW_LEAST_TILE,
                                 .multiple = 1,
                                 .buffer = TN_CPU_PW_BUFFER};
  compile_bind_operands(r);
  tn_pw_schedule(r);
  tn_pw_place(r, true);
  tn_status status = tn_pw_assign(r, &machine, program);
  if (status == TN_OK) compile_fill_insns(r, (*program)->insns);
  return status;
}

tn_status tn_cpu_pw_compile(const void *handle, const tn_match *match, tn_pw_program **program) {
  tn_pw_region r;
  tn_status status = tn_pw_build(handle, match, NULL, &r);
  if (status == TN_OK) status = compile_region(&r, program);
  tn_pw_drop(&r);
  return status;
}
