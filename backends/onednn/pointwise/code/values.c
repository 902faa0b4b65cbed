/* Where the values of a unit are. A value is loaded where it is first read and stored where it is made, if
 * anything but the unit reads it; in between it has a vector register, until its last use. Narrow values have
 * theirs for the whole loop, or are read from the frame: with AVX2, and with AVX-512 where there are many.
 *
 * Where no register is left, the value that is read last of all gives up its own (Belady, IBM Systems
 * Journal 1966), and waits in the frame unless it is in memory anyway. */
#include "backends/onednn/pointwise/code/unit.h"

UNIT_OP(LOAD, 1, P_NONE, LONGEST, 0x10, false);
UNIT_OP(STORE, 1, P_NONE, LONGEST, 0x11, false);
UNIT_OP(STORE_PAST_CACHES, 1, P_NONE, LONGEST, 0x2b, false);

/* ---- uses ---- */

/* Bytes of a lane of operand k. */
static int32_t value_size(const tn_tile_insn *insn, int32_t k) {
  if (insn->op == TILE_WIDEN) return (int32_t)sizeof(uint16_t);
  return insn->op == TN_PW_WHERE && k == 0 ? 1 : (int32_t)tn_lane_size(insn->lane);
}

int32_t tn_unit_operand_size(const tn_tile_insn *insn, int32_t k) {
  return insn->step[k] ? value_size(insn, k) : 0;
}

int32_t tn_unit_result_size(const tn_tile_insn *insn) {
  if ((insn->op >= TN_PW_EQ && insn->op <= TN_PW_GE) || insn->op == TN_PW_IS_FINITE) return 1;
  return (int32_t)tn_lane_size(insn->op == TN_PW_CAST ? tn_lane_of(insn->dtype) : insn->lane);
}

static bool value_reads(const tn_tile_insn *insn, int32_t reg) {
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn->in[k] == reg) return true;
  return false;
}

/* The instruction behind the present one that is the first to read the value that a register has then;
 * w->end: none does. */
static int32_t value_next_use(const tn_unit_writer *w, int32_t reg) {
  for (int32_t i = w->at + 1; i < w->end; i++) {
    if (value_reads(tn_unit_insn(w, i), reg)) return i;
    if (tn_unit_insn(w, i)->out == reg) break;
  }
  return w->end;
}

/* Whether the result of instruction i is read behind the unit. */
static bool value_is_read_behind(const tn_unit_writer *w, int32_t i) {
  int32_t reg = tn_unit_insn(w, i)->out, end = w->program->base.end[TN_PW_PER_ELEMENT];
  for (int32_t j = i + 1; j < end; j++) {
    if (j >= w->end && value_reads(tn_unit_insn(w, j), reg)) return true;
    if (tn_unit_insn(w, j)->out == reg) return false;
  }
  return false;
}

/* Whether the result of instruction i is a result of the region, in its memory. */
static bool value_is_result(const tn_unit_writer *w, int32_t i) {
  return tn_unit_insn(w, i)->out >= w->program->base.n_slots;
}

bool tn_unit_is_stored(const tn_unit_writer *w, int32_t i) {
  return value_is_result(w, i) || value_is_read_behind(w, i);
}

/* ---- pointers ---- */

static const int32_t value_base[UNIT_BASES] = {TN_X86_RCX, TN_X86_RDX, 8,  9,  10, 11,
                                               TN_X86_RBX, TN_X86_RBP, 12, 13, 14, 15};

static int32_t value_find(const tn_unit_writer *w, int32_t reg, int32_t result) {
  for (int32_t i = 0; i < w->unit->n_pointers; i++)
    if (w->unit->pointer[i].reg == reg && w->unit->pointer[i].result == result) return i;
  return TN_PW_NONE;
}

/* Pointers to what moves come first, so that pointer i is in value_base[i]. false: there are too many. */
static bool value_point(tn_unit_writer *w, int32_t reg, int32_t result, int32_t size) {
  tn_tile_unit *u = w->unit;
  if (value_find(w, reg, result) != TN_PW_NONE) return true;
  int32_t *count = size > 0 ? &w->n_bases : &w->n_narrow;
  if (*count == (size > 0 ? UNIT_BASES : w->target->narrow)) return false;
  for (int32_t i = u->n_pointers; size > 0 && i > w->n_bases; i--) u->pointer[i] = u->pointer[i - 1];
  u->pointer[size > 0 ? w->n_bases : u->n_pointers] = (tn_tile_pointer){reg, result, size};
  u->n_pointers++;
  (*count)++;
  return true;
}

