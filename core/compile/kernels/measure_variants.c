/* core/compile/kernels/measure_variants.c: measures rival variants. */
#include "core/compile/kernels/measure_variants.h"

#include <string.h>

enum { MOST_VARIANTS = 16 };

/* Layouts that are only preferred are no difference: the kernel accepts any layout there. */
static bool has_same_rules(const tn_operand_layout *a, const tn_operand_layout *b, int32_t n) {
  if (a == NULL || b == NULL) return a == b;
  for (int32_t i = 0; i < n; i++) {
    bool preferred = a[i].rule == TN_LAYOUT_PREFERRED && b[i].rule == TN_LAYOUT_PREFERRED;
    if (!preferred && memcmp(&a[i], &b[i], sizeof *a) != 0) return false;
  }
  return true;
}

static bool has_rival(const tn_match *m, const tn_choice *variants, int32_t n, int32_t index) {
  const tn_choice *choice = &variants[index];
  for (int32_t i = 0; i < n; i++)
    if (i != index && has_same_rules(choice->in_rule, variants[i].in_rule, m->n_in) &&
        has_same_rules(choice->out_rule, variants[i].out_rule, m->n_out))
      return true;
  return false;
}

/* A measured time does not compare with an estimate, so rivals are measured together or not at all. */
void tn_measure_variants(tn_tuner *tuner, const tn_entry *entry, const tn_match *match, tn_choice *variants,
                         int32_t n, int32_t *best) {
  double seconds[MOST_VARIANTS];
  if (n < 2 || n > MOST_VARIANTS) return;
  for (int32_t i = 0; i < n; i++) {
    seconds[i] = variants[i].cost_s;
    if (has_rival(match, variants, n, i) && !tuner->time(tuner, entry, match, &variants[i], &seconds[i]))
      return;
  }
  for (int32_t i = 0; i < n; i++) {
    variants[i].cost_s = seconds[i];
    variants[i].measured = has_rival(match, variants, n, i);
    if (seconds[i] < variants[*best].cost_s) *best = i;
  }
}
