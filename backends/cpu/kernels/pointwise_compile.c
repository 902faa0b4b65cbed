/* From a match to a program (pointwise_ops.h), in four steps:
 *
 *   emit      one or a few instructions per node, over virtual registers that are each written once
 *   hoist     instructions whose result is the same everywhere go to the prologue
 *   inplace   which results may take the memory of which operands
 *   allocate  virtual registers become pieces of the buffer, or the memory of operands and results
 *
 * Each f16 or bf16 result of a node is rounded, although registers hold f32, so that numbers do not
 * depend on what shares a region. */
#include "kernels/pointwise_ops.h"

#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

enum { NONE = -1, LATER = 1 << 30 };

/* A virtual register. */
typedef struct vreg {
  int32_t lane;
  bool uniform;            /* one value for all elements: computed in the prologue */
  int32_t made, last_use;  /* positions of instructions */
  int32_t operand, result; /* whose memory it is, or NONE */
  int32_t reg;             /* in the program */
} vreg;

typedef struct compiler {
  const void *handle;
  const tn_match *match;
  const tn_type *space; /* dims of the iteration space */
  int32_t n_values;
  const tn_type **types; /* of every value of the match */
  int32_t *regs;         /* virtual register of every value, NONE before it is loaded */
  vreg *vregs;
  tn_pw_insn *insns;
  tn_pw_map *maps;
  int64_t *tables;
  int32_t n_vregs, n_insns, n_prologue, n_maps, n_tables, n_slots;
  int32_t (*inplace)[2];
  int32_t n_inplace;
  bool positions; /* some instruction depends on where in the space it is */
} compiler;

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

static int32_t new_vreg(compiler *c, int32_t lane, bool uniform) {
  c->vregs[c->n_vregs] =
      (vreg){.lane = lane, .uniform = uniform, .operand = NONE, .result = NONE, .reg = NONE};
  return c->n_vregs++;
}

/* Appends an instruction and returns the register of its result, in `lane`. */
static int32_t emit(compiler *c, tn_pw_insn insn, int32_t lane, bool uniform) {
  insn.out = new_vreg(c, lane, uniform);
  c->insns[c->n_insns++] = insn;
  return insn.out;
}

static tn_pw_insn insn_of(uint8_t op, int32_t lane, int32_t a, int32_t b, int32_t d) {
  return (tn_pw_insn){.op = op, .lane = (uint8_t)lane, .out = NONE, .in = {a, b, d}};
}

static bool is_single(const tn_type *type) { return tn_type_count(type) == 1; }

static int32_t emit_fill(compiler *c, int32_t lane, uint64_t bits) {
  tn_pw_insn insn = insn_of(PW_FILL, lane, NONE, NONE, NONE);
  insn.bits = bits;
  return emit(c, insn, lane, true);
}

/* A walk that never turns has no end either: storage may be larger than the space (padding). */
static int32_t add_map(compiler *c, const tn_type *type, const int64_t *steps) {
  tn_pw_map map = map_of(type, steps, c->space);
  if (map.rank == 1) map.dims[0] = INT64_MAX;
  c->maps[c->n_maps] = map;
  return c->n_maps++;
}

/* The register of an operand: its own memory where it lies like the space, else loaded. */
static int32_t load_operand(compiler *c, int32_t operand) {
  const tn_type *type = c->types[operand];
  int64_t steps[TN_MAX_RANK];
  int32_t lane = tn_lane_of(type->dtype);
  bool uniform = is_single(type);
  row_major_steps(type, steps);
  int32_t map = add_map(c, type, steps);
  if (is_identity(&c->maps[map]) && !uniform && tn_lane_is_stored(type->dtype)) {
    int32_t v = new_vreg(c, lane, false);
    c->vregs[v].operand = operand;
    return v;
  }
  if (uniform) c->maps[map] = (tn_pw_map){.rank = 1, .dims = {INT64_MAX}, .strides = {0}};
  tn_pw_insn insn = insn_of(PW_LOAD, lane, NONE, NONE, NONE);
  insn.dtype = (uint8_t)type->dtype;
  insn.view = operand;
  insn.map = map;
  return emit(c, insn, lane, uniform);
}

static int32_t reg_of(compiler *c, int32_t value) {
  if (c->regs[value] == NONE) c->regs[value] = load_operand(c, value);
  return c->regs[value];
}

