/* core/step/programs/report_fallbacks.c: [backend] fallback = warn: logs the ops that run on the fallback
 * backend. */
#include "core/compile/output/report.h"
#include "core/step/programs/programs.h"

static bool fallbacks_include(const tn_program *program, const tn_fallback *f) {
  for (int32_t i = 0; i < program->n_segments; i++) {
    const tn_segment *s = &program->segments[i];
    for (int32_t k = s->first; s->fallback && !s->placed && k < s->first + s->n; k++) {
      tn_fallback other = tn_program_fallback(program, s, k);
      if (tn_text_equal(other.op, f->op) && tn_text_equal(other.where, f->where)) return true;
    }
  }
  return false;
}

/* An op that several programs share is reported once. */
static bool fallbacks_were_reported(const tn_program_set *set, int32_t program, const tn_fallback *f) {
  for (int32_t i = 0; i < program; i++)
    if (fallbacks_include(set->list[i], f)) return true;
  return false;
}

static void fallbacks_log(const tn_run *run, const tn_program *program, const tn_fallback *f) {
  tn_logf(&run->env, TN_LOG_WARN,
          "%s%s%s%s falls back to %s, which costs %.1f KiB over the bus and a wait in each run of program "
          "%s: %s ([backend] fallback = allow disables this warning, error refuses such ops)",
          f->op, *f->where ? " (" : "", f->where, *f->where ? ")" : "", f->family, (double)f->bytes / 1024.0,
          program->name, f->reason);
}

void tn_programs_report_fallbacks(const tn_run *run, const tn_program_set *set) {
  if (run->settings.backend.fallback + 1 != TN_FALLBACK_WARN) return;
  for (int32_t p = 0; p < set->n; p++)
    for (int32_t i = 0; i < set->list[p]->n_segments; i++) {
      const tn_segment *s = &set->list[p]->segments[i];
      for (int32_t k = s->first; s->fallback && !s->placed && k < s->first + s->n; k++) {
        tn_fallback f = tn_program_fallback(set->list[p], s, k);
        if (!fallbacks_were_reported(set, p, &f)) fallbacks_log(run, set->list[p], &f);
      }
    }
}
