/* From nodes to instructions over virtual registers: how operands are read, and what each op becomes.
 * Each f16 or bf16 result of a node is rounded, although registers hold f32, so that numbers do not depend on
 * what shares a region. */
#include <string.h>

#include "backends/onednn/own/pointwise_compile.h"
#include "tenon/attributes.h"

/* ---- registers and instructions ---- */

static int32_t new_vreg(tn_tile_compiler *c, int32_t lane, int32_t rate, bool wide) {
  c->vregs[c->n_vregs] = (tn_tile_vreg){.lane = lane,
                                        .rate = rate,
                                        .wide = wide,
                                        .operand = TILE_NONE,
                                        .result = TILE_NONE,
                                        .map = TILE_NONE,
                                        .size = tn_tile_lane_size(lane),
                                        .reg = TILE_NONE};
  return c->n_vregs++;
}

static tn_tile_insn insn_of(uint8_t op, int32_t lane, int32_t dtype) {
  return (tn_tile_insn){.op = op,
                        .lane = (uint8_t)lane,
                        .dtype = (uint8_t)dtype,
                        .out = TILE_NONE,
                        .in = {TILE_NONE, TILE_NONE, TILE_NONE, TILE_NONE},
                        .map = TILE_NONE};
}

/* Appends an instruction that looks at memory or positions. */
static int32_t emit_access(tn_tile_compiler *c, tn_tile_insn insn, int32_t lane, int32_t rate, bool wide) {
  insn.rate = (uint8_t)rate;
  insn.wide = wide;
  insn.out = new_vreg(c, lane, rate, wide);
  c->insns[c->n_insns++] = insn;
  return insn.out;
}

/* Appends an instruction between registers: as wide as its widest operand, and run as often as any of them
 * changes. Returns the register of its result, in `lane`. */
static int32_t emit(tn_tile_compiler *c, tn_tile_insn insn, int32_t lane) {
  int32_t rate = TILE_PER_CHUNK;
  bool wide = false;
  for (int32_t k = 0; k < TILE_INPUTS; k++) {
    if (insn.in[k] == TILE_NONE) continue;
    const tn_tile_vreg *v = &c->vregs[insn.in[k]];
    insn.step[k] = v->wide;
    wide = wide || v->wide;
    rate = v->rate > rate ? v->rate : rate;
  }
  return emit_access(c, insn, lane, rate, wide);
}

static int32_t emit1(tn_tile_compiler *c, uint8_t op, int32_t dtype, int32_t x, int32_t lane) {
  tn_tile_insn insn = insn_of(op, c->vregs[x].lane, dtype);
  insn.in[0] = x;
  return emit(c, insn, lane);
}

static int32_t emit2(tn_tile_compiler *c, uint8_t op, int32_t x, int32_t y) {
  tn_tile_insn insn = insn_of(op, c->vregs[x].lane, 0);
  insn.in[0] = x;
  insn.in[1] = y;
  return emit(c, insn, c->vregs[x].lane);
}

static int32_t emit_fill(tn_tile_compiler *c, int32_t lane, uint64_t bits) {
  for (int32_t i = 0; i < c->n_insns; i++)
    if (c->insns[i].op == TILE_FILL && c->insns[i].lane == lane && c->insns[i].bits == bits)
      return c->insns[i].out;
  tn_tile_insn insn = insn_of(TILE_FILL, lane, 0);
  insn.bits = bits;
  return emit(c, insn, lane);
}

/* v as the result of a node of this dtype: rounded where registers are wider than the dtype. */
static int32_t rounded(tn_tile_compiler *c, int32_t v, int32_t dtype) {
  return tn_tile_is_half(dtype) ? emit1(c, TILE_ROUND, dtype, v, TN_TILE_F32) : v;
}

static int32_t emit_cast(tn_tile_compiler *c, int32_t v, int32_t dtype) {
  int32_t lane = tn_tile_lane(dtype);
  if (c->vregs[v].lane == lane && dtype != TN_BOOL) return v;
  return emit1(c, TILE_CAST, dtype, v, lane);
}

static int32_t emit_constant(tn_tile_compiler *c, double value, int32_t dtype) {
  float narrow = (float)value;
  uint64_t bits = 0;
  if (tn_tile_lane(dtype) == TN_TILE_F32) {
    memcpy(&bits, &narrow, sizeof narrow);
    return rounded(c, emit_fill(c, TN_TILE_F32, bits), dtype);
  }
  memcpy(&bits, &value, sizeof value);
  return emit_cast(c, emit_fill(c, TN_TILE_F64, bits), dtype);
}

/* ---- operands ---- */

