/* From the shared list of instructions to those of tiles: operands along segments, and which values are
 * narrow. */

#include "backends/onednn/pointwise/compile.h"

/* ---- operands ---- */

/* The operand's own memory, which follows the elements of a tile. */
static void lower_bind(tn_pw_region *r, tn_pw_insn insn, int32_t map) {
  int32_t memory = insn.out, operand = insn.view;
  if (!tn_lane_is_stored(insn.dtype)) {
    memory = tn_pw_new_value(r, insn.lane, TN_PW_PER_ELEMENT);
    insn.op = TILE_WIDEN;
    insn.in[0] = memory;
    insn.view = insn.map = TN_PW_NONE;
    tn_pw_append(r, insn, insn.lane, TN_PW_PER_ELEMENT);
  }
  tn_pw_bind(r, memory, operand, map);
}

/* A narrow load for every segment. */
static void lower_narrow(tn_pw_region *r, tn_pw_insn insn, int32_t op, int32_t rate, int64_t count) {
  insn.op = (uint8_t)op;
  insn.count = count;
  r->values[insn.out].narrow = true;
  tn_pw_append(r, insn, insn.lane, rate);
}

/* `rate`: the operand is the same for all segments, or each begins at its own elements. */
static void lower_cycle(tn_pw_region *r, tn_pw_insn insn, int64_t cycle, int32_t rate) {
  insn.op = TILE_CYCLE;
  insn.count = cycle;
  if (rate == TN_PW_ONCE) insn.map = TN_PW_NONE;
  tn_pw_append(r, insn, insn.lane, rate);
}

static void lower_gather(tn_pw_region *r, tn_pw_insn insn) {
  insn.op = TILE_GATHER;
  tn_pw_append(r, insn, insn.lane, TN_PW_PER_ELEMENT);
}

/* An operand that is repeated to the region's dimensions. */
static void lower_repeated(tn_tile_compiler *c, tn_pw_insn insn, const tn_type *type) {
  tn_pw_region *r = &c->region;
  const tn_pw_space *s = &r->space;
  int64_t steps[TN_MAX_RANK], cycle = tn_tile_cycle(s, type, c->first);
  int32_t manner = tn_tile_manner(s, type, c->first);
  bool cycles = cycle > 0 && cycle <= TILE_MOST && c->cycle % cycle == 0;
  if (c->first == 0 && cycles) {
    lower_cycle(r, insn, cycle, TN_PW_ONCE);
    return;
  }
  if (manner == TILE_WANDERS || (manner == TILE_REPEATS && !cycles)) {
    lower_gather(r, insn);
    return;
  }
  tn_pw_steps(type, steps);
  r->maps[insn.map] = tn_pw_map_of(s, type, steps, 0, c->first);
  if (manner == TILE_FOLLOWS) lower_bind(r, insn, insn.map);
  if (manner == TILE_REPEATS) lower_cycle(r, insn, cycle, TN_PW_PER_SEGMENT);
  if (manner == TILE_STAYS) lower_narrow(r, insn, TILE_SPLAT, TN_PW_PER_SEGMENT, 1);
  if (manner == TILE_GOES_ROUND)
    lower_narrow(r, insn, TILE_PERIOD, TN_PW_PER_SEGMENT, s->axis[s->n_axes - 1].extent);
}

static void lower_load(tn_tile_compiler *c, tn_pw_insn insn) {
  const tn_type *type = c->region.types[insn.view];
  if (tn_pw_is_single(type))
    lower_narrow(&c->region, insn, TILE_SPLAT, TN_PW_ONCE, 1);
  else if (tn_type_same_dims(type, &c->region.space.type))
    lower_bind(&c->region, insn, TN_PW_NONE);
  else
    lower_repeated(c, insn, type);
}

/* ---- arithmetic ---- */

/* As narrow as its operands, and run as often as any of them changes. */
static void lower_compute(tn_pw_region *r, tn_pw_insn insn) {
  bool narrow = true;
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn.in[k] != TN_PW_NONE) narrow = narrow && r->values[insn.in[k]].narrow;
  int32_t v = tn_pw_append(r, insn, 0, TN_PW_ONCE);
  r->values[v].narrow = narrow;
}

