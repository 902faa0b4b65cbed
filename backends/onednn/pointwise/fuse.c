/* Joins instructions over floats, so that a value between two of them stays in the processor's registers:
 *
 *   (x op y) op2 z     for sums, differences, products, maxima and minima
 *   x op y ? z : w     for comparisons
 *
 * Only instructions that run for every tile, and only where the value between has no other use. */
#include "backends/onednn/pointwise/compile.h"

typedef struct fusion {
  tn_pw_region *r;
  int32_t *uses; /* of every value */
} fusion;

static void fuse_count_uses(fusion *f) {
  const tn_pw_region *r = f->r;
  for (int32_t i = 0; i < r->n_values; i++) f->uses[i] = 0;
  for (int32_t i = 0; i < r->n_insns; i++)
    for (int32_t k = 0; k < TN_PW_INPUTS; k++)
      if (r->insns[i].in[k] != TN_PW_NONE) f->uses[r->insns[i].in[k]]++;
  for (int32_t i = 0; i < r->match->n_out; i++) f->uses[r->of[r->match->out_number[i]]]++;
}

static bool fuse_is_per_tile(const fusion *f, const tn_pw_insn *insn) {
  return f->r->values[insn->out].rate == TN_PW_PER_ELEMENT;
}

/* The instruction that makes operand k of this one for it alone; NULL: it has other uses, or another op. */
static tn_pw_insn *fuse_maker(const fusion *f, const tn_pw_insn *insn, int32_t k, int32_t low, int32_t high) {
  int32_t v = insn->in[k];
  if (v == TN_PW_NONE || f->uses[v] != 1) return NULL;
  for (tn_pw_insn *m = f->r->insns; m < insn; m++)
    if (m->out == v)
      return m->op >= low && m->op <= high && m->lane == TN_LANE_F32 && fuse_is_per_tile(f, m) ? m : NULL;
  return NULL;
}

static void fuse_take_input(tn_pw_insn *to, int32_t at, const tn_pw_insn *from, int32_t k) {
  to->in[at] = from->in[k];
}

/* `first` makes operand k of `second`. */
static void fuse_join_pair(tn_pw_insn *first, tn_pw_insn *second, int32_t k) {
  int32_t op = second->op == TN_PW_SUB && k == 1 ? TILE_PAIR_SUB_FROM : second->op - TN_PW_ADD;
  tn_pw_insn pair = *second;
  pair.op = TILE_PAIR;
  pair.op2 = (uint8_t)((first->op - TN_PW_ADD) * 16 + op);
  fuse_take_input(&pair, 0, first, 0);
  fuse_take_input(&pair, 1, first, 1);
  fuse_take_input(&pair, 2, second, 1 - k);
  *second = pair;
  first->out = TN_PW_NONE;
}

static void fuse_join_pick(tn_pw_insn *compare, tn_pw_insn *where) {
  tn_pw_insn pick = *where;
  pick.op = TILE_PICK;
  pick.op2 = (uint8_t)(compare->op - TN_PW_EQ);
  fuse_take_input(&pick, 0, compare, 0);
  fuse_take_input(&pick, 1, compare, 1);
  fuse_take_input(&pick, 2, where, 1);
  fuse_take_input(&pick, 3, where, 2);
  *where = pick;
  compare->out = TN_PW_NONE;
}

static void fuse_one(const fusion *f, tn_pw_insn *insn) {
  tn_pw_insn *m = NULL;
  if (insn->lane != TN_LANE_F32 || !fuse_is_per_tile(f, insn)) return;
  if (insn->op == TN_PW_WHERE && (m = fuse_maker(f, insn, 0, TN_PW_EQ, TN_PW_GE)) != NULL) {
    fuse_join_pick(m, insn);
    return;
  }
  if (insn->op < TN_PW_ADD || insn->op > TN_PW_MINIMUM) return;
  for (int32_t k = 0; k < 2; k++)
    if ((m = fuse_maker(f, insn, k, TN_PW_ADD, TN_PW_MINIMUM)) != NULL) {
      fuse_join_pair(m, insn, k);
      return;
    }
}

/* Removes instructions that were joined, and those whose results have no use. */
static void fuse_sweep(const fusion *f) {
  tn_pw_region *r = f->r;
  int32_t n = 0;
  for (int32_t i = r->n_insns; i-- > 0;) {
    tn_pw_insn *insn = &r->insns[i];
    if (insn->out == TN_PW_NONE || f->uses[insn->out] > 0) continue;
    for (int32_t k = 0; k < TN_PW_INPUTS; k++)
      if (insn->in[k] != TN_PW_NONE) f->uses[insn->in[k]]--;
    insn->out = TN_PW_NONE;
  }
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].out != TN_PW_NONE) r->insns[n++] = r->insns[i];
  r->n_insns = n;
}

/* A store of halves rounds anyway, so it may take the value before rounding. */
static void fuse_skip_rounding(tn_pw_region *r) {
  for (int32_t k = 0; k < r->match->n_out; k++) {
    int32_t *v = &r->of[r->match->out_number[k]], dtype = r->match->out[k]->dtype;
    for (int32_t i = 0; i < r->n_insns && !tn_lane_is_stored(dtype); i++)
      if (r->insns[i].out == *v && r->insns[i].op == TN_PW_ROUND && r->insns[i].dtype == dtype) {
        *v = r->insns[i].in[0];
        break;
      }
  }
}

void tn_tile_fuse(tn_pw_region *r, int32_t *uses) {
  fusion f = {r, uses};
  fuse_skip_rounding(r);
  fuse_count_uses(&f);
  fuse_sweep(&f);
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].out != TN_PW_NONE) fuse_one(&f, &r->insns[i]);
  fuse_sweep(&f);
}