static int32_t add_map(tn_tile_compiler *c, const tn_type *type, int32_t from, int32_t to) {
  int64_t steps[TN_MAX_RANK];
  tn_tile_steps(type, steps);
  c->maps[c->n_maps] = tn_tile_map_of(&c->space, type, steps, from, to);
  return c->n_maps++;
}

/* The operand's own memory, which follows the elements of a tile. */
static int32_t bind_operand(tn_tile_compiler *c, int32_t operand, int32_t map) {
  int32_t dtype = c->types[operand]->dtype, v = new_vreg(c, tn_tile_lane(dtype), TILE_PER_TILE, true);
  c->vregs[v].operand = operand;
  c->vregs[v].map = map;
  c->vregs[v].size = tn_dtype_size(dtype);
  return tn_tile_is_half(dtype) ? emit1(c, TILE_WIDEN, dtype, v, TN_TILE_F32) : v;
}

static int32_t emit_load(tn_tile_compiler *c, int32_t operand, uint8_t op, int32_t map, int64_t count) {
  int32_t dtype = c->types[operand]->dtype, lane = tn_tile_lane(dtype);
  int32_t rate = op == TILE_GATHER                      ? TILE_PER_TILE
                 : op == TILE_CYCLE || map == TILE_NONE ? TILE_PER_CHUNK
                                                        : TILE_PER_SEGMENT;
  tn_tile_insn insn = insn_of(op, lane, dtype);
  insn.view = operand;
  insn.map = map;
  insn.count = count;
  return emit_access(c, insn, lane, rate, op == TILE_GATHER || op == TILE_CYCLE);
}

static int32_t load_operand(tn_tile_compiler *c, int32_t operand) {
  const tn_type *type = c->types[operand];
  const tn_tile_space *s = &c->space;
  if (tn_tile_is_single(type)) return emit_load(c, operand, TILE_SPLAT, TILE_NONE, 1);
  if (tn_type_same_dims(type, &s->type)) return bind_operand(c, operand, TILE_NONE);
  int64_t cycle = tn_tile_cycle(s, type);
  if (s->first == 0 && cycle > 0 && cycle <= TILE_MOST && c->cycle % cycle == 0)
    return emit_load(c, operand, TILE_CYCLE, TILE_NONE, cycle);
  switch (tn_tile_manner(s, type, s->first)) {
  case TILE_STAYS: return emit_load(c, operand, TILE_SPLAT, add_map(c, type, 0, s->first), 1);
  case TILE_FOLLOWS: return bind_operand(c, operand, add_map(c, type, 0, s->first));
  case TILE_GOES_ROUND:
    return emit_load(c, operand, TILE_PERIOD, add_map(c, type, 0, s->first), s->axis[s->n_axes - 1].extent);
  default: return emit_load(c, operand, TILE_GATHER, add_map(c, type, 0, s->n_axes), 0);
  }
}

static int32_t reg_of(tn_tile_compiler *c, int32_t value) {
  if (c->regs[value] == TILE_NONE) c->regs[value] = load_operand(c, value);
  return c->regs[value];
}

/* ---- what each op becomes ---- */

enum {
  FLOATS = 1 << TN_TILE_F32 | 1 << TN_TILE_F64,
  WHOLE = 1 << TN_TILE_I32 | 1 << TN_TILE_I64,
  BYTES = 1 << TN_TILE_U8
};

typedef struct rule {
  const char *op;
  tn_status (*emit)(tn_tile_compiler *c, const tn_match_node *n, const struct rule *rule);
  uint8_t insn;
  uint8_t lanes; /* of the operands */
  bool exact;    /* of f16 operands it makes f16 results, without rounding */
} rule;

static const tn_type *type_in(const tn_tile_compiler *c, const tn_match_node *n, int32_t i) {
  return c->types[n->in[i]];
}

static void define(tn_tile_compiler *c, const tn_match_node *n, int32_t v) { c->regs[n->first_out] = v; }

/* One to three operands of one dtype, and a result of it, or bool for comparisons. */
static tn_status emit_plain(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  int32_t dtype = n->node->out[0].dtype;
  tn_tile_insn insn = insn_of(r->insn, 0, dtype);
  for (int32_t i = 0; i < n->node->n_in; i++) insn.in[i] = reg_of(c, n->in[i]);
  insn.lane = (uint8_t)c->vregs[insn.in[n->node->n_in - 1]].lane;
  int32_t v = emit(c, insn, tn_tile_lane(dtype));
  define(c, n, r->exact ? v : rounded(c, v, dtype));
  return TN_OK;
}

