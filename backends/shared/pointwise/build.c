/* From a match to instructions (ir.h): the op table, legality, operands, and the instructions of each op. */
#include "backends/shared/pointwise/ir.h"

#include <string.h>

#include "backends/shared/half.h"
#include "backends/shared/saturate.h"
#include "tenon/attributes.h"

/* ---- instructions and values ---- */

tn_pw_insn tn_pw_insn_of(int32_t op, int32_t lane, int32_t dtype) {
  return (tn_pw_insn){.op = (uint8_t)op,
                      .lane = (uint8_t)lane,
                      .dtype = (uint8_t)dtype,
                      .out = TN_PW_NONE,
                      .in = {TN_PW_NONE, TN_PW_NONE, TN_PW_NONE, TN_PW_NONE},
                      .view = TN_PW_NONE,
                      .map = TN_PW_NONE};
}

int32_t tn_pw_new_value(tn_pw_region *r, int32_t lane, int32_t rate) {
  r->values[r->n_values] = (tn_pw_value){.lane = (uint8_t)lane,
                                         .rate = (uint8_t)rate,
                                         .operand = TN_PW_NONE,
                                         .result = TN_PW_NONE,
                                         .map = TN_PW_NONE,
                                         .reg = TN_PW_NONE};
  return r->n_values++;
}

int32_t tn_pw_append(tn_pw_region *r, tn_pw_insn insn, int32_t lane, int32_t rate) {
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn.in[k] != TN_PW_NONE && r->values[insn.in[k]].rate > rate) rate = r->values[insn.in[k]].rate;
  if (insn.out == TN_PW_NONE) insn.out = tn_pw_new_value(r, lane, rate);
  r->values[insn.out].rate = (uint8_t)rate;
  r->insns[r->n_insns++] = insn;
  return insn.out;
}

int32_t tn_pw_constant(tn_pw_region *r, int32_t lane, uint64_t bits) {
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].op == TN_PW_CONSTANT && r->insns[i].lane == lane && r->insns[i].bits == bits)
      return r->insns[i].out;
  tn_pw_insn insn = tn_pw_insn_of(TN_PW_CONSTANT, lane, 0);
  insn.bits = bits;
  return tn_pw_append(r, insn, lane, TN_PW_ONCE);
}

static uint64_t build_integer_of(double value, int32_t dtype) {
  switch (dtype) {
  case TN_BOOL: return value != 0;
  case TN_U8: return tn_u8_of_f64(value);
  case TN_I8: return (uint8_t)tn_i8_of_f64(value);
  case TN_I32: return (uint32_t)tn_i32_of_f64(value);
  default: return (uint64_t)tn_i64_of_f64(value);
  }
}

uint64_t tn_pw_bits_of(double value, int32_t dtype) {
  float single = (float)value;
  uint64_t bits = 0;
  if (dtype == TN_F16) single = tn_f32_of_f16(tn_f16_of_f32(single));
  if (dtype == TN_BF16) single = tn_f32_of_bf16(tn_bf16_of_f32(single));
  switch (tn_lane_of(dtype)) {
  case TN_LANE_F64: memcpy(&bits, &value, sizeof value); return bits;
  case TN_LANE_F32: return tn_bits_of_f32(single);
  default: return build_integer_of(value, dtype);
  }
}

static int32_t build_unary(tn_pw_region *r, int32_t op, int32_t dtype, int32_t x, int32_t lane) {
  tn_pw_insn insn = tn_pw_insn_of(op, r->values[x].lane, dtype);
  insn.in[0] = x;
  return tn_pw_append(r, insn, lane, TN_PW_ONCE);
}

/* x as the result of a node of this dtype: rounded where its lane is wider. */
static int32_t build_rounded(tn_pw_region *r, int32_t x, int32_t dtype) {
  return tn_lane_is_stored(dtype) ? x : build_unary(r, TN_PW_ROUND, dtype, x, TN_LANE_F32);
}

static int32_t build_cast(tn_pw_region *r, int32_t x, int32_t dtype) {
  int32_t lane = tn_lane_of(dtype);
  if (r->values[x].lane != lane || dtype == TN_BOOL) x = build_unary(r, TN_PW_CAST, dtype, x, lane);
  return build_rounded(r, x, dtype);
}

