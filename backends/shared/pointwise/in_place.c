/* Where results are written, and which operands they may replace in memory (ir.h). */
#include "backends/shared/pointwise/ir.h"

void tn_pw_bind(tn_pw_region *r, int32_t value, int32_t operand, int32_t map) {
  r->values[value].operand = operand;
  r->values[value].map = map;
}

static int32_t in_place_value_of(const tn_pw_region *r, int32_t result) {
  return r->of[r->match->out_number[result]];
}

/* The position of the last instruction that reads an operand's memory; TN_PW_NONE: the operand is not read;
 * TN_PW_LATER: it is read at other elements than the one at hand, or by a store at the end. */
static int32_t in_place_last_read(const tn_pw_region *r, int32_t operand) {
  int32_t last = TN_PW_NONE;
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    if (insn->op == TN_PW_STORE || insn->view != operand) continue;
    if (insn->op == TN_PW_SPREAD) return TN_PW_LATER;
    last = i;
  }
  for (int32_t v = 0; v < r->n_values; v++) {
    if (r->values[v].operand != operand) continue;
    if (r->values[v].last_use > last) last = r->values[v].last_use;
    for (int32_t k = 0; k < r->match->n_out; k++)
      if (in_place_value_of(r, k) == v) return TN_PW_LATER;
  }
  return last;
}

static bool in_place_may_reuse(const tn_pw_region *r, int32_t operand, int32_t result) {
  return r->match->in[operand] != NULL && r->of[operand] != TN_PW_NONE &&
         tn_type_equal(r->match->in[operand], r->match->out[result]);
}

/* Adds the pairs of a result that are safe if its memory is written at position `made`. */
static bool in_place_add_pairs(tn_pw_region *r, int32_t result, int32_t made) {
  int32_t before = r->n_inplace;
  for (int32_t i = 0; i < r->match->n_in; i++) {
    if (!in_place_may_reuse(r, i, result) || in_place_last_read(r, i) > made) continue;
    r->inplace[r->n_inplace][0] = i;
    r->inplace[r->n_inplace++][1] = result;
  }
  return r->n_inplace > before;
}

/* A result can be written by the instruction that makes it, if no other result has that value, and memory
 * holds lanes. */
static bool in_place_can_be_direct(const tn_pw_region *r, int32_t result) {
  const tn_pw_value *v = &r->values[in_place_value_of(r, result)];
  return v->rate == TN_PW_PER_ELEMENT && v->operand == TN_PW_NONE && v->result == TN_PW_NONE &&
         tn_lane_is_stored(r->match->out[result]->dtype);
}

static void in_place_store(tn_pw_region *r, int32_t result) {
  int32_t dtype = r->match->out[result]->dtype;
  tn_pw_insn insn = tn_pw_insn_of(TN_PW_STORE, tn_lane_of(dtype), dtype);
  insn.in[0] = in_place_value_of(r, result);
  insn.view = result;
  r->insns[r->n_insns++] = insn;
}

/* Decides for each result between being written where it is made and being stored at the end, when every
 * operand has been read. The latter only where it is the price of sharing memory. */
void tn_pw_place(tn_pw_region *r, bool may_be_direct) {
  const int32_t end = TN_PW_LATER - 1;
  for (int32_t k = 0; k < r->match->n_out; k++) {
    tn_pw_value *v = &r->values[in_place_value_of(r, k)];
    bool direct = may_be_direct && in_place_can_be_direct(r, k);
    if (direct && !in_place_add_pairs(r, k, v->made))
      direct = !in_place_add_pairs(r, k, end);
    else if (!direct)
      in_place_add_pairs(r, k, end);
    if (direct) v->result = k;
  }
  for (int32_t k = 0; k < r->match->n_out; k++)
    if (r->values[in_place_value_of(r, k)].result != k) in_place_store(r, k);
  r->end[TN_PW_PER_ELEMENT] = r->n_insns;
  tn_pw_find_uses(r);
}
