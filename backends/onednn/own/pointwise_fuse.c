/* Joins instructions over floats, so that a value between two of them stays in the processor's registers:
 *
 *   (x op y) op2 z     for sums, differences, products, maxima and minima
 *   x op y ? z : w     for comparisons
 *
 * Only what is run for every tile, and only where nobody else wants the value between. */
#include "backends/onednn/own/pointwise_compile.h"

typedef struct fusion {
  tn_tile_compiler *c;
  int32_t *uses; /* of every virtual register */
} fusion;

static void count_uses(fusion *f) {
  const tn_tile_compiler *c = f->c;
  for (int32_t i = 0; i < c->n_vregs; i++) f->uses[i] = 0;
  for (int32_t i = 0; i < c->n_insns; i++)
    for (int32_t k = 0; k < TILE_INPUTS; k++)
      if (c->insns[i].in[k] != TILE_NONE) f->uses[c->insns[i].in[k]]++;
  for (int32_t i = 0; i < c->match->n_out; i++) f->uses[c->regs[c->match->out_number[i]]]++;
}

/* The instruction that makes operand k of this one for it alone; NULL: there is none, or it is no match. */
static tn_tile_insn *maker(const fusion *f, const tn_tile_insn *insn, int32_t k, int32_t low, int32_t high) {
  int32_t v = insn->in[k];
  if (v == TILE_NONE || f->uses[v] != 1) return NULL;
  for (tn_tile_insn *m = f->c->insns; m < insn; m++)
    if (m->out == v)
      return m->op >= low && m->op <= high && m->lane == TN_TILE_F32 && m->rate == TILE_PER_TILE ? m : NULL;
  return NULL;
}

static void take_input(tn_tile_insn *to, int32_t at, const tn_tile_insn *from, int32_t k) {
  to->in[at] = from->in[k];
  to->step[at] = from->step[k];
}

/* `first` makes operand k of `second`. */
static void join_pair(tn_tile_insn *first, tn_tile_insn *second, int32_t k) {
  int32_t op = second->op == TILE_SUB && k == 1 ? TILE_SUB_FROM : second->op;
  tn_tile_insn pair = *second;
  pair.op = TILE_PAIR;
  pair.op2 = (uint8_t)((first->op - TILE_ADD) * 16 + (op - TILE_ADD));
  take_input(&pair, 0, first, 0);
  take_input(&pair, 1, first, 1);
  take_input(&pair, 2, second, 1 - k);
  *second = pair;
  first->out = TILE_NONE;
}

static void join_pick(tn_tile_insn *compare, tn_tile_insn *where) {
  tn_tile_insn pick = *where;
  pick.op = TILE_PICK;
  pick.op2 = (uint8_t)(compare->op - TILE_EQ);
  take_input(&pick, 0, compare, 0);
  take_input(&pick, 1, compare, 1);
  take_input(&pick, 2, where, 1);
  take_input(&pick, 3, where, 2);
  *where = pick;
  compare->out = TILE_NONE;
}

static void fuse_one(const fusion *f, tn_tile_insn *insn) {
  tn_tile_insn *m = NULL;
  if (insn->lane != TN_TILE_F32 || insn->rate != TILE_PER_TILE) return;
  if (insn->op == TILE_WHERE && (m = maker(f, insn, 0, TILE_EQ, TILE_GE)) != NULL) {
    join_pick(m, insn);
    return;
  }
  if (insn->op < TILE_ADD || insn->op > TILE_MINIMUM) return;
  for (int32_t k = 0; k < 2; k++)
    if ((m = maker(f, insn, k, TILE_ADD, TILE_MINIMUM)) != NULL) {
      join_pair(m, insn, k);
      return;
    }
}

/* What was joined has no result, and what nobody uses is not made. */
static void sweep(const fusion *f) {
  tn_tile_compiler *c = f->c;
  int32_t n = 0;
  for (int32_t i = c->n_insns; i-- > 0;) {
    tn_tile_insn *insn = &c->insns[i];
    if (insn->out == TILE_NONE || f->uses[insn->out] > 0) continue;
    for (int32_t k = 0; k < TILE_INPUTS; k++)
      if (insn->in[k] != TILE_NONE) f->uses[insn->in[k]]--;
    insn->out = TILE_NONE;
  }
  for (int32_t i = 0; i < c->n_insns; i++)
    if (c->insns[i].out != TILE_NONE) c->insns[n++] = c->insns[i];
  c->n_insns = n;
}

/* A store of halves rounds anyway, so it may take what is not yet rounded. */
static void skip_rounding(tn_tile_compiler *c) {
  for (int32_t r = 0; r < c->match->n_out; r++) {
    int32_t *v = &c->regs[c->match->out_number[r]], dtype = c->match->out[r]->dtype;
    for (int32_t i = 0; i < c->n_insns && tn_tile_is_half(dtype); i++)
      if (c->insns[i].out == *v && c->insns[i].op == TILE_ROUND && c->insns[i].dtype == dtype) {
        *v = c->insns[i].in[0];
        break;
      }
  }
}

void tn_tile_fuse(tn_tile_compiler *c, int32_t *uses) {
  fusion f = {c, uses};
  skip_rounding(c);
  count_uses(&f);
  sweep(&f);
  for (int32_t i = 0; i < c->n_insns; i++)
    if (c->insns[i].out != TILE_NONE) fuse_one(&f, &c->insns[i]);
  sweep(&f);
}
