/* From nodes to instructions over virtual registers: how operands are read, and what each op becomes.
 * Each f16 or bf16 result of a node is rounded, although registers hold f32, so that numbers do not
 * depend on what shares a region. */
#include "backends/cpu/kernels/pointwise_compile.h"

#include <string.h>

#include "tenon/attributes.h"

/* ---- maps ---- */

static bool broadcasts_to(const tn_type *type, const tn_type *space) {
  int32_t lead = space->rank - type->rank;
  if (lead < 0) return false;
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] != 1 && type->dims[i] != space->dims[lead + i]) return false;
  return true;
}

/* One more inner dimension of a map, merged with the one before where the walk just goes on. */
static void map_dimension(tn_pw_map *map, int64_t dim, int64_t stride) {
  int32_t last = map->rank - 1;
  if (dim == 1) return;
  if (last >= 0 && map->strides[last] == dim * stride) {
    map->dims[last] *= dim;
    map->strides[last] = stride;
    return;
  }
  map->dims[map->rank] = dim;
  map->strides[map->rank++] = stride;
}

/* `steps` are the strides of the type's own dimensions. */
static tn_pw_map map_of(const tn_type *type, const int64_t *steps, const tn_type *space) {
  tn_pw_map map = {.rank = 0};
  int32_t lead = space->rank - type->rank;
  for (int32_t i = 0; i < space->rank; i++) {
    bool repeated = i < lead || type->dims[i - lead] == 1;
    map_dimension(&map, space->dims[i], repeated ? 0 : steps[i - lead]);
  }
  if (map.rank == 0) map = (tn_pw_map){.rank = 1, .dims = {1}, .strides = {1}};
  return map;
}

static bool is_identity(const tn_pw_map *map) { return map->rank == 1 && map->strides[0] == 1; }

static void row_major_steps(const tn_type *type, int64_t *steps) {
  int64_t step = 1;
  memset(steps, 0, TN_MAX_RANK * sizeof *steps);
  for (int32_t i = type->rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= type->dims[i];
  }
}

/* ---- emit ---- */

static int32_t new_vreg(tn_pw_compiler *c, int32_t lane, bool uniform) {
  c->vregs[c->n_vregs] = (tn_pw_vreg){
      .lane = lane, .uniform = uniform, .operand = TN_PW_NONE, .result = TN_PW_NONE, .reg = TN_PW_NONE};
  return c->n_vregs++;
}

/* Appends an instruction and returns the register of its result, in `lane`. */
static int32_t emit(tn_pw_compiler *c, tn_pw_insn insn, int32_t lane, bool uniform) {
  insn.out = new_vreg(c, lane, uniform);
  c->insns[c->n_insns++] = insn;
  return insn.out;
}

static tn_pw_insn insn_of(uint8_t op, int32_t lane, int32_t a, int32_t b, int32_t d) {
  return (tn_pw_insn){.op = op, .lane = (uint8_t)lane, .out = TN_PW_NONE, .in = {a, b, d}};
}

static int32_t emit_fill(tn_pw_compiler *c, int32_t lane, uint64_t bits) {
  tn_pw_insn insn = insn_of(PW_FILL, lane, TN_PW_NONE, TN_PW_NONE, TN_PW_NONE);
  insn.bits = bits;
  return emit(c, insn, lane, true);
}

/* A walk that never turns has no end either: storage may be larger than the space (padding). */
static int32_t add_map(tn_pw_compiler *c, const tn_type *type, const int64_t *steps) {
  tn_pw_map map = map_of(type, steps, c->space);
  if (map.rank == 1) map.dims[0] = INT64_MAX;
  c->maps[c->n_maps] = map;
  return c->n_maps++;
}

/* The register of an operand: its own memory where it lies like the space, else loaded. */
static int32_t load_operand(tn_pw_compiler *c, int32_t operand) {
  const tn_type *type = c->types[operand];
  int64_t steps[TN_MAX_RANK];
  int32_t lane = tn_lane_of(type->dtype);
  bool uniform = tn_pw_is_single(type);
  row_major_steps(type, steps);
  int32_t map = add_map(c, type, steps);
  if (is_identity(&c->maps[map]) && !uniform && tn_lane_is_stored(type->dtype)) {
    int32_t v = new_vreg(c, lane, false);
    c->vregs[v].operand = operand;
    return v;
  }
  if (uniform) c->maps[map] = (tn_pw_map){.rank = 1, .dims = {INT64_MAX}, .strides = {0}};
  tn_pw_insn insn = insn_of(PW_LOAD, lane, TN_PW_NONE, TN_PW_NONE, TN_PW_NONE);
  insn.dtype = (uint8_t)type->dtype;
  insn.view = operand;
  insn.map = map;
  return emit(c, insn, lane, uniform);
}

