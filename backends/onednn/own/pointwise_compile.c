/* From a match to a program (pointwise.h):
 *
 *   cut       the order of the elements and its segments (pointwise_space.c)
 *   emit      a few instructions per node, over virtual registers (pointwise_emit.c)
 *   fuse      some of them become one (pointwise_fuse.c)
 *   sort      by how often they run
 *   place     which results may take the memory of which operands, and which are stored at the end
 *   allocate  virtual registers become pieces of the buffer, or the memory of operands and results */
#include <string.h>

#include "backends/onednn/own/pointwise_compile.h"
#include "tenon/attributes.h"

/* ---- sort ---- */

/* In their old order within a rate. `spare` has room for all. */
static void sort(tn_tile_compiler *c, tn_tile_insn *spare) {
  int32_t n = 0;
  for (int32_t rate = 0; rate < TILE_RATES; rate++) {
    for (int32_t i = 0; i < c->n_insns; i++)
      if (c->insns[i].rate == rate) spare[n++] = c->insns[i];
    c->end[rate] = n;
  }
  memcpy(c->insns, spare, (size_t)n * sizeof *spare);
}

/* What is made for later tiles stays alive, since those run again and again. */
static void find_uses(tn_tile_compiler *c) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_tile_insn *insn = &c->insns[i];
    if (insn->out != TILE_NONE) c->vregs[insn->out].made = c->vregs[insn->out].last_use = i;
    for (int32_t k = 0; k < TILE_INPUTS; k++) {
      if (insn->in[k] == TILE_NONE) continue;
      tn_tile_vreg *v = &c->vregs[insn->in[k]];
      v->last_use = v->rate < insn->rate ? TILE_LATER : i;
    }
  }
}

/* ---- place ---- */

/* The position of the last instruction that reads an operand's memory; TILE_NONE: none does; TILE_LATER: it
 * is read anywhere, or by a store at the end. */
static int32_t last_read(const tn_tile_compiler *c, int32_t operand) {
  int32_t last = TILE_NONE;
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_tile_insn *insn = &c->insns[i];
    bool looks =
        insn->op >= TILE_SPLAT && insn->op <= TILE_SPREAD && insn->op != TILE_WIDEN && insn->op != TILE_INDEX;
    if (looks && insn->view == operand && insn->op != TILE_SPLAT) return TILE_LATER;
    if (looks && insn->view == operand) last = i;
  }
  for (int32_t v = 0; v < c->n_vregs; v++) {
    if (c->vregs[v].operand != operand) continue;
    if (c->vregs[v].last_use > last) last = c->vregs[v].last_use;
    for (int32_t r = 0; r < c->match->n_out; r++)
      if (c->regs[c->match->out_number[r]] == v) return TILE_LATER;
  }
  return last;
}

static bool may_share(const tn_tile_compiler *c, int32_t operand, int32_t result) {
  return c->match->in[operand] != NULL && c->regs[operand] != TILE_NONE &&
         tn_type_equal(c->match->in[operand], c->match->out[result]);
}

/* Adds the pairs of a result that are safe if its memory is written at position `made`. */
static bool add_pairs(tn_tile_compiler *c, int32_t result, int32_t made) {
  int32_t before = c->n_inplace;
  for (int32_t i = 0; i < c->match->n_in; i++) {
    if (!may_share(c, i, result) || last_read(c, i) > made) continue;
    c->inplace[c->n_inplace][0] = i;
    c->inplace[c->n_inplace++][1] = result;
  }
  return c->n_inplace > before;
}

/* A result can be written by the instruction that makes it, if it is the only one that has that register, and
 * memory holds lanes. */
static bool can_be_direct(const tn_tile_compiler *c, int32_t result) {
  const tn_tile_vreg *v = &c->vregs[c->regs[c->match->out_number[result]]];
  return v->wide && v->rate == TILE_PER_TILE && v->operand == TILE_NONE && v->result == TILE_NONE &&
         !tn_tile_is_half(c->match->out[result]->dtype);
}

/* Decides for each result between being written where it is made and being stored at the end, when every
 * operand has been read. The latter only where it is the price of sharing memory. */
