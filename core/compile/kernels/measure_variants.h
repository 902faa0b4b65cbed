/* core/compile/kernels/measure_variants.h: replaces estimated costs of variants by measured times. */
#ifndef TN_CORE_COMPILE_KERNELS_MEASURE_VARIANTS_H
#define TN_CORE_COMPILE_KERNELS_MEASURE_VARIANTS_H

#include "core/compile/kernels/tuner.h"

/* Measures the variants that have rivals: other variants with the same layout rules, so that only time
 * distinguishes them. Changes nothing if the tuner cannot measure one of them. *best is the index of the
 * cheapest variant. */
void tn_measure_variants(tn_tuner *tuner, const tn_entry *entry, const tn_match *match, tn_choice *variants,
                         int32_t n, int32_t *best);

#endif