/* v as the result of a node of this dtype: rounded where registers are wider than the dtype. */
static int32_t rounded(compiler *c, int32_t v, int32_t dtype) {
  if (tn_lane_is_stored(dtype)) return v;
  tn_pw_insn insn = insn_of(PW_ROUND, TN_LANE_F32, v, NONE, NONE);
  insn.dtype = (uint8_t)dtype;
  return emit(c, insn, TN_LANE_F32, c->vregs[v].uniform);
}

static int32_t emit_cast(compiler *c, int32_t v, int32_t dtype) {
  int32_t from = c->vregs[v].lane, lane = tn_lane_of(dtype);
  if (from == lane && dtype != TN_BOOL) return v;
  tn_pw_insn insn = insn_of(PW_CAST, from, v, NONE, NONE);
  insn.dtype = (uint8_t)dtype;
  return emit(c, insn, lane, c->vregs[v].uniform);
}

/* The index of each element of `type` in it, counted by `steps`. */
static int32_t emit_index(compiler *c, const tn_type *type, const int64_t *steps) {
  if (is_single(type)) return emit_fill(c, TN_LANE_I64, 0);
  tn_pw_insn insn = insn_of(PW_INDEX, TN_LANE_I64, NONE, NONE, NONE);
  insn.map = add_map(c, type, steps);
  c->positions = true;
  return emit(c, insn, TN_LANE_I64, false);
}

static int32_t emit_own_index(compiler *c, const tn_type *type) {
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
  tn_status (*emit)(compiler *c, const tn_match_node *n, const struct rule *rule);
  uint8_t insn;
  uint8_t lanes; /* of the operands */
  bool exact;    /* of f16 operands it makes f16 results, without rounding */
} rule;

static const tn_type *type_in(const compiler *c, const tn_match_node *n, int32_t i) {
  return c->types[n->in[i]];
}

static void define(compiler *c, const tn_match_node *n, int32_t v) { c->regs[n->first_out] = v; }

/* One to three operands of one dtype, and a result of it, or bool for comparisons. */
static tn_status emit_plain(compiler *c, const tn_match_node *n, const rule *r) {
  int32_t v[3] = {NONE, NONE, NONE};
  bool uniform = true;
  for (int32_t i = 0; i < n->node.n_in; i++) {
    v[i] = reg_of(c, n->in[i]);
    uniform = uniform && c->vregs[v[i]].uniform;
  }
  int32_t dtype = n->node.out[0].dtype, lane = c->vregs[v[n->node.n_in - 1]].lane;
  tn_pw_insn insn = insn_of(r->insn, lane, v[0], v[1], v[2]);
  if (r->insn == PW_AFFINE) {
    const tn_affine_attributes *a = n->node.attributes;
    insn.a = a->scale;
    insn.b = a->shift;
  }
  int32_t out = emit(c, insn, tn_lane_of(dtype), uniform);
  define(c, n, r->exact ? out : rounded(c, out, dtype));
  return TN_OK;
}

static tn_status emit_cast_node(compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  int32_t from = type_in(c, n, 0)->dtype, to = n->node.out[0].dtype;
  int32_t v = reg_of(c, n->in[0]);
  if (from != to) v = rounded(c, emit_cast(c, v, to), to);
  define(c, n, v);
  return TN_OK;
}

static tn_status emit_broadcast(compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  define(c, n, reg_of(c, n->in[0]));
  return TN_OK;
}

static tn_status emit_full(compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_full_attributes *a = n->node.attributes;
  int32_t dtype = n->node.out[0].dtype;
  uint64_t value = 0;
  memcpy(&value, &a->value, sizeof value);
  int32_t v = emit_fill(c, TN_LANE_F64, value);
  define(c, n, rounded(c, emit_cast(c, v, dtype), dtype));
  return TN_OK;
}

static tn_status emit_iota(compiler *c, const tn_match_node *n, const rule *r) {
  (void)r;
  const tn_iota_attributes *a = n->node.attributes;
  const tn_type *type = &n->node.out[0];
  int64_t steps[TN_MAX_RANK] = {0};
  steps[a->axis < 0 ? a->axis + type->rank : a->axis] = 1;
  int32_t v = emit_cast(c, emit_index(c, type, steps), type->dtype);
  define(c, n, rounded(c, v, type->dtype));
  return TN_OK;
}