static void place(tn_tile_compiler *c) {
  int32_t end = TILE_LATER - 1;
  for (int32_t r = 0; r < c->match->n_out; r++) {
    tn_tile_vreg *v = &c->vregs[c->regs[c->match->out_number[r]]];
    bool direct = can_be_direct(c, r);
    if (direct && !add_pairs(c, r, v->made))
      direct = !add_pairs(c, r, end);
    else if (!direct)
      add_pairs(c, r, end);
    if (direct) v->result = r;
  }
  for (int32_t r = 0; r < c->match->n_out; r++)
    if (c->vregs[c->regs[c->match->out_number[r]]].result != r) tn_tile_emit_store(c, r);
  c->end[TILE_PER_TILE] = c->n_insns;
  find_uses(c);
}

/* ---- allocate ---- */

/* Pieces of the buffer: narrow ones, and wide ones by the size of a lane. */
enum { NARROW, WIDE_8, WIDE_4, WIDE_1, KINDS, NARROW_BYTES = 128, ALIGNED = 64 };

typedef struct slots {
  int32_t n[KINDS], n_free[KINDS];
  int32_t free[KINDS][TILE_REGISTERS];
} slots;

static int32_t kind_of(const tn_tile_vreg *v) {
  size_t size = tn_tile_lane_size(v->lane);
  return !v->wide ? NARROW : size == 8 ? WIDE_8 : size == 4 ? WIDE_4 : WIDE_1;
}

static bool in_buffer(const tn_tile_vreg *v) { return v->operand == TILE_NONE && v->result == TILE_NONE; }

static void give(slots *s, const tn_tile_vreg *v) {
  int32_t k = kind_of(v);
  s->free[k][s->n_free[k]++] = v->reg;
}

static bool acquire(slots *s, tn_tile_vreg *v) {
  int32_t k = kind_of(v);
  if (s->n_free[k] == 0 && s->n[k] == TILE_REGISTERS) return false;
  v->reg = s->n_free[k] > 0 ? s->free[k][--s->n_free[k]] : s->n[k]++;
  return true;
}

static void give_inputs(tn_tile_compiler *c, slots *s, int32_t at) {
  const tn_tile_insn *insn = &c->insns[at];
  for (int32_t k = 0; k < TILE_INPUTS; k++) {
    bool again = insn->in[k] == TILE_NONE;
    for (int32_t j = 0; j < k; j++) again = again || insn->in[j] == insn->in[k];
    if (again) continue;
    const tn_tile_vreg *v = &c->vregs[insn->in[k]];
    if (in_buffer(v) && v->last_use == at) give(s, v);
  }
}

/* A result may take the register of an operand that dies in the same instruction: loops read a group of lanes
 * before they write it. Wider lanes must not overwrite narrower ones, which have registers of their own. */
static bool assign_slots(tn_tile_compiler *c, slots *s) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    const tn_tile_insn *insn = &c->insns[i];
    tn_tile_vreg *out = insn->out == TILE_NONE ? NULL : &c->vregs[insn->out];
    bool wanted = out != NULL && in_buffer(out), narrow = wanted && !out->wide;
    if (!narrow) give_inputs(c, s, i);
    if (wanted && !acquire(s, out)) return false;
    if (narrow) give_inputs(c, s, i);
    if (wanted && out->last_use == i) give(s, out); /* nobody reads it */
  }
  return true;
}

/* Slots first, in the order of their kinds, then registers that are memory. */
static int32_t number_registers(tn_tile_compiler *c, const slots *s) {
  int32_t base[KINDS], n = 0;
  for (int32_t k = 0; k < KINDS; k++) {
    base[k] = n;
    n += s->n[k];
  }
  c->n_slots = n;
  for (int32_t i = 0; i < c->n_vregs; i++) {
    tn_tile_vreg *v = &c->vregs[i];
    if (!in_buffer(v))
      v->reg = n++;
    else if (v->reg != TILE_NONE)
      v->reg += base[kind_of(v)];
  }
  return n;
}

static tn_status no_room(const tn_tile_compiler *c) {
  return tn_fail(c->handle, TN_EUNSUPPORTED, NULL, "the region of %d nodes has too many values alive at once",
                 (int)c->match->n_nodes);
}