/* ---- operands ---- */

/* Appends an instruction that looks along a map: of a tensor of this type, or of the indices in it. */
static int32_t build_access(tn_pw_region *r, tn_pw_insn insn, const tn_type *type, tn_pw_map map) {
  r->maps[r->n_maps] = map;
  insn.map = r->n_maps++;
  return tn_pw_append(r, insn, insn.lane, tn_pw_is_single(type) ? TN_PW_ONCE : TN_PW_PER_ELEMENT);
}

/* The index of each element of a type, counted by `steps`. */
static int32_t build_indexed(tn_pw_region *r, tn_pw_insn insn, const tn_type *type, const int64_t *steps) {
  int64_t row_major[TN_MAX_RANK];
  tn_pw_steps(type, row_major);
  r->positions = r->positions || !tn_pw_is_single(type);
  return build_access(r, insn, type,
                      tn_pw_map_of(&r->space, type, steps != NULL ? steps : row_major, 0, r->space.n_axes));
}

/* An operand of the region's dimensions lies as the results do, unless the space says otherwise; others lie
 * row-major. */
static int32_t build_load(tn_pw_region *r, int32_t operand) {
  const tn_type *type = r->types[operand];
  tn_pw_map map = {.rank = 1, .dims = {r->space.count}, .strides = {1}};
  tn_pw_insn insn = tn_pw_insn_of(TN_PW_LOAD, tn_lane_of(type->dtype), type->dtype);
  int64_t steps[TN_MAX_RANK];
  insn.view = operand;
  tn_pw_steps(type, steps);
  if (tn_pw_is_single(type) || !tn_type_same_dims(type, &r->space.type) || r->space.row_major_operands)
    map = tn_pw_map_of(&r->space, type, steps, 0, r->space.n_axes);
  return build_access(r, insn, type, map);
}

static int32_t build_value(tn_pw_region *r, int32_t number) {
  if (r->of[number] == TN_PW_NONE) r->of[number] = build_load(r, number);
  return r->of[number];
}

/* ---- the instructions of each op ---- */

enum {
  FLOATS = 1 << TN_LANE_F32 | 1 << TN_LANE_F64,
  WHOLE = (1 << TN_LANE_F32) - 1,
  LONGS = 1 << TN_LANE_I64,
  BOOLS = 1 << TN_LANES /* bool, whose lane is u8 */
};

typedef struct build_rule {
  const char *op;
  tn_status (*build)(tn_pw_region *r, const tn_match_node *n, const struct build_rule *rule);
  uint8_t insn;
  uint8_t lanes; /* of the operands */
  bool exact;    /* of f16 operands it makes f16 results, without rounding */
} build_rule;

static void build_define(tn_pw_region *r, const tn_match_node *n, int32_t v) { r->of[n->first_out] = v; }

/* One to three operands of one dtype, and a result of it, or bool for comparisons. */
static tn_status build_plain(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  int32_t dtype = n->node->out[0].dtype;
  tn_pw_insn insn = tn_pw_insn_of(rule->insn, 0, dtype);
  for (int32_t i = 0; i < n->node->n_in; i++) insn.in[i] = build_value(r, n->in[i]);
  insn.lane = r->values[insn.in[n->node->n_in - 1]].lane;
  if (rule->insn == TN_PW_AFFINE) {
    const tn_affine_attributes *a = n->node->attributes;
    insn.a = a->scale;
    insn.b = a->shift;
  }
  int32_t v = tn_pw_append(r, insn, tn_lane_of(dtype), TN_PW_ONCE);
  build_define(r, n, rule->exact ? v : build_rounded(r, v, dtype));
  return TN_OK;
}

static tn_status build_cast_node(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  (void)rule;
  int32_t from = r->types[n->in[0]]->dtype, to = n->node->out[0].dtype, v = build_value(r, n->in[0]);
  build_define(r, n, from != to ? build_cast(r, v, to) : v);
  return TN_OK;
}