static tn_status emit_affine(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_affine_attributes *a = n->node->attributes;
  int32_t v = reg_of(c, n->in[0]), dtype = n->node->out[0].dtype;
  int32_t constant = tn_tile_is_half(dtype) ? TN_F32 : dtype;
  if (a->scale != 1) v = emit2(c, TILE_MUL, v, emit_constant(c, a->scale, constant));
  if (a->shift != 0) v = emit2(c, TILE_ADD, v, emit_constant(c, a->shift, constant));
  define(c, n, rounded(c, v, dtype));
  return TN_OK;
}

static tn_status emit_cast_node(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  int32_t from = type_in(c, n, 0)->dtype, to = n->node->out[0].dtype, v = reg_of(c, n->in[0]);
  if (from != to) v = rounded(c, emit_cast(c, v, to), to);
  define(c, n, v);
  return TN_OK;
}

static tn_status emit_broadcast(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  define(c, n, reg_of(c, n->in[0]));
  return TN_OK;
}

static tn_status emit_full(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_full_attributes *a = n->node->attributes;
  define(c, n, emit_constant(c, a->value, n->node->out[0].dtype));
  return TN_OK;
}

/* An instruction that knows the index of each element of `type` in it, counted by `steps`. */
static int32_t emit_indexed(tn_tile_compiler *c, tn_tile_insn insn, const tn_type *type, const int64_t *steps,
                            int32_t lane) {
  c->maps[c->n_maps] = tn_tile_map_of(&c->space, type, steps, 0, c->space.n_axes);
  insn.map = c->n_maps++;
  bool single = tn_tile_is_single(type);
  return emit_access(c, insn, lane, single ? TILE_PER_CHUNK : TILE_PER_TILE, !single);
}

static tn_status emit_iota(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_iota_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  int64_t steps[TN_MAX_RANK] = {0};
  steps[a->axis < 0 ? a->axis + type->rank : a->axis] = 1;
  int32_t v = emit_indexed(c, insn_of(TILE_INDEX, TN_TILE_I64, 0), type, steps, TN_TILE_I64);
  define(c, n, rounded(c, emit_cast(c, v, type->dtype), type->dtype));
  return TN_OK;
}

static tn_status emit_random(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  const tn_random_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  int64_t steps[TN_MAX_RANK];
  tn_tile_insn insn = insn_of(r->insn, tn_tile_lane(type->dtype), 0);
  insn.in[0] = reg_of(c, n->in[0]);
  if (n->node->n_in > 1 && n->in[1] >= 0) insn.in[1] = reg_of(c, n->in[1]);
  if (c->vregs[insn.in[0]].wide || (insn.in[1] >= 0 && c->vregs[insn.in[1]].wide))
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the iteration or block of %s is not a scalar",
                   n->node->op);
  insn.a = a->a;
  insn.b = a->b;
  insn.bits = (uint64_t)a->stream;
  insn.count = tn_type_count(type);
  tn_tile_steps(type, steps);
  define(c, n, rounded(c, emit_indexed(c, insn, type, steps, insn.lane), type->dtype));
  return TN_OK;
}

static tn_status emit_spread(tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  const tn_spread_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  int64_t steps[TN_MAX_RANK];
  if (tn_tile_is_single(type_in(c, n, 0))) return emit_broadcast(c, n, r);
  if (n->in[0] >= c->match->n_in)
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the values of spread are made in the same region");
  tn_tile_insn insn = insn_of(r->insn, tn_tile_lane(type->dtype), type->dtype);
  insn.view = n->in[0];
  insn.table = c->n_tables;
  insn.n_table = (int32_t)a->starts.n;
  memcpy(c->tables + c->n_tables, a->starts.v, (size_t)a->starts.n * sizeof(int64_t));
  memcpy(c->tables + c->n_tables + a->starts.n, a->index.v, (size_t)a->starts.n * sizeof(int64_t));
  c->n_tables += 2 * (int32_t)a->starts.n;
  tn_tile_steps(type, steps);
  define(c, n, emit_indexed(c, insn, type, steps, insn.lane));
  return TN_OK;
}