static tn_status emit_random(compiler *c, const tn_match_node *n, const rule *r) {
  const tn_random_attributes *a = n->node.attributes;
  const tn_type *type = &n->node.out[0];
  int32_t lane = tn_lane_of(type->dtype), iteration = reg_of(c, n->in[0]);
  if (!c->vregs[iteration].uniform)
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the iteration of %s is not a scalar", n->node.op);
  int32_t index = emit_own_index(c, type);
  tn_pw_insn insn = insn_of(r->insn, lane, index, iteration, NONE);
  insn.a = a->a;
  insn.b = a->b;
  insn.bits = (uint64_t)a->stream;
  define(c, n, rounded(c, emit(c, insn, lane, c->vregs[index].uniform), type->dtype));
  return TN_OK;
}

static tn_status emit_spread(compiler *c, const tn_match_node *n, const rule *r) {
  const tn_spread_attributes *a = n->node.attributes;
  const tn_type *type = &n->node.out[0];
  if (is_single(type_in(c, n, 0))) return emit_broadcast(c, n, r);
  int32_t lane = tn_lane_of(type->dtype), index = emit_own_index(c, type);
  if (n->in[0] >= c->match->n_in)
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the values of spread are made in the same region");
  tn_pw_insn insn = insn_of(r->insn, lane, index, NONE, NONE);
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

static tn_status emit_node(compiler *c, const tn_match_node *n) {
  const rule *r = NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && r == NULL; i++)
    if (strcmp(rules[i].op, n->node.op) == 0) r = &rules[i];
  if (r == NULL) return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s is not among its ops", n->node.op);
  for (int32_t i = 0; i < n->node.n_in; i++) {
    const tn_type *type = type_in(c, n, i);
    if (!(r->lanes >> tn_lane_of(type->dtype) & 1))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s of %s is not among its ops", r->op,
                     tn_dtype_name(type->dtype));
    if (r->emit != emit_spread && !broadcasts_to(type, c->space))
      return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "operand %d of %s does not broadcast to the result",
                     (int)i, r->op);
  }
  if (!broadcasts_to(&n->node.out[0], c->space))
    return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "%s does not broadcast to the result", r->op);
  return r->emit(c, n, r);
}

/* A result that needs an instruction of its own to reach memory. */
static void emit_store(compiler *c, int32_t result) {
  const tn_type *type = c->match->out[result];
  tn_pw_insn insn =
      insn_of(PW_STORE, tn_lane_of(type->dtype), c->regs[c->match->out_number[result]], NONE, NONE);
  insn.dtype = (uint8_t)type->dtype;
  insn.view = result;
  c->insns[c->n_insns++] = insn;
}

/* ---- hoist ---- */

static bool is_prologue(const compiler *c, const tn_pw_insn *insn) {
  return insn->out != NONE && c->vregs[insn->out].uniform;
}

/* Uniform instructions first, both parts in their old order. `spare` has room for all. */
static void hoist(compiler *c, tn_pw_insn *spare) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n_insns; i++)
    if (is_prologue(c, &c->insns[i])) spare[n++] = c->insns[i];
  c->n_prologue = n;
  for (int32_t i = 0; i < c->n_insns; i++)
    if (!is_prologue(c, &c->insns[i])) spare[n++] = c->insns[i];
  memcpy(c->insns, spare, (size_t)n * sizeof *spare);
}

/* What the prologue makes for the body stays alive, since the body runs again and again. */
static void find_uses(compiler *c) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    if (insn->out != NONE) c->vregs[insn->out].made = c->vregs[insn->out].last_use = i;
    for (int32_t k = 0; k < 3; k++) {
      if (insn->in[k] == NONE) continue;
      vreg *v = &c->vregs[insn->in[k]];
      v->last_use = v->uniform && i >= c->n_prologue ? LATER : i;
    }
  }
}

/* ---- in-place pairs ---- */

/* The position of the last instruction that reads an operand's memory; NONE if none does; LATER if it
 * is read anywhere but at the element at hand. */
