#include "backends/onednn/pointwise/code/code.h"

#include <math.h>
#include <string.h>

#include "backends/onednn/pointwise/code/unit.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

/* ---- executable memory: written first, then executed, never both at once ---- */

static bool code_map(tn_tile_code *code, size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  bytes = (bytes + page - 1) / page * page;
  code->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code->memory == MAP_FAILED) code->memory = NULL;
  code->bytes = bytes;
  return code->memory != NULL;
}

static bool code_seal(const tn_tile_code *code) {
  return mprotect(code->memory, code->bytes, PROT_READ | PROT_EXEC) == 0;
}

static void code_unmap(const tn_tile_code *code) {
  if (code->memory != NULL) (void)munmap(code->memory, code->bytes);
}

/* ---- units ---- */

/* The end of the instructions from i on that code can be written for. */
static int32_t code_end(const tn_tile_program *p, int32_t i) {
  const tn_tile_insn *insns = p->base.insns;
  while (i < p->base.end[TN_PW_PER_ELEMENT] && tn_unit_has(&insns[i])) i++;
  return i;
}

static void code_set_entry(void (**run)(tn_tile_frame *, int64_t), const tn_unit_writer *w, size_t start) {
  uint8_t *entry = w->x.bytes + start;
  memcpy(run, &entry, sizeof entry);
}

/* Once more, with results written past the caches. */
static void code_add_past_caches(tn_unit_writer *w, tn_tile_unit *unit) {
  const size_t start = w->x.n;
  tn_tile_unit again;
  w->past_caches = true;
  if (tn_unit_write(w, unit->first, unit->end, &again) == unit->end)
    code_set_entry(&unit->run_past_caches, w, start);
  else
    w->x.n = start;
  w->past_caches = false;
}

/* With narrow values in registers, or in the frame where registers end first. Returns where the unit ends. */
static int32_t code_write_unit(tn_unit_writer *w, const tn_unit_target *target, int32_t first, int32_t end,
                               tn_tile_unit *unit) {
  const size_t start = w->x.n;
  w->target = target;
  int32_t stop = tn_unit_write(w, first, end, unit);
  if (stop == end || target->otherwise == NULL) return stop;
  w->x.n = start;
  int32_t further = code_write_unit(w, target->otherwise, first, end, unit);
  return further > stop ? further : stop;
}

/* Instructions from `first` on, as many as the registers of the processor allow. Returns the end of the unit.
 */
static int32_t code_add_unit(tn_tile_code *code, tn_unit_writer *w, const tn_unit_target *target,
                             int32_t first, int32_t end) {
  const size_t start = w->x.n;
  for (int32_t stop; end > first; end = stop, w->x.n = start) {
    tn_tile_unit *unit = &code->unit[code->n_units];
    stop = code_write_unit(w, target, first, end, unit);
    if (stop < end) continue;
    code_set_entry(&unit->run, w, start);
    if (w->target->streams && w->program->streams) code_add_past_caches(w, unit);
    code->n_units++;
    return end;
  }
  return first;
}

static void code_write(tn_tile_code *code, const tn_tile_program *p, const tn_unit_target *target) {
  tn_unit_writer w = {.program = p, .target = target};
  tn_x86_start(&w.x, target->set, code->memory, code->bytes);
  for (int32_t i = p->base.end[TN_PW_PER_SEGMENT]; i < p->base.end[TN_PW_PER_ELEMENT];) {
    int32_t end = code_end(p, i);
    if (end > i) end = code_add_unit(code, &w, target, i, end);
    i = end > i ? end : i + 1;
  }
  if (w.x.full) code->n_units = 0;
}

tn_status tn_tile_code_new(const void *handle, const tn_tile_program *p, int32_t isa, tn_tile_code **made) {
  enum { PER_INSN = 192, PER_UNIT = 4096, CONSTANTS = 1024 };
  const tn_unit_target *target = tn_unit_target_of(isa);
  const size_t n = (size_t)(p->base.end[TN_PW_PER_ELEMENT] - p->base.end[TN_PW_PER_SEGMENT]);
  *made = NULL;
  if (target == NULL) return TN_OK;
  tn_tile_code *code = tn_new(handle, sizeof *code + n * sizeof *code->unit);
  if (code == NULL) return TN_ENOMEM;
  *code = (tn_tile_code){0};
  const size_t vectors = (size_t)(UNIT_GROUP / target->lanes), ways = target->streams && p->streams ? 2 : 1;
  if (code_map(code, CONSTANTS + n * ways * (vectors * PER_INSN + PER_UNIT))) code_write(code, p, target);
  if (code->n_units > 0 && code_seal(code))
    *made = code;
  else
    tn_tile_code_delete(handle, code);
  return TN_OK;
}