static size_t slot_bytes(int32_t kind, int64_t tile) {
  static const size_t lane[KINDS] = {0, 8, 4, 1};
  size_t bytes = kind == NARROW ? NARROW_BYTES : lane[kind] * (size_t)tile;
  return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static size_t buffer_bytes(const slots *s, int64_t tile) {
  size_t bytes = 0;
  for (int32_t k = 0; k < KINDS; k++) bytes += (size_t)s->n[k] * slot_bytes(k, tile);
  return bytes;
}

/* The largest tile whose registers fit the buffer. */
static bool fill_slots(const tn_tile_compiler *c, const slots *s, tn_tile_program *p) {
  int64_t tile = TILE_MOST;
  uint32_t offset = 0;
  int32_t n = 0;
  while (tile > TILE_LEAST && buffer_bytes(s, tile) > TILE_BUFFER) tile /= 2;
  p->tile = tile / c->cycle * c->cycle;
  if (p->tile == 0 || buffer_bytes(s, p->tile) > TILE_BUFFER) return false;
  for (int32_t k = 0; k < KINDS; k++)
    for (int32_t i = 0; i < s->n[k]; i++, offset += (uint32_t)slot_bytes(k, p->tile)) p->slots[n++] = offset;
  return true;
}

/* ---- the program ---- */

static size_t align16(size_t n) { return (n + 15) & ~(size_t)15; }

/* Cuts `bytes` off a block. */
static void *carve(uint8_t **block, size_t bytes) {
  void *piece = *block;
  *block += align16(bytes);
  return piece;
}

static size_t program_bytes(const tn_tile_compiler *c, int32_t n_bindings) {
  return align16(sizeof(tn_tile_program)) + align16((size_t)c->n_insns * sizeof(tn_tile_insn)) +
         align16((size_t)c->n_maps * sizeof(tn_tile_map)) + align16((size_t)c->n_tables * sizeof(int64_t)) +
         align16((size_t)c->n_slots * sizeof(uint32_t)) +
         align16((size_t)n_bindings * sizeof(tn_tile_binding)) +
         align16((size_t)c->n_inplace * sizeof(int32_t[2]));
}

static tn_tile_program *new_program(const tn_tile_compiler *c, int32_t n_bindings) {
  size_t bytes = program_bytes(c, n_bindings);
  uint8_t *block = tn_new(c->handle, bytes);
  tn_tile_program *p = (tn_tile_program *)(void *)block;
  if (p == NULL) return NULL;
  carve(&block, sizeof *p);
  p->bytes = bytes;
  p->insns = carve(&block, (size_t)c->n_insns * sizeof(tn_tile_insn));
  p->maps = carve(&block, (size_t)c->n_maps * sizeof(tn_tile_map));
  p->tables = carve(&block, (size_t)c->n_tables * sizeof(int64_t));
  p->slots = carve(&block, (size_t)c->n_slots * sizeof(uint32_t));
  p->bindings = carve(&block, (size_t)n_bindings * sizeof(tn_tile_binding));
  p->inplace = carve(&block, (size_t)c->n_inplace * sizeof(int32_t[2]));
  p->count = c->space.count;
  p->segment = c->space.segment;
  p->n_slots = c->n_slots;
  p->n_inplace = c->n_inplace;
  memcpy(p->end, c->end, sizeof p->end);
  memcpy(p->maps, c->maps, (size_t)c->n_maps * sizeof(tn_tile_map));
  memcpy(p->tables, c->tables, (size_t)c->n_tables * sizeof(int64_t));
  memcpy(p->inplace, c->inplace, (size_t)c->n_inplace * sizeof(int32_t[2]));
  return p;
}

static void fill_bindings(const tn_tile_compiler *c, tn_tile_program *p) {
  for (int32_t i = 0; i < c->n_vregs; i++) {
    const tn_tile_vreg *v = &c->vregs[i];
    if (in_buffer(v)) continue;
    int32_t view = v->operand != TILE_NONE ? v->operand : c->match->n_in + v->result;
    p->bindings[p->n_bindings++] = (tn_tile_binding){v->reg, view, v->map, v->size};
  }
}

static bool fill_insns(const tn_tile_compiler *c, int32_t isa, tn_tile_program *p) {
  for (int32_t i = 0; i < c->n_insns; i++) {
    tn_tile_insn *insn = &p->insns[i];
    *insn = c->insns[i];
    if (insn->out != TILE_NONE) insn->out = c->vregs[insn->out].reg;
    for (int32_t k = 0; k < TILE_INPUTS; k++)
      if (insn->in[k] != TILE_NONE) insn->in[k] = c->vregs[insn->in[k]].reg;
    if (!tn_tile_resolve(insn, isa)) return false;
  }
  return true;
}

/* ---- chunks ---- */

static double weight(const tn_tile_insn *insn) {
  switch (insn->op) {
  case TILE_SIN:
  case TILE_COS:
  case TILE_POW: return 100;
  case TILE_EXP:
  case TILE_LOG:
  case TILE_TANH:
  case TILE_SIGMOID:
  case TILE_ERF: return insn->lane == TN_TILE_F32 ? 8 : 100;
  case TILE_UNIFORM:
  case TILE_NORMAL:
  case TILE_GATHER: return 10;
  case TILE_DIV:
  case TILE_SQRT:
  case TILE_RSQRT:
  case TILE_RECIPROCAL: return 3;
  default: return 1;
  }
}

static double bytes_of(const tn_match *m) {
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += m->in[i] == NULL ? 0 : (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  return bytes;
}

/* Nanoseconds for an element: what memory takes, and what the instructions take. */
static double element_ns(const tn_match *m, const tn_tile_program *p) {
  double work = 0;
  for (int32_t i = p->end[TILE_PER_SEGMENT]; i < p->end[TILE_PER_TILE]; i++) work += weight(&p->insns[i]);
  return bytes_of(m) / ((double)p->count * 10) + 0.05 * work;
}

/* A chunk is worth waking a thread for. There is an even number of them where there are few. */
static void choose_chunks(const tn_match *m, tn_tile_program *p) {
  const double chunk_ns = 16000;
  if (p->count == 0) return;
  double all_ns = (double)p->count * element_ns(m, p);
  int64_t n = (int64_t)(all_ns / chunk_ns) + 1, even = 1;
  while (even < n) even *= 2;
  if (even <= 16) n = even;
  p->chunk = (p->count + n - 1) / n;
  p->chunk = (p->chunk + p->tile - 1) / p->tile * p->tile;
  p->n_chunks = (p->count + p->chunk - 1) / p->chunk;
  p->cost_s = all_ns * 1e-9 + 1e-7;
  p->streams = bytes_of(m) > 1 << 20;
}

/* ---- from the match to the program ---- */

static tn_status build(tn_tile_compiler *c, int32_t isa, tn_tile_program **program) {
  slots *s = tn_new(c->handle, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  bool fits = assign_slots(c, s);
  int32_t n_registers = fits ? number_registers(c, s) : 0;
  fits = fits && n_registers <= TILE_REGISTERS;
  tn_tile_program *p = fits ? new_program(c, n_registers - c->n_slots) : NULL;
  if (p != NULL) {
    fill_bindings(c, p);
    fits = fill_insns(c, isa, p) && fill_slots(c, s, p);
  }
  tn_delete(c->handle, s);
  if (p != NULL && fits) {
    choose_chunks(c->match, p);
    *program = p;
    return TN_OK;
  }
  tn_delete(c->handle, p);
  return fits ? TN_ENOMEM : no_room(c);
}

static size_t table_entries(const tn_match *m) {
  size_t n = 0;
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node->op, "spread") == 0)
      n += 2 * (size_t)((const tn_spread_attributes *)m->nodes[i].node->attributes)->starts.n;
  return n;
}

static void free_compiler(tn_tile_compiler *c) {
  void *const blocks[] = {c->types, c->regs, c->vregs, c->insns, c->maps, c->tables, c->inplace};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(c->handle, blocks[i]);
}

static size_t most_insns(const tn_match *m) {
  return TILE_INSNS_PER_NODE * (size_t)m->n_nodes + TILE_INSNS_PER_OPERAND * (size_t)m->n_in +
         (size_t)m->n_out;
}

static tn_status allocate_compiler(tn_tile_compiler *c) {
  const tn_match *m = c->match;
  size_t insns = most_insns(m);
  c->n_values = m->n_in;
  for (int32_t i = 0; i < m->n_nodes; i++) c->n_values += m->nodes[i].node->n_out;
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

static void collect_types(tn_tile_compiler *c) {
  const tn_match *m = c->match;
  for (int32_t i = 0; i < m->n_in; i++) c->types[i] = m->in[i];
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; k < m->nodes[i].node->n_out; k++)
      c->types[m->nodes[i].first_out + k] = &m->nodes[i].node->out[k];
  for (int32_t i = 0; i < c->n_values; i++) c->regs[i] = TILE_NONE;
}

/* What is read element by element: not the values of spread. */
static void forget_tables(const tn_match *m, const tn_type **types) {
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node->op, "spread") == 0 && m->nodes[i].in[0] < m->n_in)
      types[m->nodes[i].in[0]] = NULL;
}

