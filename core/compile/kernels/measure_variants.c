/* core/compile/kernels/measure_variants.c: measures rival variants. */
#include "core/compile/kernels/measure_variants.h"

#include <string.h>

/* Kernels that offer more than MOST_VARIANTS are not measured. */
enum { MOST_MEASURED = 16, MOST_VARIANTS = 128 };

/* Layouts that are only preferred are no difference: the kernel accepts any layout there. */
static bool has_same_rules(const tn_operand_layout *a, const tn_operand_layout *b, int32_t n) {
  if (a == NULL || b == NULL) return a == b;
  for (int32_t i = 0; i < n; i++) {
    bool preferred = a[i].rule == TN_LAYOUT_PREFERRED && b[i].rule == TN_LAYOUT_PREFERRED;
    if (!preferred && memcmp(&a[i], &b[i], sizeof *a) != 0) return false;
  }
  return true;
}

static bool are_rivals(const tn_match *m, const tn_choice *a, const tn_choice *b) {
  return has_same_rules(a->in_rule, b->in_rule, m->n_in) &&
         has_same_rules(a->out_rule, b->out_rule, m->n_out);
}

static bool has_rival(const tn_match *m, const tn_choice *variants, int32_t n, int32_t index) {
  for (int32_t i = 0; i < n; i++)
    if (i != index && are_rivals(m, &variants[index], &variants[i])) return true;
  return false;
}

bool tn_variants_have_rivals(const tn_match *match, const tn_choice *variants, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (has_rival(match, variants, n, i)) return true;
  return false;
}

/* The number of variants that rank before one by estimate; of rivals only, or of all variants with rivals. Of
 * equal estimates the first is the better one. */
static int32_t rank_by_estimate(const tn_match *m, const tn_choice *variants, int32_t n, int32_t index,
                                bool of_rivals) {
  int32_t better = 0;
  for (int32_t i = 0; i < n; i++) {
    if (i == index) continue;
    bool counts = of_rivals ? are_rivals(m, &variants[index], &variants[i]) : has_rival(m, variants, n, i);
    double a = variants[i].cost_s, b = variants[index].cost_s;
    better += counts && (a < b || (a == b && i < index));
  }
  return better;
}

/* A variant while its rivals are measured. */
typedef struct measured_variant {
  double seconds; /* measured, or else the estimate */
  bool measured, stays;
} measured_variant;

/* A measured time does not compare with an estimate, so rivals are measured together or not at all. *all is
 * false: one cannot be measured. */
static tn_status measure_best(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning,
                              const tn_choice *variants, int32_t n, measured_variant *results, bool *all) {
  const tn_match *m = tuning->match;
  *all = true;
  for (int32_t i = 0; i < n && *all; i++) {
    measured_variant *r = &results[i];
    bool rival = has_rival(m, variants, n, i);
    r->seconds = variants[i].cost_s;
    r->measured = rival && rank_by_estimate(m, variants, n, i, false) < MOST_MEASURED;
    r->stays = !rival || r->measured || rank_by_estimate(m, variants, n, i, true) == 0;
    if (r->measured) TN_TRY(tuner->time(tuner, env, tuning, &variants[i], &r->seconds));
    *all = !r->measured || r->seconds > 0;
  }
  return TN_OK;
}

void tn_mark_faulted_variants(tn_tuner *tuner, const tn_tuning *tuning, tn_choice *variants, int32_t n) {
  for (int32_t i = 0; i < n; i++) variants[i].faulted = tuner->has_faulted(tuner, tuning, &variants[i]);
}

tn_status tn_measure_variants(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, tn_choice *variants,
                              int32_t *n, int32_t *best) {
  measured_variant results[MOST_VARIANTS];
  int32_t kept = 0;
  bool all = false;
  if (*n <= MOST_VARIANTS) TN_TRY(measure_best(tuner, env, tuning, variants, *n, results, &all));
  if (!all) return TN_OK;
  *best = 0;
  for (int32_t i = 0; i < *n; i++) {
    if (!results[i].stays) continue;
    variants[kept] = variants[i];
    variants[kept].measured = results[i].measured;
    variants[kept].cost_s = results[i].seconds;
    if (variants[kept].cost_s < variants[*best].cost_s) *best = kept;
    kept++;
  }
  *n = kept;
  return TN_OK;
}