void tn_tile_code_delete(const void *handle, tn_tile_code *code) {
  if (code == NULL) return;
  code_unmap(code);
  tn_delete(handle, code);
}

#else

tn_status tn_tile_code_new(const void *handle, const tn_tile_program *p, int32_t isa, tn_tile_code **made) {
  (void)handle, (void)p, (void)isa;
  *made = NULL;
  return TN_OK;
}

void tn_tile_code_delete(const void *handle, tn_tile_code *code) { tn_delete(handle, code); }
#endif

/* ---- a run ---- */

static void *code_pointer(const tn_tile_pointer *p, const tn_tile_run *run) {
  if (p->reg != TN_PW_NONE) return run->reg[p->reg];
  return (uint8_t *)run->launch->out[p->result].data + run->at * p->size;
}

/* The elements from `done` on, fewer than a group, by the instructions. Values that only the unit has begin
 * where those of its first elements do. */
static void code_run_rest(const tn_tile_unit *unit, const tn_tile_run *run, int64_t done, int64_t n) {
  const tn_tile_insn *insns = run->program->base.insns;
  tn_tile_run rest = *run;
  rest.at += done;
  for (int32_t i = 0; i < unit->n_pointers; i++) {
    const tn_tile_pointer *p = &unit->pointer[i];
    if (p->reg != TN_PW_NONE) rest.reg[p->reg] = (uint8_t *)run->reg[p->reg] + done * p->size;
  }
  for (int32_t i = unit->first; i < unit->end; i++) insns[i].fn(&insns[i], &rest, n);
}

/* Whether all elements of 4 bytes begin lines of the cache. */
static bool code_is_aligned(const tn_tile_unit *unit, const tn_tile_frame *frame) {
  enum { LINE = 64 };
  for (int32_t i = 0; i < unit->n_pointers; i++)
    if (unit->pointer[i].size == (int32_t)sizeof(float) && (uintptr_t)frame->pointer[i] % LINE != 0)
      return false;
  return true;
}

bool tn_tile_code_is_all(const tn_tile_program *p, const tn_tile_code *code) {
  if (code == NULL || code->unit[0].first != p->base.end[TN_PW_PER_SEGMENT] ||
      code->unit[0].end != p->base.end[TN_PW_PER_ELEMENT])
    return false;
  for (int32_t i = 0; i < code->unit[0].n_pointers; i++) {
    const tn_tile_pointer *at = &code->unit[0].pointer[i];
    if (at->size > 0 && at->reg != TN_PW_NONE && at->reg < p->base.n_slots) return false;
  }
  return true;
}

/* Divisors that neither quotients nor rests of dividends in the range leave. */
static bool code_fits_divisor(float c) { return fabsf(c) >= 0x1p-20f && fabsf(c) <= 0x1p20f; }

static void code_fill_divisor(const float *c, tn_tile_divisor *to) {
  enum { MOST = 0x48000000 }; /* the place of 2^100 from TN_X86_QUOTIENTS_FROM on */
  for (int32_t l = 0; l < UNIT_GROUP; l++) {
    const bool fits = code_fits_divisor(c[l]), again = l > 0 && fits && c[l] == c[l - 1];
    to->high[l] = again ? to->high[l - 1] : fits ? 1 / c[l] : 0;
    to->low[l] = again ? to->low[l - 1] : fits ? (float)(1 / (double)c[l] - (double)to->high[l]) : 0;
    to->most[l] = fits ? MOST : INT32_MIN;
  }
}

void tn_tile_code_run(const tn_tile_unit *unit, const tn_tile_run *run, int64_t n) {
  tn_tile_frame frame;
  const int64_t whole = n / UNIT_GROUP * UNIT_GROUP;
  if (whole > 0) {
    for (int32_t i = 0; i < unit->n_pointers; i++) frame.pointer[i] = code_pointer(&unit->pointer[i], run);
    for (int32_t i = 0; i < unit->n_divisors; i++)
      code_fill_divisor(run->reg[unit->divisor[i]], &frame.divisor[i]);
    if (run->past_caches && unit->run_past_caches != NULL && code_is_aligned(unit, &frame))
      unit->run_past_caches(&frame, whole);
    else
      unit->run(&frame, whole);
  }
  if (whole < n) code_run_rest(unit, run, whole, n - whole);
}

void tn_tile_code_fence(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}
