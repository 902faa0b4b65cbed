#include "backends/shared/pointwise/program.h"

#include <string.h>

/* ---- registers ---- */

/* Pieces of the buffer: narrow ones, and others by the size of a lane, largest first, which keeps them
 * aligned. */
enum { NARROW, WIDE_8, WIDE_4, WIDE_1, KINDS, ALIGNED = 64 };

typedef struct program_slots {
  int32_t n[KINDS], n_free[KINDS];
  int32_t free[KINDS][TN_PW_REGISTERS];
} program_slots;

static int32_t program_kind_of(const tn_pw_value *v) {
  size_t size = tn_lane_size(v->lane);
  return v->narrow ? NARROW : size == 8 ? WIDE_8 : size == 4 ? WIDE_4 : WIDE_1;
}

static bool program_in_buffer(const tn_pw_value *v) {
  return v->operand == TN_PW_NONE && v->result == TN_PW_NONE;
}

static void program_give(program_slots *s, const tn_pw_value *v) {
  int32_t k = program_kind_of(v);
  s->free[k][s->n_free[k]++] = v->reg;
}

static bool program_take(program_slots *s, tn_pw_value *v) {
  int32_t k = program_kind_of(v);
  if (s->n_free[k] == 0 && s->n[k] == TN_PW_REGISTERS) return false;
  v->reg = s->n_free[k] > 0 ? s->free[k][--s->n_free[k]] : s->n[k]++;
  return true;
}

static void program_give_inputs(const tn_pw_region *r, program_slots *s, int32_t at) {
  const tn_pw_insn *insn = &r->insns[at];
  for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
    bool again = insn->in[k] == TN_PW_NONE;
    for (int32_t j = 0; j < k; j++) again = again || insn->in[j] == insn->in[k];
    if (again) continue;
    const tn_pw_value *v = &r->values[insn->in[k]];
    if (program_in_buffer(v) && v->last_use == at) program_give(s, v);
  }
}

/* A result may take the register of an operand that dies in the same instruction: loops read lanes before
 * they write them. Wider lanes must not overwrite narrower ones, so a narrow result has a register of its
 * own. */
static bool program_assign_slots(tn_pw_region *r, program_slots *s) {
  for (int32_t i = 0; i < r->n_insns; i++) {
    int32_t out = r->insns[i].out;
    tn_pw_value *v = out == TN_PW_NONE ? NULL : &r->values[out];
    bool wanted = v != NULL && program_in_buffer(v), narrow = wanted && v->narrow;
    if (!narrow) program_give_inputs(r, s, i);
    if (wanted && !program_take(s, v)) return false;
    if (narrow) program_give_inputs(r, s, i);
    if (wanted && v->last_use == i) program_give(s, v); /* it has no use */
  }
  return true;
}

/* Slots first, in the order of their kinds, then registers that are memory. */
static int32_t program_number_registers(tn_pw_region *r, const program_slots *s, int32_t *n_slots) {
  int32_t base[KINDS], n = 0;
  for (int32_t k = 0; k < KINDS; k++) {
    base[k] = n;
    n += s->n[k];
  }
  *n_slots = n;
  for (int32_t i = 0; i < r->n_values; i++) {
    tn_pw_value *v = &r->values[i];
    if (!program_in_buffer(v))
      v->reg = n++;
    else if (v->reg != TN_PW_NONE)
      v->reg += base[program_kind_of(v)];
  }
  return n;
}

/* ---- tiles ---- */