static int32_t last_read(const compiler *c, int32_t operand) {
  int32_t last = NONE;
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    if (insn->op == PW_SPREAD && insn->view == operand) return LATER;
    if (insn->op == PW_LOAD && insn->view == operand) last = i;
  }
  int32_t v = c->regs[operand];
  if (v == NONE || c->vregs[v].operand != operand) return last;
  for (int32_t r = 0; r < c->match->n_out; r++)
    if (c->regs[c->match->out_number[r]] == v) return LATER; /* a store at the end reads it */
  return c->vregs[v].last_use;
}

static bool may_share(const compiler *c, int32_t operand, int32_t result) {
  return c->match->in[operand] != NULL && c->regs[operand] != NONE &&
         tn_type_equal(c->match->in[operand], c->match->out[result]);
}

/* Adds the pairs of a result that are safe if its memory is written at position `made`. */
static bool add_pairs(compiler *c, int32_t result, int32_t made) {
  int32_t before = c->n_inplace;
  for (int32_t i = 0; i < c->match->n_in; i++) {
    if (!may_share(c, i, result) || last_read(c, i) > made) continue;
    c->inplace[c->n_inplace][0] = i;
    c->inplace[c->n_inplace++][1] = result;
  }
  return c->n_inplace > before;
}

/* A result can be written by the instruction that makes it, if it is the only one that has that
 * register and memory holds lanes. */
static bool can_be_direct(const compiler *c, int32_t result) {
  const vreg *v = &c->vregs[c->regs[c->match->out_number[result]]];
  return !v->uniform && v->operand == NONE && v->result == NONE &&
         tn_lane_is_stored(c->match->out[result]->dtype);
}

/* Decides for each result between being written where it is made and being stored at the end, when
 * every operand has been read. The latter only where it is the price of sharing memory. */
static void place_results(compiler *c) {
  int32_t end = LATER - 1;
  for (int32_t r = 0; r < c->match->n_out; r++) {
    vreg *v = &c->vregs[c->regs[c->match->out_number[r]]];
    bool direct = can_be_direct(c, r);
    if (direct && !add_pairs(c, r, v->made))
      direct = !add_pairs(c, r, end);
    else if (!direct)
      add_pairs(c, r, end);
    if (direct) v->result = r;
  }
  for (int32_t r = 0; r < c->match->n_out; r++)
    if (c->vregs[c->regs[c->match->out_number[r]]].result != r) emit_store(c, r);
  find_uses(c);
}

/* ---- allocate ---- */

/* Pieces of the buffer by size of a lane: 8, 4 and 1 bytes. */
typedef struct slots {
  int32_t n[3], n_free[3];
  int32_t free[3][TN_PW_REGISTERS];
} slots;

static int32_t slot_class(int32_t lane) {
  return tn_lane_size(lane) == 8 ? 0 : tn_lane_size(lane) == 4 ? 1 : 2;
}

static bool in_buffer(const vreg *v) { return v->operand == NONE && v->result == NONE; }

static void release(slots *s, const vreg *v) {
  int32_t k = slot_class(v->lane);
  s->free[k][s->n_free[k]++] = v->reg;
}

static bool acquire(slots *s, vreg *v) {
  int32_t k = slot_class(v->lane);
  if (s->n_free[k] == 0 && s->n[k] == TN_PW_REGISTERS) return false;
  v->reg = s->n_free[k] > 0 ? s->free[k][--s->n_free[k]] : s->n[k]++;
  return true;
}

/* A result may take the register of an operand that dies in the same instruction. */
static bool assign_slots(compiler *c, slots *s) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    for (int32_t k = 0; k < 3; k++) {
      bool again = insn->in[k] == NONE;
      for (int32_t j = 0; j < k; j++) again = again || insn->in[j] == insn->in[k];
      if (again) continue;
      const vreg *v = &c->vregs[insn->in[k]];
      if (in_buffer(v) && v->last_use == i) release(s, v);
    }
    if (insn->out == NONE || !in_buffer(&c->vregs[insn->out])) continue;
    vreg *out = &c->vregs[insn->out];
    if (!acquire(s, out)) return false;
    if (out->last_use == i) release(s, out); /* nobody reads it */
  }
  return true;
}