static const rule rules[] = {
    {"neg", emit_plain, TILE_NEG, FLOATS | WHOLE, true},
    {"abs", emit_plain, TILE_ABS, FLOATS | WHOLE, true},
    {"sign", emit_plain, TILE_SIGN, FLOATS | WHOLE, true},
    {"exp", emit_plain, TILE_EXP, FLOATS, false},
    {"log", emit_plain, TILE_LOG, FLOATS, false},
    {"sqrt", emit_plain, TILE_SQRT, FLOATS, false},
    {"rsqrt", emit_plain, TILE_RSQRT, FLOATS, false},
    {"reciprocal", emit_plain, TILE_RECIPROCAL, FLOATS, false},
    {"tanh", emit_plain, TILE_TANH, FLOATS, false},
    {"sigmoid", emit_plain, TILE_SIGMOID, FLOATS, false},
    {"erf", emit_plain, TILE_ERF, FLOATS, false},
    {"sin", emit_plain, TILE_SIN, FLOATS, false},
    {"cos", emit_plain, TILE_COS, FLOATS, false},
    {"floor", emit_plain, TILE_FLOOR, FLOATS, true},
    {"add", emit_plain, TILE_ADD, FLOATS | WHOLE, false},
    {"sub", emit_plain, TILE_SUB, FLOATS | WHOLE, false},
    {"mul", emit_plain, TILE_MUL, FLOATS | WHOLE, false},
    {"div", emit_plain, TILE_DIV, FLOATS | WHOLE, false},
    {"maximum", emit_plain, TILE_MAXIMUM, FLOATS | WHOLE, true},
    {"minimum", emit_plain, TILE_MINIMUM, FLOATS | WHOLE, true},
    {"pow", emit_plain, TILE_POW, FLOATS, false},
    {"affine", emit_affine, TILE_MUL, FLOATS, false},
    {"eq", emit_plain, TILE_EQ, FLOATS | WHOLE | BYTES, true},
    {"ne", emit_plain, TILE_NE, FLOATS | WHOLE | BYTES, true},
    {"lt", emit_plain, TILE_LT, FLOATS | WHOLE | BYTES, true},
    {"le", emit_plain, TILE_LE, FLOATS | WHOLE | BYTES, true},
    {"gt", emit_plain, TILE_GT, FLOATS | WHOLE | BYTES, true},
    {"ge", emit_plain, TILE_GE, FLOATS | WHOLE | BYTES, true},
    {"is_finite", emit_plain, TILE_IS_FINITE, FLOATS | WHOLE | BYTES, true},
    {"and", emit_plain, TILE_AND, BYTES, true},
    {"or", emit_plain, TILE_OR, BYTES, true},
    {"not", emit_plain, TILE_NOT, BYTES, true},
    {"where", emit_plain, TILE_WHERE, FLOATS | WHOLE | BYTES, true},
    {"cast", emit_cast_node, TILE_CAST, FLOATS | WHOLE | BYTES, true},
    {"broadcast", emit_broadcast, TILE_FILL, FLOATS | WHOLE | BYTES, true},
    {"full", emit_full, TILE_FILL, FLOATS | WHOLE | BYTES, true},
    {"iota", emit_iota, TILE_INDEX, FLOATS | WHOLE | BYTES, true},
    {"spread", emit_spread, TILE_SPREAD, FLOATS | WHOLE | BYTES, true},
    {"random_uniform", emit_random, TILE_UNIFORM, FLOATS | WHOLE, true},
    {"random_normal", emit_random, TILE_NORMAL, FLOATS | WHOLE, true},
};

static tn_status check_operands(const tn_tile_compiler *c, const tn_match_node *n, const rule *r) {
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (n->in[i] < 0) continue;
    const tn_type *type = type_in(c, n, i);
    if (!(r->lanes >> tn_tile_lane(type->dtype) & 1))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s of %s is not among its ops", r->op,
                     tn_dtype_name(type->dtype));
    if (r->emit != emit_spread && !tn_tile_broadcasts(type, &c->space.type))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "operand %d of %s does not broadcast to the result",
                     (int)i, r->op);
  }
  if (tn_tile_broadcasts(&n->node->out[0], &c->space.type)) return TN_OK;
  return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s does not broadcast to the result", r->op);
}

static tn_status emit_node(tn_tile_compiler *c, const tn_match_node *n) {
  const rule *r = NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && r == NULL; i++)
    if (strcmp(rules[i].op, n->node->op) == 0) r = &rules[i];
  if (r == NULL) return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s is not among its ops", n->node->op);
  tn_status status = check_operands(c, n, r);
  return status != TN_OK ? status : r->emit(c, n, r);
}

tn_status tn_tile_emit(tn_tile_compiler *c) {
  const tn_match *m = c->match;
  for (int32_t i = 0; i < m->n_out; i++)
    if (!tn_type_same_dims(m->out[i], &c->space.type))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the results differ in their dimensions");
  for (int32_t i = 0; i < m->n_nodes; i++) {
    tn_status status = emit_node(c, &m->nodes[i]);
    if (status != TN_OK) return status;
  }
  return TN_OK;
}

void tn_tile_emit_store(tn_tile_compiler *c, int32_t result) {
  int32_t dtype = c->match->out[result]->dtype;
  tn_tile_insn insn = insn_of(TILE_STORE, tn_tile_lane(dtype), dtype);
  insn.in[0] = c->regs[c->match->out_number[result]];
  insn.step[0] = c->vregs[insn.in[0]].wide;
  insn.view = result;
  insn.rate = TILE_PER_TILE;
  c->insns[c->n_insns++] = insn;
}