static int32_t reg_of(tn_pw_compiler *c, int32_t value) {
  if (c->regs[value] == TN_PW_NONE) c->regs[value] = load_operand(c, value);
  return c->regs[value];
}

/* v as the result of a node of this dtype: rounded where registers are wider than the dtype. */
static int32_t rounded(tn_pw_compiler *c, int32_t v, int32_t dtype) {
  if (tn_lane_is_stored(dtype)) return v;
  tn_pw_insn insn = insn_of(PW_ROUND, TN_LANE_F32, v, TN_PW_NONE, TN_PW_NONE);
  insn.dtype = (uint8_t)dtype;
  return emit(c, insn, TN_LANE_F32, c->vregs[v].uniform);
}

static int32_t emit_cast(tn_pw_compiler *c, int32_t v, int32_t dtype) {
  int32_t from = c->vregs[v].lane, lane = tn_lane_of(dtype);
  if (from == lane && dtype != TN_BOOL) return v;
  tn_pw_insn insn = insn_of(PW_CAST, from, v, TN_PW_NONE, TN_PW_NONE);
  insn.dtype = (uint8_t)dtype;
  return emit(c, insn, lane, c->vregs[v].uniform);
}

/* The index of each element of `type` in it, counted by `steps`. */
static int32_t emit_index(tn_pw_compiler *c, const tn_type *type, const int64_t *steps) {
  if (tn_pw_is_single(type)) return emit_fill(c, TN_LANE_I64, 0);
  tn_pw_insn insn = insn_of(PW_INDEX, TN_LANE_I64, TN_PW_NONE, TN_PW_NONE, TN_PW_NONE);
  insn.map = add_map(c, type, steps);
  c->positions = true;
  return emit(c, insn, TN_LANE_I64, false);
}

static int32_t emit_own_index(tn_pw_compiler *c, const tn_type *type) {
  int64_t steps[TN_MAX_RANK];
  row_major_steps(type, steps);
  return emit_index(c, type, steps);
}

/* ---- what each op becomes ---- */

enum {
  FLOATS = 1 << TN_LANE_F32 | 1 << TN_LANE_F64,
  WHOLE = 1 << TN_LANE_I32 | 1 << TN_LANE_I64,
  BYTES = 1 << TN_LANE_U8
};

typedef struct rule {
  const char *op;
  tn_status (*emit)(tn_pw_compiler *c, const tn_match_node *n, const struct rule *rule);
  uint8_t insn;
  uint8_t lanes; /* of the operands */
  bool exact;    /* of f16 operands it makes f16 results, without rounding */
} rule;

static const tn_type *type_in(const tn_pw_compiler *c, const tn_match_node *n, int32_t i) {
  return c->types[n->in[i]];
}

static void define(tn_pw_compiler *c, const tn_match_node *n, int32_t v) { c->regs[n->first_out] = v; }

/* One to three operands of one dtype, and a result of it, or bool for comparisons. */
static tn_status emit_plain(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  int32_t v[3] = {TN_PW_NONE, TN_PW_NONE, TN_PW_NONE};
  bool uniform = true;
  for (int32_t i = 0; i < n->node->n_in; i++) {
    v[i] = reg_of(c, n->in[i]);
    uniform = uniform && c->vregs[v[i]].uniform;
  }
  int32_t dtype = n->node->out[0].dtype, lane = c->vregs[v[n->node->n_in - 1]].lane;
  tn_pw_insn insn = insn_of(r->insn, lane, v[0], v[1], v[2]);
  if (r->insn == PW_AFFINE) {
    const tn_affine_attributes *a = n->node->attributes;
    insn.a = a->scale;
    insn.b = a->shift;
  }
  int32_t out = emit(c, insn, tn_lane_of(dtype), uniform);
  define(c, n, r->exact ? out : rounded(c, out, dtype));
  return TN_OK;
}

static tn_status emit_cast_node(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  int32_t from = type_in(c, n, 0)->dtype, to = n->node->out[0].dtype;
  int32_t v = reg_of(c, n->in[0]);
  if (from != to) v = rounded(c, emit_cast(c, v, to), to);
  define(c, n, v);
  return TN_OK;
}