/* Slots numbered by size, largest first, which keeps them aligned; memory registers after them. */
static int32_t number_registers(compiler *c, const slots *s) {
  int32_t base[3] = {0, s->n[0], s->n[0] + s->n[1]}, n = base[2] + s->n[2];
  c->n_slots = n;
  for (int32_t i = 0; i < c->n_vregs; i++) {
    vreg *v = &c->vregs[i];
    if (!in_buffer(v))
      v->reg = n++;
    else if (v->reg != NONE)
      v->reg += base[slot_class(v->lane)];
  }
  return n;
}

static tn_status no_room(const compiler *c) {
  return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the region of %d nodes has too many values alive at once",
                 (int)c->match->n_nodes);
}

/* ---- the program ---- */

static size_t align16(size_t n) { return (n + 15) & ~(size_t)15; }

/* Cuts `bytes` off a block. */
static void *carve(uint8_t **block, size_t bytes) {
  void *piece = *block;
  *block += align16(bytes);
  return piece;
}

static size_t program_bytes(const compiler *c, int32_t n_bindings) {
  return align16(sizeof(tn_pw_program)) + align16((size_t)c->n_insns * sizeof(tn_pw_insn)) +
         align16((size_t)c->n_maps * sizeof(tn_pw_map)) + align16((size_t)c->n_tables * sizeof(int64_t)) +
         align16((size_t)c->n_slots * sizeof(uint32_t)) +
         align16((size_t)n_bindings * sizeof(tn_pw_binding)) +
         align16((size_t)c->n_inplace * sizeof(int32_t[2]));
}

static void fill_bindings(const compiler *c, tn_pw_program *p) {
  for (int32_t i = 0; i < c->n_vregs; i++) {
    const vreg *v = &c->vregs[i];
    if (in_buffer(v)) continue;
    int32_t view = v->operand != NONE ? v->operand : c->match->n_in + v->result;
    p->bindings[p->n_bindings++] = (tn_pw_binding){v->reg, view, tn_lane_size(v->lane)};
  }
}

/* Where each slot begins, and the largest tile whose registers fit the buffer. */
static bool fill_slots(const slots *s, tn_pw_program *p) {
  static const uint32_t size[3] = {8, 4, 1};
  uint32_t offset = 0;
  int32_t n = 0;
  for (int32_t k = 0; k < 3; k++)
    for (int32_t i = 0; i < s->n[k]; i++, offset += size[k]) p->slots[n++] = offset;
  for (p->tile = TN_TILE; p->tile > TN_PW_LEAST_TILE && offset * p->tile > TN_PW_BUFFER;) p->tile /= 2;
  return offset * p->tile <= TN_PW_BUFFER;
}

static void fill_insns(const compiler *c, tn_pw_program *p) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    tn_pw_insn *insn = &p->insns[i];
    *insn = c->insns[i];
    if (insn->out != NONE) insn->out = c->vregs[insn->out].reg;
    for (int32_t k = 0; k < 3; k++)
      if (insn->in[k] != NONE) insn->in[k] = c->vregs[insn->in[k]].reg;
  }
}

/* Whether every operand read by element lies as the space does or is a single value. */
static bool any_storage_order(const compiler *c) {
  for (int32_t i = 0; i < c->match->n_in; i++) {
    const tn_type *type = c->match->in[i];
    if (type != NULL && !is_single(type) && !tn_type_same_dims(type, c->space)) return false;
  }
  return !c->positions;
}

