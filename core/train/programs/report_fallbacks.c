/* core/train/programs/report_fallbacks.c: [backend] fallback = warn: what falls back is said before the first
 * step. */
#include "core/compile/output/report.h"
#include "core/train/run.h"

static bool falls_back_in(const tn_program *program, const tn_fallback *f) {
  for (int32_t i = 0; i < program->n_segments; i++) {
    const tn_segment *s = &program->segments[i];
    for (int32_t k = s->first; s->fallback && k < s->first + s->n; k++) {
      tn_fallback other = tn_program_fallback(program, s, k);
      if (tn_text_equal(other.op, f->op) && tn_text_equal(other.where, f->where)) return true;
    }
  }
  return false;
}

/* Training and validation do the same op: one line is enough. */
static bool was_told(const tn_program_set *set, int32_t program, const tn_fallback *f) {
  for (int32_t i = 0; i < program; i++)
    if (falls_back_in(set->list[i], f)) return true;
  return false;
}

static void tell(const tn_run *run, const tn_program *program, const tn_fallback *f) {
  tn_logf(
      &run->env, TN_LOG_WARN,
      "%s%s%s%s falls back to %s, at the price of %.1f KiB over the bus and a wait in each run of program "
      "%s: %s ([backend] fallback = allow says nothing, error refuses)",
      f->op, *f->where ? " (" : "", f->where, *f->where ? ")" : "", f->family, (double)f->bytes / 1024.0,
      program->name, f->reason);
}

void tn_programs_tell_fallbacks(const tn_run *run, const tn_program_set *set) {
  if (run->settings.backend.fallback + 1 != TN_FALLBACK_WARN) return;
  for (int32_t p = 0; p < set->n; p++)
    for (int32_t i = 0; i < set->list[p]->n_segments; i++) {
      const tn_segment *s = &set->list[p]->segments[i];
      for (int32_t k = s->first; s->fallback && k < s->first + s->n; k++) {
        tn_fallback f = tn_program_fallback(set->list[p], s, k);
        if (!was_told(set, p, &f)) tell(run, set->list[p], &f);
      }
    }
}