static tn_status emit_broadcast(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  define(c, n, reg_of(c, n->in[0]));
  return TN_OK;
}

static tn_status emit_full(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_full_attributes *a = n->node->attributes;
  int32_t dtype = n->node->out[0].dtype;
  uint64_t value = 0;
  memcpy(&value, &a->value, sizeof value);
  int32_t v = emit_fill(c, TN_LANE_F64, value);
  define(c, n, rounded(c, emit_cast(c, v, dtype), dtype));
  return TN_OK;
}

static tn_status emit_iota(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_iota_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  int64_t steps[TN_MAX_RANK] = {0};
  steps[a->axis < 0 ? a->axis + type->rank : a->axis] = 1;
  int32_t v = emit_cast(c, emit_index(c, type, steps), type->dtype);
  define(c, n, rounded(c, v, type->dtype));
  return TN_OK;
}

/* The index in the global batch of each element of `type`: those of the blocks before come first. */
static int32_t emit_global_index(tn_pw_compiler *c, const tn_type *type, int32_t block) {
  int32_t own = emit_own_index(c, type), count = emit_fill(c, TN_LANE_I64, (uint64_t)tn_type_count(type));
  int32_t before = emit(c, insn_of(PW_MUL, TN_LANE_I64, block, count, TN_PW_NONE), TN_LANE_I64, true);
  return emit(c, insn_of(PW_ADD, TN_LANE_I64, own, before, TN_PW_NONE), TN_LANE_I64, c->vregs[own].uniform);
}

static tn_status emit_random(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  const tn_random_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  bool blocks = n->node->n_in > 1 && n->in[1] >= 0;
  int32_t lane = tn_lane_of(type->dtype), iteration = reg_of(c, n->in[0]);
  int32_t block = blocks ? reg_of(c, n->in[1]) : iteration;
  if (!c->vregs[iteration].uniform || !c->vregs[block].uniform)
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the iteration or block of %s is not a scalar",
                   n->node->op);
  int32_t index = blocks ? emit_global_index(c, type, block) : emit_own_index(c, type);
  tn_pw_insn insn = insn_of(r->insn, lane, index, iteration, TN_PW_NONE);
  insn.a = a->a;
  insn.b = a->b;
  insn.bits = (uint64_t)a->stream;
  define(c, n, rounded(c, emit(c, insn, lane, c->vregs[index].uniform), type->dtype));
  return TN_OK;
}

static tn_status emit_spread(tn_pw_compiler *c, const tn_match_node *n, const rule *r) {
  const tn_spread_attributes *a = n->node->attributes;
  const tn_type *type = &n->node->out[0];
  if (tn_pw_is_single(type_in(c, n, 0))) return emit_broadcast(c, n, r);
  int32_t lane = tn_lane_of(type->dtype), index = emit_own_index(c, type);
  if (n->in[0] >= c->match->n_in)
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the values of spread are made in the same region");
  tn_pw_insn insn = insn_of(r->insn, lane, index, TN_PW_NONE, TN_PW_NONE);
  insn.dtype = (uint8_t)type->dtype;
  insn.view = n->in[0];
  insn.table = c->n_tables;
  insn.n_table = (int32_t)a->starts.n;
  memcpy(c->tables + c->n_tables, a->starts.v, (size_t)a->starts.n * sizeof(int64_t));
  memcpy(c->tables + c->n_tables + a->starts.n, a->index.v, (size_t)a->starts.n * sizeof(int64_t));
  c->n_tables += 2 * (int32_t)a->starts.n;
  define(c, n, emit(c, insn, lane, c->vregs[index].uniform));
  return TN_OK;
}

