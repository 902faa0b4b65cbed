/* Writes a loop over groups of 16 elements: one vector of AVX-512, or two of AVX2, one behind the other. */
#include "backends/onednn/pointwise/code/unit.h"

const tn_unit_target *tn_unit_target_of(int32_t isa) {
  static const tn_unit_target avx512_frame = {TN_X86_AVX512,  .lanes = 16,     .narrow = TILE_CODE_NARROW,
                                              .values = 29,   .spare = 29,     .mask = 1,
                                              .memory = true, .products = true};
  static const tn_unit_target avx512 = {
      TN_X86_AVX512, .lanes = 16, .narrow = 14,     .values = 29,
      .spare = 29,   .mask = 1,   .products = true, .otherwise = &avx512_frame};
  static const tn_unit_target avx2 = {TN_X86_AVX2,    .lanes = 8,     .narrow = TILE_CODE_NARROW,
                                      .values = 11,   .spare = 11,    .mask = 14,
                                      .memory = true, .streams = true};
  return isa >= TN_ISA_AVX512 ? &avx512 : isa == TN_ISA_AVX2 ? &avx2 : NULL;
}

static void unit_start(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit) {
  *unit = (tn_tile_unit){.first = first, .end = end};
  w->unit = unit;
  w->first = w->at = first;
  w->end = end;
  w->part = w->n_narrow = w->n_bases = w->n_spills = 0;
  for (int32_t i = 0; i < TN_PW_REGISTERS; i++) w->spill[i] = TN_PW_NONE;
  tn_unit_forget(w);
}

/* The instructions for one vector of the group. Returns the one for which registers are missing, or the end.
 */
static int32_t unit_write_part(tn_unit_writer *w) {
  if (w->part > 0) tn_unit_forget(w);
  w->in_mask = TN_PW_NONE;
  for (w->at = w->first; w->at < w->end; w->at++)
    if (!tn_unit_write_insn(w)) break;
  return w->at;
}

int32_t tn_unit_write(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit) {
  unit_start(w, first, end, unit);
  for (int32_t i = first; i < end; i++)
    if (!tn_unit_point(w, i)) return i;
  tn_unit_write_entry(w);
  size_t start = w->x.n;
  for (w->part = 0; w->part < UNIT_GROUP / w->target->lanes; w->part++) {
    int32_t stop = unit_write_part(w);
    if (stop < end) return stop;
  }
  tn_x86_repeat(&w->x, start, UNIT_GROUP);
  tn_unit_write_exit(w);
  return end;
}