static tn_status build_broadcast(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  (void)rule;
  build_define(r, n, build_value(r, n->in[0]));
  return TN_OK;
}

static tn_status build_full(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  (void)rule;
  const tn_full_attributes *a = n->node->attributes;
  int32_t dtype = n->node->out[0].dtype;
  build_define(r, n, tn_pw_constant(r, tn_lane_of(dtype), tn_pw_bits_of(a->value, dtype)));
  return TN_OK;
}

static tn_status build_iota(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  const tn_iota_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  int64_t steps[TN_MAX_RANK] = {0};
  steps[a->axis < 0 ? a->axis + type->rank : a->axis] = 1;
  int32_t v = build_indexed(r, tn_pw_insn_of(rule->insn, TN_LANE_I64, 0), type, steps);
  build_define(r, n, build_cast(r, v, type->dtype));
  return TN_OK;
}

static tn_status build_random(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  const tn_random_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  tn_pw_insn insn = tn_pw_insn_of(rule->insn, tn_lane_of(type->dtype), 0);
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (n->in[i] < 0) continue;
    insn.in[i] = build_value(r, n->in[i]);
    if (r->values[insn.in[i]].rate != TN_PW_ONCE)
      return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "the iteration or block of %s is not a scalar",
                     n->node->op);
  }
  insn.a = a->a;
  insn.b = a->b;
  insn.bits = (uint64_t)a->stream;
  insn.count = tn_type_count(type);
  build_define(r, n, build_rounded(r, build_indexed(r, insn, type, NULL), type->dtype));
  return TN_OK;
}

static int32_t build_table(tn_pw_region *r, const tn_spread_attributes *a) {
  size_t bytes = (size_t)a->starts.n * sizeof(int64_t);
  int32_t table = r->n_tables, n = (int32_t)a->starts.n;
  memcpy(r->tables + table, a->starts.v, bytes);
  memcpy(r->tables + table + n, a->index.v, bytes);
  r->n_tables += 2 * n;
  return table;
}

static tn_status build_spread(tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  const tn_spread_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  if (tn_pw_is_single(r->types[n->in[0]])) return build_broadcast(r, n, rule);
  if (n->in[0] >= r->match->n_in)
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "the values of spread are made in the same region");
  tn_pw_insn insn = tn_pw_insn_of(rule->insn, tn_lane_of(type->dtype), type->dtype);
  insn.view = n->in[0];
  insn.n_table = (int32_t)a->starts.n;
  insn.table = build_table(r, a);
  build_define(r, n, build_indexed(r, insn, type, NULL));
  return TN_OK;
}