static tn_status build(compiler *c, tn_pw_program **program) {
  slots *s = tn_new(c->handle, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  bool fits = assign_slots(c, s);
  int32_t n_registers = fits ? number_registers(c, s) : 0, n_bindings = n_registers - c->n_slots;
  size_t bytes = program_bytes(c, n_bindings);
  if (!fits || n_registers > TN_PW_REGISTERS) {
    tn_delete(c->handle, s);
    return no_room(c);
  }
  uint8_t *block = tn_new(c->handle, bytes);
  tn_pw_program *p = (tn_pw_program *)(void *)block;
  if (p == NULL) {
    tn_delete(c->handle, s);
    return TN_ENOMEM;
  }
  carve(&block, sizeof *p);
  p->bytes = bytes;
  p->count = tn_type_count(c->space);
  p->insns = carve(&block, (size_t)c->n_insns * sizeof(tn_pw_insn));
  p->maps = carve(&block, (size_t)c->n_maps * sizeof(tn_pw_map));
  p->tables = carve(&block, (size_t)c->n_tables * sizeof(int64_t));
  p->slots = carve(&block, (size_t)c->n_slots * sizeof(uint32_t));
  p->bindings = carve(&block, (size_t)n_bindings * sizeof(tn_pw_binding));
  p->inplace = carve(&block, (size_t)c->n_inplace * sizeof(int32_t[2]));
  p->n_prologue = c->n_prologue;
  p->n_insns = c->n_insns;
  p->n_slots = c->n_slots;
  p->n_inplace = c->n_inplace;
  p->storage_order = any_storage_order(c);
  memcpy(p->maps, c->maps, (size_t)c->n_maps * sizeof(tn_pw_map));
  memcpy(p->tables, c->tables, (size_t)c->n_tables * sizeof(int64_t));
  memcpy(p->inplace, c->inplace, (size_t)c->n_inplace * sizeof(int32_t[2]));
  fill_insns(c, p);
  fill_bindings(c, p);
  fits = fill_slots(s, p);
  tn_delete(c->handle, s);
  if (fits) {
    *program = p;
    return TN_OK;
  }
  tn_delete(c->handle, p);
  return no_room(c);
}

/* ---- from the match to the program ---- */

static void free_compiler(compiler *c) {
  void *const blocks[] = {c->types, c->regs, c->vregs, c->insns, c->maps, c->tables, c->inplace};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(c->handle, blocks[i]);
}

static size_t table_entries(const tn_match *m) {
  size_t n = 0;
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node.op, "spread") == 0)
      n += 2 * (size_t)((const tn_spread_attributes *)m->nodes[i].node.attributes)->starts.n;
  return n;
}

/* A node becomes at most three instructions, an operand and a result one each. */
static tn_status allocate_compiler(compiler *c) {
  const tn_match *m = c->match;
  c->n_values = m->n_in;
  for (int32_t i = 0; i < m->n_nodes; i++) c->n_values += m->nodes[i].node.n_out;
  size_t insns = 3 * (size_t)m->n_nodes + (size_t)m->n_in + (size_t)m->n_out;
  c->types = tn_new(c->handle, (size_t)c->n_values * sizeof *c->types);
  c->regs = tn_new(c->handle, (size_t)c->n_values * sizeof *c->regs);
  c->vregs = tn_new(c->handle, insns * sizeof *c->vregs);
  c->insns = tn_new(c->handle, insns * sizeof *c->insns);
  c->maps = tn_new(c->handle, ((size_t)m->n_in + (size_t)m->n_nodes) * sizeof *c->maps);
  c->tables = tn_new(c->handle, (table_entries(m) + 1) * sizeof *c->tables);
  c->inplace = tn_new(c->handle, ((size_t)m->n_in * (size_t)m->n_out + 1) * sizeof *c->inplace);
  bool all = c->types && c->regs && c->vregs && c->insns && c->maps && c->tables && c->inplace;
  return all ? TN_OK : TN_ENOMEM;
}

static void collect_types(compiler *c) {
  const tn_match *m = c->match;
  for (int32_t i = 0; i < m->n_in; i++) c->types[i] = m->in[i];
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; k < m->nodes[i].node.n_out; k++)
      c->types[m->nodes[i].first_out + k] = &m->nodes[i].node.out[k];
  for (int32_t i = 0; i < c->n_values; i++) c->regs[i] = NONE;
}

static tn_status emit_all(compiler *c) {
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

static tn_status arrange(compiler *c, tn_pw_program **program) {
  tn_pw_insn *spare = tn_new(c->handle, (size_t)c->n_insns * sizeof *spare + 1);
  if (spare == NULL) return TN_ENOMEM;
  hoist(c, spare);
  tn_delete(c->handle, spare);
  find_uses(c);
  place_results(c);
  return build(c, program);
}

tn_status tn_pw_compile(const void *handle, const tn_match *match, tn_pw_program **program) {
  if (match->n_out < 1) return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region has no result");
  compiler c = {.handle = handle, .match = match, .space = match->out[0]};
  tn_status status = allocate_compiler(&c);
  if (status == TN_OK) {
    collect_types(&c);
    status = emit_all(&c);
  }
  if (status == TN_OK) status = arrange(&c, program);
  free_compiler(&c);
  return status;
}