static tn_status cut(tn_tile_compiler *c) {
  const tn_match *m = c->match;
  const tn_type **types = tn_new(c->handle, ((size_t)m->n_in + 1) * sizeof *types);
  if (types == NULL) return TN_ENOMEM;
  memcpy(types, m->in, (size_t)m->n_in * sizeof *types);
  forget_tables(m, types);
  for (int32_t i = 0; i < m->n_in; i++)
    if (types[i] != NULL && (tn_tile_is_single(types[i]) || !tn_tile_broadcasts(types[i], &c->space.type)))
      types[i] = NULL;
  tn_tile_space_cut(&c->space, types, m->n_in);
  for (int32_t i = 0; i < m->n_in && c->cycle > 0; i++) {
    if (types[i] == NULL || tn_type_same_dims(types[i], &c->space.type)) continue;
    int64_t cycle = tn_tile_cycle(&c->space, types[i]);
    if (c->space.first == 0 && cycle <= TILE_MOST && cycle > c->cycle) c->cycle = cycle;
  }
  if (c->cycle == 0) c->cycle = 1;
  tn_delete(c->handle, types);
  return TN_OK;
}

static tn_status arrange(tn_tile_compiler *c, int32_t isa, tn_tile_program **program) {
  tn_tile_insn *spare = tn_new(c->handle, most_insns(c->match) * sizeof *spare);
  int32_t *uses = tn_new(c->handle, (size_t)c->n_vregs * sizeof *uses + 1);
  bool room = spare != NULL && uses != NULL;
  if (room) {
    tn_tile_fuse(c, uses);
    sort(c, spare);
  }
  tn_delete(c->handle, spare);
  tn_delete(c->handle, uses);
  if (!room) return TN_ENOMEM;
  find_uses(c);
  place(c);
  return build(c, isa, program);
}