static const build_rule build_rules[] = {
    {"neg", build_plain, TN_PW_NEG, FLOATS | WHOLE, true},
    {"abs", build_plain, TN_PW_ABS, FLOATS | WHOLE, true},
    {"sign", build_plain, TN_PW_SIGN, FLOATS | WHOLE, true},
    {"exp", build_plain, TN_PW_EXP, FLOATS, false},
    {"log", build_plain, TN_PW_LOG, FLOATS, false},
    {"sqrt", build_plain, TN_PW_SQRT, FLOATS, false},
    {"rsqrt", build_plain, TN_PW_RSQRT, FLOATS, false},
    {"reciprocal", build_plain, TN_PW_RECIPROCAL, FLOATS, false},
    {"tanh", build_plain, TN_PW_TANH, FLOATS, false},
    {"sigmoid", build_plain, TN_PW_SIGMOID, FLOATS, false},
    {"erf", build_plain, TN_PW_ERF, FLOATS, false},
    {"floor", build_plain, TN_PW_FLOOR, FLOATS, true},
    {"add", build_plain, TN_PW_ADD, FLOATS | WHOLE, false},
    {"sub", build_plain, TN_PW_SUB, FLOATS | WHOLE, false},
    {"mul", build_plain, TN_PW_MUL, FLOATS | WHOLE, false},
    {"div", build_plain, TN_PW_DIV, FLOATS | WHOLE, false},
    {"maximum", build_plain, TN_PW_MAXIMUM, FLOATS | WHOLE, true},
    {"minimum", build_plain, TN_PW_MINIMUM, FLOATS | WHOLE, true},
    {"affine", build_plain, TN_PW_AFFINE, FLOATS, false},
    {"eq", build_plain, TN_PW_EQ, FLOATS | WHOLE | BOOLS, true},
    {"ne", build_plain, TN_PW_NE, FLOATS | WHOLE | BOOLS, true},
    {"lt", build_plain, TN_PW_LT, FLOATS | WHOLE | BOOLS, true},
    {"le", build_plain, TN_PW_LE, FLOATS | WHOLE | BOOLS, true},
    {"gt", build_plain, TN_PW_GT, FLOATS | WHOLE | BOOLS, true},
    {"ge", build_plain, TN_PW_GE, FLOATS | WHOLE | BOOLS, true},
    {"is_finite", build_plain, TN_PW_IS_FINITE, FLOATS | WHOLE | BOOLS, true},
    {"and", build_plain, TN_PW_AND, BOOLS, true},
    {"or", build_plain, TN_PW_OR, BOOLS, true},
    {"not", build_plain, TN_PW_NOT, BOOLS, true},
    {"bitwise_and", build_plain, TN_PW_AND, WHOLE | BOOLS, true},
    {"bitwise_or", build_plain, TN_PW_OR, WHOLE | BOOLS, true},
    {"bitwise_xor", build_plain, TN_PW_XOR, WHOLE | BOOLS, true},
    {"shift_left", build_plain, TN_PW_SHIFT_LEFT, WHOLE, true},
    {"shift_right", build_plain, TN_PW_SHIFT_RIGHT, WHOLE, true},
    {"quotient", build_plain, TN_PW_DIV, WHOLE, true},
    {"fmod", build_plain, TN_PW_FMOD, FLOATS | WHOLE, true},
#define ROUNDED(op, ...) {#op, build_plain, TN_PW_FN_##op, FLOATS, false},
#define EXACT(op, ...)   {#op, build_plain, TN_PW_FN_##op, FLOATS, true},
    TN_UNARY_FUNCTIONS(ROUNDED) TN_BINARY_FUNCTIONS(ROUNDED) TN_ROUNDING_FUNCTIONS(EXACT)
        TN_SIGN_FUNCTIONS(EXACT){"where", build_plain, TN_PW_WHERE, FLOATS | WHOLE | BOOLS, true},
    {"cast", build_cast_node, TN_PW_CAST, FLOATS | WHOLE | BOOLS, true},
    {"broadcast", build_broadcast, TN_PW_COMPUTED, FLOATS | WHOLE | BOOLS, true},
    {"full", build_full, TN_PW_CONSTANT, FLOATS | WHOLE | BOOLS, true},
    {"iota", build_iota, TN_PW_INDEX, FLOATS | WHOLE | BOOLS, true},
    {"spread", build_spread, TN_PW_SPREAD, FLOATS | WHOLE | BOOLS, true},
    {"random_uniform", build_random, TN_PW_UNIFORM, LONGS, true},
    {"random_normal", build_random, TN_PW_NORMAL, LONGS, true},
};

/* ---- legality ---- */

static const build_rule *build_rule_of(const char *op) {
  for (size_t i = 0; i < sizeof build_rules / sizeof build_rules[0]; i++)
    if (build_rules[i].op[0] == op[0] && strcmp(build_rules[i].op, op) == 0) return &build_rules[i];
  return NULL;
}

static tn_status build_check_operands(const tn_pw_region *r, const tn_match_node *n, const build_rule *rule) {
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (n->in[i] < 0) continue;
    const tn_type *type = r->types[n->in[i]];
    int32_t lane = type->dtype == TN_BOOL ? TN_LANES : tn_lane_of(type->dtype);
    if (!(rule->lanes >> lane & 1))
      return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "%s of %s is not among its ops", rule->op,
                     tn_dtype_name(type->dtype));
    if (rule->build != build_spread && !tn_pw_broadcasts(type, &r->space.type))
      return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "operand %d of %s does not broadcast to the result",
                     (int)i, rule->op);
  }
  if (tn_pw_broadcasts(&n->node->out[0], &r->space.type)) return TN_OK;
  return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "%s does not broadcast to the result", rule->op);
}

