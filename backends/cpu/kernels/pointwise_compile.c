/* From a match to a program (pointwise_ops.h), in four steps:
 *
 *   emit      a few instructions per node, over virtual registers (pointwise_emit.c)
 *   hoist     instructions whose result is the same everywhere go to the prologue
 *   inplace   which results may take the memory of which operands
 *   allocate  virtual registers become pieces of the buffer, or the memory of operands and results */
#include "backends/cpu/kernels/pointwise_compile.h"

#include <string.h>

#include "tenon/attributes.h"

/* ---- hoist ---- */

static bool is_prologue(const tn_pw_compiler *c, const tn_pw_insn *insn) {
  return insn->out != TN_PW_NONE && c->vregs[insn->out].uniform;
}

/* Uniform instructions first, both parts in their old order. `spare` has room for all. */
static void hoist(tn_pw_compiler *c, tn_pw_insn *spare) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n_insns; i++)
    if (is_prologue(c, &c->insns[i])) spare[n++] = c->insns[i];
  c->n_prologue = n;
  for (int32_t i = 0; i < c->n_insns; i++)
    if (!is_prologue(c, &c->insns[i])) spare[n++] = c->insns[i];
  memcpy(c->insns, spare, (size_t)n * sizeof *spare);
}

/* What the prologue makes for the body stays alive, since the body runs again and again. */
static void find_uses(tn_pw_compiler *c) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    if (insn->out != TN_PW_NONE) c->vregs[insn->out].made = c->vregs[insn->out].last_use = i;
    for (int32_t k = 0; k < 3; k++) {
      if (insn->in[k] == TN_PW_NONE) continue;
      tn_pw_vreg *v = &c->vregs[insn->in[k]];
      v->last_use = v->uniform && i >= c->n_prologue ? TN_PW_LATER : i;
    }
  }
}

/* ---- in-place pairs ---- */

/* The position of the last instruction that reads an operand's memory; TN_PW_NONE if none does; TN_PW_LATER
 * if it is read anywhere but at the element at hand. */
static int32_t last_read(const tn_pw_compiler *c, int32_t operand) {
  int32_t last = TN_PW_NONE;
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    if (insn->op == PW_SPREAD && insn->view == operand) return TN_PW_LATER;
    if (insn->op == PW_LOAD && insn->view == operand) last = i;
  }
  int32_t v = c->regs[operand];
  if (v == TN_PW_NONE || c->vregs[v].operand != operand) return last;
  for (int32_t r = 0; r < c->match->n_out; r++)
    if (c->regs[c->match->out_number[r]] == v) return TN_PW_LATER; /* a store at the end reads it */
  return c->vregs[v].last_use;
}

static bool may_share(const tn_pw_compiler *c, int32_t operand, int32_t result) {
  return c->match->in[operand] != NULL && c->regs[operand] != TN_PW_NONE &&
         tn_type_equal(c->match->in[operand], c->match->out[result]);
}

/* Adds the pairs of a result that are safe if its memory is written at position `made`. */
static bool add_pairs(tn_pw_compiler *c, int32_t result, int32_t made) {
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
static bool can_be_direct(const tn_pw_compiler *c, int32_t result) {
  const tn_pw_vreg *v = &c->vregs[c->regs[c->match->out_number[result]]];
  return !v->uniform && v->operand == TN_PW_NONE && v->result == TN_PW_NONE &&
         tn_lane_is_stored(c->match->out[result]->dtype);
}

/* Decides for each result between being written where it is made and being stored at the end, when
 * every operand has been read. The latter only where it is the price of sharing memory. */
static void place_results(tn_pw_compiler *c) {
  int32_t end = TN_PW_LATER - 1;
  for (int32_t r = 0; r < c->match->n_out; r++) {
    tn_pw_vreg *v = &c->vregs[c->regs[c->match->out_number[r]]];
    bool direct = can_be_direct(c, r);
    if (direct && !add_pairs(c, r, v->made))
      direct = !add_pairs(c, r, end);
    else if (!direct)
      add_pairs(c, r, end);
    if (direct) v->result = r;
  }
  for (int32_t r = 0; r < c->match->n_out; r++)
    if (c->vregs[c->regs[c->match->out_number[r]]].result != r) tn_pw_emit_store(c, r);
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

static bool in_buffer(const tn_pw_vreg *v) { return v->operand == TN_PW_NONE && v->result == TN_PW_NONE; }

static void release(slots *s, const tn_pw_vreg *v) {
  int32_t k = slot_class(v->lane);
  s->free[k][s->n_free[k]++] = v->reg;
}

static bool acquire(slots *s, tn_pw_vreg *v) {
  int32_t k = slot_class(v->lane);
  if (s->n_free[k] == 0 && s->n[k] == TN_PW_REGISTERS) return false;
  v->reg = s->n_free[k] > 0 ? s->free[k][--s->n_free[k]] : s->n[k]++;
  return true;
}

/* A result may take the register of an operand that dies in the same instruction. */
static bool assign_slots(tn_pw_compiler *c, slots *s) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_pw_insn *insn = &c->insns[i];
    for (int32_t k = 0; k < 3; k++) {
      bool again = insn->in[k] == TN_PW_NONE;
      for (int32_t j = 0; j < k; j++) again = again || insn->in[j] == insn->in[k];
      if (again) continue;
      const tn_pw_vreg *v = &c->vregs[insn->in[k]];
      if (in_buffer(v) && v->last_use == i) release(s, v);
    }
    if (insn->out == TN_PW_NONE || !in_buffer(&c->vregs[insn->out])) continue;
    tn_pw_vreg *out = &c->vregs[insn->out];
    if (!acquire(s, out)) return false;
    if (out->last_use == i) release(s, out); /* nobody reads it */
  }
  return true;
}