static int32_t lower_constant(tn_pw_region *r, double value, int32_t lane) {
  int32_t v = tn_pw_constant(r, lane, tn_pw_bits_of(value, lane == TN_LANE_F32 ? TN_F32 : TN_F64));
  r->values[v].narrow = true;
  return v;
}

/* x op a constant. */
static int32_t lower_with_constant(tn_pw_region *r, int32_t op, int32_t x, double value, int32_t out) {
  int32_t lane = r->values[x].lane;
  tn_pw_insn insn = tn_pw_insn_of(op, lane, 0);
  insn.in[0] = x;
  insn.in[1] = lower_constant(r, value, lane);
  insn.out = out != TN_PW_NONE ? out : tn_pw_new_value(r, lane, TN_PW_ONCE);
  lower_compute(r, insn);
  return insn.out;
}

/* Every use of one value becomes one of another: in the `n` instructions that follow, and as a result. */
static void lower_replace(tn_pw_region *r, tn_pw_insn *rest, int32_t n, int32_t from, int32_t to) {
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < TN_PW_INPUTS; k++)
      if (rest[i].in[k] == from) rest[i].in[k] = to;
  for (int32_t i = 0; i < r->n_numbers; i++)
    if (r->of[i] == from) r->of[i] = to;
}

/* A product and a sum, without those that change nothing. `rest`: the n instructions that follow. */
static void lower_affine(tn_pw_region *r, const tn_pw_insn *affine, tn_pw_insn *rest, int32_t n) {
  int32_t x = affine->in[0];
  bool scaled = affine->a != 1, shifted = affine->b != 0;
  if (scaled) x = lower_with_constant(r, TN_PW_MUL, x, affine->a, shifted ? TN_PW_NONE : affine->out);
  if (shifted) x = lower_with_constant(r, TN_PW_ADD, x, affine->b, affine->out);
  if (!scaled && !shifted) lower_replace(r, rest, n, affine->out, x);
}

/* ---- the list ---- */

static bool lower_is_drawn(const tn_pw_region *r, const tn_pw_insn *insn) {
  bool drawn = insn->op == TN_PW_UNIFORM || insn->op == TN_PW_NORMAL || insn->op == TN_PW_SPREAD;
  return drawn && r->values[insn->out].rate == TN_PW_PER_ELEMENT;
}

/* Numbers that depend on the position alone come first, so that the others follow each other and become one
 * unit of code (schedule.c keeps the order within a rate). */
static void lower_draw_first(tn_pw_region *r) {
  tn_pw_insn *sorted = r->spare;
  int32_t n = 0;
  for (int32_t drawn = 1; drawn >= 0; drawn--)
    for (int32_t i = 0; i < r->n_insns; i++)
      if (lower_is_drawn(r, &r->insns[i]) == drawn) sorted[n++] = r->insns[i];
  r->spare = r->insns;
  r->insns = sorted;
}

static void lower_position(tn_pw_region *r, tn_pw_insn insn) {
  r->values[insn.out].narrow = r->values[insn.out].rate == TN_PW_ONCE;
  tn_pw_append(r, insn, 0, r->values[insn.out].rate);
}

void tn_tile_lower(tn_tile_compiler *c) {
  tn_pw_region *r = &c->region;
  tn_pw_insn *from = r->insns;
  int32_t n = r->n_insns;
  r->insns = r->spare;
  r->spare = from;
  r->n_insns = 0;
  for (int32_t i = 0; i < n; i++) switch (from[i].op) {
    case TN_PW_LOAD: lower_load(c, from[i]); break;
    case TN_PW_AFFINE: lower_affine(r, &from[i], &from[i + 1], n - i - 1); break;
    case TN_PW_INDEX:
    case TN_PW_SPREAD:
    case TN_PW_UNIFORM:
    case TN_PW_NORMAL: lower_position(r, from[i]); break;
    default: lower_compute(r, from[i]); break;
    }
  lower_draw_first(r);
}
