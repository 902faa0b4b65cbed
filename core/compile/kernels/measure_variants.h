/* core/compile/kernels/measure_variants.h: replaces estimated costs of variants by measured times. */
#pragma once

#include "core/compile/kernels/tuner.h"

/* Whether a variant has a rival: another variant with the same layout rules, so that only time distinguishes
 * them. */
bool tn_variants_have_rivals(const tn_match *match, const tn_choice *variants, int32_t n);

/* Notes with which variants the device has failed. */
void tn_mark_faulted_variants(tn_tuner *tuner, const tn_tuning *tuning, tn_choice *variants, int32_t n);

/* Measures the variants that have rivals, the best 16 by estimate where there are more. Those that are not
 * measured although they have rivals are removed, unless they are the best of their layout rules. Changes
 * nothing if the tuner cannot measure one. *best is the index of the cheapest variant. */
tn_status tn_measure_variants(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, tn_choice *variants,
                              int32_t *n, int32_t *best);