/* Slots numbered by size, largest first, which keeps them aligned; memory registers after them. */
static int32_t number_registers(tn_pw_compiler *c, const slots *s) {
  int32_t base[3] = {0, s->n[0], s->n[0] + s->n[1]}, n = base[2] + s->n[2];
  c->n_slots = n;
  for (int32_t i = 0; i < c->n_vregs; i++) {
    tn_pw_vreg *v = &c->vregs[i];
    if (!in_buffer(v))
      v->reg = n++;
    else if (v->reg != TN_PW_NONE)
      v->reg += base[slot_class(v->lane)];
  }
  return n;
}

static tn_status no_room(const tn_pw_compiler *c) {
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

static size_t program_bytes(const tn_pw_compiler *c, int32_t n_bindings) {
  return align16(sizeof(tn_pw_program)) + align16((size_t)c->n_insns * sizeof(tn_pw_insn)) +
         align16((size_t)c->n_maps * sizeof(tn_pw_map)) + align16((size_t)c->n_tables * sizeof(int64_t)) +
         align16((size_t)c->n_slots * sizeof(uint32_t)) +
         align16((size_t)n_bindings * sizeof(tn_pw_binding)) +
         align16((size_t)c->n_inplace * sizeof(int32_t[2]));
}

static void fill_bindings(const tn_pw_compiler *c, tn_pw_program *p) {
  for (int32_t i = 0; i < c->n_vregs; i++) {
    const tn_pw_vreg *v = &c->vregs[i];
    if (in_buffer(v)) continue;
    int32_t view = v->operand != TN_PW_NONE ? v->operand : c->match->n_in + v->result;
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

static void fill_insns(const tn_pw_compiler *c, tn_pw_program *p) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    tn_pw_insn *insn = &p->insns[i];
    *insn = c->insns[i];
    if (insn->out != TN_PW_NONE) insn->out = c->vregs[insn->out].reg;
    for (int32_t k = 0; k < 3; k++)
      if (insn->in[k] != TN_PW_NONE) insn->in[k] = c->vregs[insn->in[k]].reg;
  }
}

/* Whether every operand read by element lies as the space does or is a single value. */
static bool any_storage_order(const tn_pw_compiler *c) {
  for (int32_t i = 0; i < c->match->n_in; i++) {
    const tn_type *type = c->match->in[i];
    if (type != NULL && !tn_pw_is_single(type) && !tn_type_same_dims(type, c->space)) return false;
  }
  return !c->positions;
}

static tn_status build(tn_pw_compiler *c, tn_pw_program **program) {
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

static void free_compiler(tn_pw_compiler *c) {
  void *const blocks[] = {c->types, c->regs, c->vregs, c->insns, c->maps, c->tables, c->inplace};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(c->handle, blocks[i]);
}

static size_t table_entries(const tn_match *m) {
  size_t n = 0;
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node->op, "spread") == 0)
      n += 2 * (size_t)((const tn_spread_attributes *)m->nodes[i].node->attributes)->starts.n;
  return n;
}

/* A node becomes at most six instructions, an operand and a result one each. */
static tn_status allocate_compiler(tn_pw_compiler *c) {
  const tn_match *m = c->match;
  c->n_values = m->n_in;
  for (int32_t i = 0; i < m->n_nodes; i++) c->n_values += m->nodes[i].node->n_out;
  size_t insns = TN_PW_INSNS_PER_NODE * (size_t)m->n_nodes + (size_t)m->n_in + (size_t)m->n_out;
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

static void collect_types(tn_pw_compiler *c) {
  const tn_match *m = c->match;
  for (int32_t i = 0; i < m->n_in; i++) c->types[i] = m->in[i];
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; k < m->nodes[i].node->n_out; k++)
      c->types[m->nodes[i].first_out + k] = &m->nodes[i].node->out[k];
  for (int32_t i = 0; i < c->n_values; i++) c->regs[i] = TN_PW_NONE;
}

static tn_status arrange(tn_pw_compiler *c, tn_pw_program **program) {
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
  tn_pw_compiler c = {.handle = handle, .match = match, .space = match->out[0]};
  tn_status status = allocate_compiler(&c);
  if (status == TN_OK) {
    collect_types(&c);
    status = tn_pw_emit(&c);
  }
  if (status == TN_OK) status = arrange(&c, program);
  free_compiler(&c);
  return status;
}