static tn_status build_node(tn_pw_region *r, const tn_match_node *n) {
  const build_rule *rule = build_rule_of(n->node->op);
  if (rule == NULL) return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "%s is not among its ops", n->node->op);
  tn_status status = build_check_operands(r, n, rule);
  return status != TN_OK ? status : rule->build(r, n, rule);
}

static tn_status build_nodes(tn_pw_region *r) {
  const tn_match *m = r->match;
  for (int32_t i = 0; i < m->n_out; i++)
    if (!tn_type_same_dims(m->out[i], &r->space.type))
      return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "the results differ in their dimensions");
  for (int32_t i = 0; i < m->n_nodes; i++) {
    TN_TRY(build_node(r, &m->nodes[i]));
  }
  return TN_OK;
}

bool tn_pw_is_elementwise(const tn_match *m) {
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL && !tn_pw_is_single(m->in[i]) && !tn_type_same_dims(m->in[i], m->out[0]))
      return false;
  return true;
}

/* ---- the region ---- */

typedef struct build_room {
  size_t insns, tables;
} build_room;

/* A node becomes at most three instructions, an operand and a result one each; the rest is for lowering. */
static build_room build_room_for(const tn_match *m) {
  build_room room = {2 * (size_t)m->n_in + (size_t)m->n_out, 1};
  for (int32_t i = 0; i < m->n_nodes; i++) {
    const tn_node *node = m->nodes[i].node;
    room.insns += strcmp(node->op, "affine") == 0 ? 5 : 3;
    if (strcmp(node->op, "spread") == 0)
      room.tables += 2 * (size_t)((const tn_spread_attributes *)node->attributes)->starts.n;
  }
  return room;
}

static tn_status build_allocate(tn_pw_region *r) {
  const tn_match *m = r->match;
  build_room room = build_room_for(m);
  r->n_numbers = m->n_in;
  for (int32_t i = 0; i < m->n_nodes; i++) r->n_numbers += m->nodes[i].node->n_out;
  r->types = tn_new(r->handle, (size_t)r->n_numbers * sizeof *r->types);
  r->of = tn_new(r->handle, (size_t)r->n_numbers * sizeof *r->of);
  r->insns = tn_new(r->handle, room.insns * sizeof *r->insns);
  r->spare = tn_new(r->handle, room.insns * sizeof *r->spare);
  r->values = tn_new(r->handle, room.insns * sizeof *r->values);
  r->maps = tn_new(r->handle, ((size_t)m->n_in + (size_t)m->n_nodes) * sizeof *r->maps);
  r->tables = tn_new(r->handle, room.tables * sizeof *r->tables);
  r->inplace = tn_new(r->handle, ((size_t)m->n_in * (size_t)m->n_out + 1) * sizeof *r->inplace);
  bool all = r->types && r->of && r->insns && r->spare && r->values && r->maps && r->tables && r->inplace;
  return all ? TN_OK : TN_ENOMEM;
}

static void build_collect_types(tn_pw_region *r) {
  const tn_match *m = r->match;
  for (int32_t i = 0; i < m->n_in; i++) r->types[i] = m->in[i];
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; k < m->nodes[i].node->n_out; k++)
      r->types[m->nodes[i].first_out + k] = &m->nodes[i].node->out[k];
  for (int32_t i = 0; i < r->n_numbers; i++) r->of[i] = TN_PW_NONE;
}

tn_status tn_pw_build(const void *handle, const tn_match *m, const tn_pw_space *space, tn_pw_region *r) {
  *r = (tn_pw_region){.handle = handle, .match = m};
  if (m->n_out < 1) return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region has no result");
  r->space = space != NULL ? *space : tn_pw_space_row_major(m->out[0]);
  TN_TRY(build_allocate(r));
  build_collect_types(r);
  return build_nodes(r);
}

void tn_pw_drop(tn_pw_region *r) {
  void *const blocks[] = {r->types, r->of, r->insns, r->spare, r->values, r->maps, r->tables, r->inplace};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(r->handle, blocks[i]);
}