static const rule rules[] = {
    {"neg", emit_plain, PW_NEG, FLOATS | WHOLE, true},
    {"abs", emit_plain, PW_ABS, FLOATS | WHOLE, true},
    {"sign", emit_plain, PW_SIGN, FLOATS | WHOLE, true},
    {"exp", emit_plain, PW_EXP, FLOATS, false},
    {"log", emit_plain, PW_LOG, FLOATS, false},
    {"sqrt", emit_plain, PW_SQRT, FLOATS, false},
    {"rsqrt", emit_plain, PW_RSQRT, FLOATS, false},
    {"reciprocal", emit_plain, PW_RECIPROCAL, FLOATS, false},
    {"tanh", emit_plain, PW_TANH, FLOATS, false},
    {"sigmoid", emit_plain, PW_SIGMOID, FLOATS, false},
    {"erf", emit_plain, PW_ERF, FLOATS, false},
    {"sin", emit_plain, PW_SIN, FLOATS, false},
    {"cos", emit_plain, PW_COS, FLOATS, false},
    {"floor", emit_plain, PW_FLOOR, FLOATS, true},
    {"add", emit_plain, PW_ADD, FLOATS | WHOLE, false},
    {"sub", emit_plain, PW_SUB, FLOATS | WHOLE, false},
    {"mul", emit_plain, PW_MUL, FLOATS | WHOLE, false},
    {"div", emit_plain, PW_DIV, FLOATS | WHOLE, false},
    {"maximum", emit_plain, PW_MAXIMUM, FLOATS | WHOLE, true},
    {"minimum", emit_plain, PW_MINIMUM, FLOATS | WHOLE, true},
    {"pow", emit_plain, PW_POW, FLOATS, false},
    {"affine", emit_plain, PW_AFFINE, FLOATS, false},
    {"eq", emit_plain, PW_EQ, FLOATS | WHOLE | BYTES, true},
    {"ne", emit_plain, PW_NE, FLOATS | WHOLE | BYTES, true},
    {"lt", emit_plain, PW_LT, FLOATS | WHOLE | BYTES, true},
    {"le", emit_plain, PW_LE, FLOATS | WHOLE | BYTES, true},
    {"gt", emit_plain, PW_GT, FLOATS | WHOLE | BYTES, true},
    {"ge", emit_plain, PW_GE, FLOATS | WHOLE | BYTES, true},
    {"is_finite", emit_plain, PW_IS_FINITE, FLOATS | WHOLE | BYTES, true},
    {"and", emit_plain, PW_AND, BYTES, true},
    {"or", emit_plain, PW_OR, BYTES, true},
    {"not", emit_plain, PW_NOT, BYTES, true},
    {"where", emit_plain, PW_WHERE, FLOATS | WHOLE | BYTES, true},
    {"cast", emit_cast_node, PW_CAST, FLOATS | WHOLE | BYTES, true},
    {"broadcast", emit_broadcast, PW_FILL, FLOATS | WHOLE | BYTES, true},
    {"full", emit_full, PW_FILL, FLOATS | WHOLE | BYTES, true},
    {"iota", emit_iota, PW_INDEX, FLOATS | WHOLE | BYTES, true},
    {"spread", emit_spread, PW_SPREAD, FLOATS | WHOLE | BYTES, true},
    {"random_uniform", emit_random, PW_UNIFORM, FLOATS | WHOLE, true},
    {"random_normal", emit_random, PW_NORMAL, FLOATS | WHOLE, true},
};

static tn_status emit_node(tn_pw_compiler *c, const tn_match_node *n) {
  const rule *r = NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && r == NULL; i++)
    if (strcmp(rules[i].op, n->node->op) == 0) r = &rules[i];
  if (r == NULL) return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s is not among its ops", n->node->op);
  for (int32_t i = 0; i < n->node->n_in; i++) {
    if (n->in[i] < 0) continue;
    const tn_type *type = type_in(c, n, i);
    if (!(r->lanes >> tn_lane_of(type->dtype) & 1))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s of %s is not among its ops", r->op,
                     tn_dtype_name(type->dtype));
    if (r->emit != emit_spread && !broadcasts_to(type, c->space))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "operand %d of %s does not broadcast to the result",
                     (int)i, r->op);
  }
  if (!broadcasts_to(&n->node->out[0], c->space))
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s does not broadcast to the result", r->op);
  return r->emit(c, n, r);
}

tn_status tn_pw_emit(tn_pw_compiler *c) {
  const tn_match *m = c->match;
  for (int32_t i = 0; i < m->n_out; i++)
    if (!tn_type_same_dims(m->out[i], c->space))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the results differ in their dimensions");
  for (int32_t i = 0; i < m->n_nodes; i++) {
    tn_status status = emit_node(c, &m->nodes[i]);
    if (status != TN_OK) return status;
  }
  return TN_OK;
}

void tn_pw_emit_store(tn_pw_compiler *c, int32_t result) {
  const tn_type *type = c->match->out[result];
  tn_pw_insn insn = insn_of(PW_STORE, tn_lane_of(type->dtype), c->regs[c->match->out_number[result]],
                            TN_PW_NONE, TN_PW_NONE);
  insn.dtype = (uint8_t)type->dtype;
  insn.view = result;
  c->insns[c->n_insns++] = insn;
}
