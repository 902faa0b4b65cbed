/* Which loop does an instruction, on which instruction set. */
#include "backends/onednn/pointwise/program.h"

static tn_tile_fn resolve_arithmetic(const tn_tile_insn *insn, int32_t isa) {
  tn_tile_fn fn = NULL;
  if (insn->lane == TN_LANE_F32) fn = TN_LOOPS_PICK_AT(tn_tile_f32, isa)->f32[insn->op];
  if (insn->lane == TN_LANE_F32 && fn == NULL) fn = TN_LOOPS_PICK_AT(tn_tile_math, isa)->f32[insn->op];
  return fn != NULL ? fn : TN_LOOPS_PICK_AT(tn_tile_lanes, isa)->op[insn->lane][insn->op];
}

static bool resolve_looks_at_memory(const tn_tile_insn *insn) {
  return insn->op == TN_PW_SPREAD || (insn->op >= TILE_SPLAT && insn->op <= TILE_CYCLE);
}

bool tn_tile_resolve(tn_tile_insn *insn, int32_t isa) {
  const tn_tile_loops *f32 = TN_LOOPS_PICK_AT(tn_tile_f32, isa);
  const tn_tile_lane_loops *lanes = TN_LOOPS_PICK_AT(tn_tile_lanes, isa);
  int32_t half = insn->dtype == TN_F16;
  insn->random = TN_LOOPS_PICK_AT(tn_tile_random, isa);
  if (resolve_looks_at_memory(insn) && !tn_lane_is_stored(insn->dtype)) insn->widen = f32->widen[half];
  switch (insn->op) {
  case TILE_PAIR: insn->fn = f32->pair[insn->op2 / 16][insn->op2 % 16]; break;
  case TILE_PICK: insn->fn = f32->pick[insn->op2]; break;
  case TN_PW_CAST: insn->fn = lanes->cast[insn->lane][insn->dtype]; break;
  case TN_PW_ROUND: insn->fn = f32->round[half]; break;
  case TILE_WIDEN: insn->fn = f32->load[half]; break;
  case TN_PW_STORE:
    insn->fn = tn_lane_is_stored(insn->dtype) ? lanes->copy[insn->lane] : f32->narrow[half];
    break;
  default:
    insn->fn = insn->op < TN_PW_COMPUTED ? resolve_arithmetic(insn, isa) : tn_tile_access(insn->op);
    break;
  }
  return insn->fn != NULL;
}