bool tn_unit_point(tn_unit_writer *w, int32_t i) {
  const tn_tile_insn *insn = tn_unit_insn(w, i);
  for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
    bool made = false;
    for (int32_t j = w->first; j < i && insn->in[k] != TN_PW_NONE; j++)
      made = made || tn_unit_insn(w, j)->out == insn->in[k];
    if (insn->in[k] == TN_PW_NONE || made) continue;
    if (!value_point(w, insn->in[k], TN_PW_NONE, tn_unit_operand_size(insn, k))) return false;
  }
  if (insn->op == TN_PW_STORE)
    return value_point(w, TN_PW_NONE, insn->view, (int32_t)tn_dtype_size(insn->dtype));
  return !tn_unit_is_stored(w, i) || value_point(w, insn->out, TN_PW_NONE, tn_unit_result_size(insn));
}

/* ---- memory ---- */

tn_x86_operand tn_unit_in_frame(size_t offset) {
  return (tn_x86_operand){.kind = TN_X86_MEMORY, .number = TN_X86_RDI, .displacement = (int32_t)offset};
}

/* Lanes of the narrow value of pointer i, in elements of a size. */
static tn_x86_operand value_narrow(const tn_unit_writer *w, int32_t i, int32_t lane, int32_t size) {
  const size_t row = sizeof(float[UNIT_GROUP]) * (size_t)(i - w->n_bases);
  return tn_unit_in_frame(offsetof(tn_tile_frame, narrow) + row + (size_t)(lane * size));
}

static tn_x86_operand value_spilled(const tn_unit_writer *w, int32_t reg) {
  const size_t vector = sizeof(float) * (size_t)w->target->lanes;
  return tn_unit_in_frame(offsetof(tn_tile_frame, spilled) + vector * (size_t)w->spill[reg]);
}

tn_x86_operand tn_unit_memory(const tn_unit_writer *w, int32_t reg, int32_t result) {
  int32_t i = value_find(w, reg, result), size = w->unit->pointer[i].size;
  return (tn_x86_operand){.kind = TN_X86_MEMORY,
                          .number = value_base[i],
                          .scale = size,
                          .displacement = w->part * w->target->lanes * size};
}

/* Where operand k of an instruction is in memory. */
static tn_x86_operand value_memory(const tn_unit_writer *w, const tn_tile_insn *insn, int32_t k) {
  const int32_t reg = insn->in[k], size = value_size(insn, k);
  if (w->memory[reg] == UNIT_IN_FRAME) return value_spilled(w, reg);
  if (insn->step[k]) return tn_unit_memory(w, reg, TN_PW_NONE);
  return value_narrow(w, value_find(w, reg, TN_PW_NONE), w->part * w->target->lanes, size);
}

/* ---- registers ---- */

void tn_unit_forget(tn_unit_writer *w) {
  for (int32_t i = 0; i < TN_PW_REGISTERS; i++) {
    w->held[i] = TN_PW_NONE;
    w->memory[i] = UNIT_IN_TILE;
  }
  for (int32_t i = 0; i < UNIT_VALUES; i++) w->owner[i] = TN_PW_NONE;
}

static void value_free(tn_unit_writer *w, int32_t reg) {
  if (w->held[reg] != TN_PW_NONE) w->owner[w->held[reg]] = TN_PW_NONE;
  w->held[reg] = TN_PW_NONE;
}

/* Stores a value that is in its vector register alone. false: the frame is full. */
static bool value_save(tn_unit_writer *w, int32_t reg) {
  if (w->memory[reg] != UNIT_IN_NO_MEMORY) return true;
  if (w->spill[reg] == TN_PW_NONE && w->n_spills == TILE_CODE_SPILLS) return false;
  if (w->spill[reg] == TN_PW_NONE) w->spill[reg] = w->n_spills++;
  tn_unit_two(w, STORE, w->held[reg], 0, value_spilled(w, reg));
  w->memory[reg] = UNIT_IN_FRAME;
  return true;
}

/* Frees the vector register of the value that is read last of all, but of none that the present instruction
 * reads. */
static int32_t value_evict(tn_unit_writer *w) {
  int32_t chosen = TN_PW_NONE, latest = w->at;
  for (int32_t v = 0; v < w->target->values; v++) {
    int32_t use = value_next_use(w, w->owner[v]);
    if (use <= latest || value_reads(tn_unit_insn(w, w->at), w->owner[v])) continue;
    chosen = v;
    latest = use;
  }
  if (chosen == TN_PW_NONE || !value_save(w, w->owner[chosen])) return TN_PW_NONE;
  value_free(w, w->owner[chosen]);
  return chosen;
}

/* A vector register for the value of a register; TN_PW_NONE: all are in use. */
static int32_t value_take(tn_unit_writer *w, int32_t reg) {
  int32_t v = 0;
  value_free(w, reg);
  while (v < w->target->values && w->owner[v] != TN_PW_NONE) v++;
  if (v == w->target->values) v = w->target->memory ? value_evict(w) : TN_PW_NONE;
  if (v == TN_PW_NONE) return v;
  w->owner[v] = reg;
  w->held[reg] = v;
  return v;
}