static size_t program_slot_bytes(int32_t kind, int64_t tile) {
  static const size_t lane[KINDS] = {0, 8, 4, 1};
  size_t bytes = kind == NARROW ? TN_PW_NARROW_BYTES : lane[kind] * (size_t)tile;
  return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static size_t program_buffer_bytes(const program_slots *s, int64_t tile) {
  size_t bytes = 0;
  for (int32_t k = 0; k < KINDS; k++) bytes += (size_t)s->n[k] * program_slot_bytes(k, tile);
  return bytes;
}

/* 0: there is no such tile. */
static int64_t program_tile(const program_slots *s, const tn_pw_machine *m) {
  int64_t tile = m->most;
  while (tile > m->least && program_buffer_bytes(s, tile) > m->buffer) tile /= 2;
  tile = tile / m->multiple * m->multiple;
  return program_buffer_bytes(s, tile) > m->buffer ? 0 : tile;
}

static void program_fill_slots(const program_slots *s, tn_pw_program *p) {
  uint32_t offset = 0;
  int32_t n = 0;
  for (int32_t k = 0; k < KINDS; k++)
    for (int32_t i = 0; i < s->n[k]; i++, offset += (uint32_t)program_slot_bytes(k, p->tile))
      p->slots[n++] = offset;
}

/* ---- the block ---- */

static size_t program_aligned(size_t n) { return (n + 15) & ~(size_t)15; }

/* Cuts `bytes` off a block; NULL: only counts them. */
static void *program_carve(uint8_t *block, size_t *at, size_t bytes) {
  void *piece = block != NULL ? block + *at : NULL;
  *at += program_aligned(bytes);
  return piece;
}

static size_t program_lay_out(const tn_pw_region *r, const tn_pw_machine *m, const tn_pw_program *sizes,
                              uint8_t *block, tn_pw_program *p) {
  size_t at = 0;
  program_carve(block, &at, m->program);
  p->insns = program_carve(block, &at, (size_t)r->n_insns * m->insn);
  p->maps = program_carve(block, &at, (size_t)r->n_maps * sizeof(tn_pw_map));
  p->tables = program_carve(block, &at, (size_t)r->n_tables * sizeof(int64_t));
  p->slots = program_carve(block, &at, (size_t)sizes->n_slots * sizeof(uint32_t));
  p->bindings = program_carve(block, &at, (size_t)sizes->n_bindings * sizeof(tn_pw_binding));
  p->inplace = program_carve(block, &at, (size_t)r->n_inplace * sizeof(int32_t[2]));
  return at;
}

static void program_fill_bindings(const tn_pw_region *r, tn_pw_binding *b) {
  const tn_match *m = r->match;
  for (int32_t i = 0; i < r->n_values; i++) {
    const tn_pw_value *v = &r->values[i];
    if (program_in_buffer(v)) continue;
    bool operand = v->operand != TN_PW_NONE;
    const tn_type *type = operand ? m->in[v->operand] : m->out[v->result];
    *b++ = (tn_pw_binding){v->reg, operand ? v->operand : m->n_in + v->result, v->map,
                           tn_dtype_size(type->dtype)};
  }
}

static tn_pw_program *program_new(const tn_pw_region *r, const tn_pw_machine *m, tn_pw_program sizes) {
  sizes.bytes = program_lay_out(r, m, &sizes, NULL, &sizes);
  uint8_t *block = tn_new(r->handle, sizes.bytes);
  tn_pw_program *p = (tn_pw_program *)(void *)block;
  if (p == NULL) return NULL;
  *p = sizes;
  program_lay_out(r, m, &sizes, block, p);
  memcpy(p->end, r->end, sizeof p->end);
  memcpy(p->maps, r->maps, (size_t)r->n_maps * sizeof(tn_pw_map));
  memcpy(p->tables, r->tables, (size_t)r->n_tables * sizeof(int64_t));
  memcpy(p->inplace, r->inplace, (size_t)r->n_inplace * sizeof(int32_t[2]));
  program_fill_bindings(r, p->bindings);
  return p;
}

tn_status tn_pw_assign(tn_pw_region *r, const tn_pw_machine *m, tn_pw_program **program) {
  program_slots s;
  tn_pw_program sizes = {.count = r->space.count, .n_inplace = r->n_inplace};
  memset(s.n, 0, sizeof s.n);
  memset(s.n_free, 0, sizeof s.n_free);
  bool fits = program_assign_slots(r, &s);
  int32_t n = fits ? program_number_registers(r, &s, &sizes.n_slots) : 0;
  sizes.n_bindings = n - sizes.n_slots;
  sizes.storage_order = !r->positions && tn_pw_is_elementwise(r->match);
  sizes.tile = program_tile(&s, m);
  if (!fits || n > TN_PW_REGISTERS || sizes.tile == 0)
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL,
                   "the region of %d nodes has too many values alive at once", (int)r->match->n_nodes);
  *program = program_new(r, m, sizes);
  if (*program == NULL) return TN_ENOMEM;
  program_fill_slots(&s, *program);
  return TN_OK;
}