static tn_status compile_in(tn_tile_compiler *c, int32_t isa, tn_tile_program **program) {
  tn_status status = allocate_compiler(c);
  if (status == TN_OK) {
    collect_types(c);
    status = cut(c);
  }
  if (status == TN_OK) status = tn_tile_emit(c);
  if (status == TN_OK) status = arrange(c, isa, program);
  free_compiler(c);
  return status;
}

static bool has_positions(const tn_match *m) {
  static const char *const op[] = {"iota", "spread", "random_uniform", "random_normal"};
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (size_t k = 0; k < sizeof op / sizeof op[0]; k++)
      if (strcmp(m->nodes[i].node->op, op[k]) == 0) return true;
  return false;
}

bool tn_tile_takes_any_layout(const tn_match *m) {
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL && !tn_tile_is_single(m->in[i]) && !tn_type_same_dims(m->in[i], m->out[0]))
      return false;
  return !has_positions(m);
}

static int64_t storage_count(const tn_type *type, const tn_layout *layout) {
  int64_t dims[TN_MAX_RANK] = {0}, count = 1;
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  for (int32_t i = 0; layout != NULL && i < layout->n_blocks; i++) {
    const tn_block *block = &layout->block[i];
    dims[block->dim] = (dims[block->dim] + block->size - 1) / block->size;
    count *= block->size;
  }
  for (int32_t i = 0; i < type->rank; i++) count *= dims[i];
  return count;
}

tn_status tn_tile_compile(const void *handle, const tn_match *m, const tn_layout *layout, int32_t isa,
                          tn_tile_program **program) {
  if (m->n_out < 1) return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region has no result");
  tn_tile_compiler c = {.handle = handle, .match = m, .cycle = 1};
  if (tn_tile_takes_any_layout(m) && tn_type_count(m->out[0]) != 1)
    c.space = tn_tile_space_flat(m->out[0], storage_count(m->out[0], layout));
  else if (!tn_tile_space_of(m->out[0], layout, &c.space))
    return tn_fail(handle, TN_EUNSUPPORTED, "layout",
                   "regions with repeated operands are done row-major or in "
                   "blocks of 8 or 16 channels that divide them");
  tn_tile_compiler again = c;
  again.cycle = 0; /* no cycles, which need large tiles */
  tn_status status = compile_in(&c, isa, program);
  if (status == TN_EUNSUPPORTED && c.cycle > 1) status = compile_in(&again, isa, program);
  return status;
}