/* ---- operands and results of an instruction ---- */

bool tn_unit_operand(tn_unit_writer *w, int32_t k, bool memory, tn_x86_operand *operand) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  const int32_t reg = insn->in[k];
  int32_t v = w->held[reg];
  bool again = insn->step[k] && value_next_use(w, reg) < w->end;
  if (v == TN_PW_NONE && memory && w->target->memory && !again) {
    *operand = value_memory(w, insn, k);
    return true;
  }
  if (v == TN_PW_NONE) {
    if ((v = value_take(w, reg)) == TN_PW_NONE) return false;
    if (value_size(insn, k) == 1 && w->memory[reg] != UNIT_IN_FRAME)
      tn_unit_load_bytes(w, v, value_memory(w, insn, k));
    else
      tn_unit_two(w, LOAD, v, 0, value_memory(w, insn, k));
  }
  *operand = tn_unit_register(v);
  return true;
}

/* Narrow values are for the next group, too. */
void tn_unit_release(tn_unit_writer *w) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  for (int32_t k = 0; k < TN_PW_INPUTS; k++)
    if (insn->in[k] != TN_PW_NONE && insn->step[k] && value_next_use(w, insn->in[k]) == w->end)
      value_free(w, insn->in[k]);
}

void tn_unit_drop(tn_unit_writer *w, int32_t reg) { value_free(w, reg); }

int32_t tn_unit_result(tn_unit_writer *w) {
  const int32_t reg = tn_unit_insn(w, w->at)->out, v = value_take(w, reg);
  w->memory[reg] = UNIT_IN_NO_MEMORY;
  return v;
}

void tn_unit_write_result(tn_unit_writer *w, int32_t from, tn_x86_operand to) {
  tn_unit_two(w, w->past_caches ? STORE_PAST_CACHES : STORE, from, 0, to);
}

/* A result that is past the caches waits in the frame, if it has to. */
static void value_store_result(tn_unit_writer *w, int32_t from) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  const tn_x86_operand to = tn_unit_memory(w, insn->out, TN_PW_NONE);
  if (w->past_caches && tn_unit_result_size(insn) > 1 && !value_is_read_behind(w, w->at)) {
    tn_unit_write_result(w, from, to);
    return;
  }
  if (tn_unit_result_size(insn) == 1)
    tn_unit_store_bytes(w, from, to);
  else
    tn_unit_two(w, STORE, from, 0, to);
  w->memory[insn->out] = UNIT_IN_TILE;
}

void tn_unit_finish(tn_unit_writer *w) {
  const tn_tile_insn *insn = tn_unit_insn(w, w->at);
  if (tn_unit_is_stored(w, w->at)) value_store_result(w, w->held[insn->out]);
  if (value_next_use(w, insn->out) == w->end) value_free(w, insn->out);
}

/* ---- in front of the loop, and behind it ---- */

static const int32_t value_kept[] = {TN_X86_RBX, TN_X86_RBP, 12, 13, 14, 15};
enum { KEPT = sizeof value_kept / sizeof value_kept[0] };

/* A narrow value, which rax points to, into the frame. */
static void value_copy_narrow(tn_unit_writer *w, int32_t i) {
  const int32_t size = (int32_t)sizeof(float);
  for (int32_t lane = 0; lane < UNIT_GROUP; lane += w->target->lanes) {
    const tn_x86_operand from = {.kind = TN_X86_MEMORY, .number = TN_X86_RAX, .displacement = lane * size};
    tn_unit_two(w, LOAD, w->target->spare, 0, from);
    tn_unit_two(w, STORE, w->target->spare, 0, value_narrow(w, i, lane, size));
  }
}

/* rdi: the frame, which begins with the pointers; rsi: how many elements. */
void tn_unit_write_entry(tn_unit_writer *w) {
  const tn_x86_operand at = {.kind = TN_X86_MEMORY, .number = TN_X86_RAX};
  for (int32_t i = 0; i < KEPT; i++) tn_x86_push(&w->x, value_kept[i]);
  for (int32_t i = w->n_bases; i < w->unit->n_pointers; i++) {
    int32_t v = w->target->memory ? TN_PW_NONE : value_take(w, w->unit->pointer[i].reg);
    tn_x86_load_pointer(&w->x, TN_X86_RAX, i);
    if (w->target->memory)
      value_copy_narrow(w, i);
    else
      tn_unit_two(w, LOAD, v, 0, at);
  }
  for (int32_t i = 0; i < w->n_bases; i++) tn_x86_load_pointer(&w->x, value_base[i], i);
  tn_x86_start_count(&w->x);
}

void tn_unit_write_exit(tn_unit_writer *w) {
  for (int32_t i = KEPT; i-- > 0;) tn_x86_pop(&w->x, value_kept[i]);
  tn_x86_return(&w->x);
}
