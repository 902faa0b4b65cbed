/* backends/onednn/simd/loops.h: inner loops that are compiled once for each instruction set.
 *
 * A file of loops (loop_sources in meson.build) ends in a table of its functions,
 * `const TABLE TN_LOOP(tn_loops_FAMILY)`. The header of the family declares the tables with TN_LOOPS_DECLARE;
 * kernels choose one with TN_LOOPS_PICK_AT and the level of tn_onednn_isa_of, or with TN_LOOPS_PICK. Other
 * files are compiled for the baseline, which every processor runs. */
#pragma once

#include "backends/onednn/onednn.h"

#define TN_LOOP_JOIN2(a, b) a##_##b
#define TN_LOOP_JOIN(a, b)  TN_LOOP_JOIN2(a, b)
#define TN_LOOP(name)       TN_LOOP_JOIN(name, TN_LOOPS_ISA)

#ifdef TN_LOOPS_X86
#define TN_LOOPS_DECLARE(type, family) extern const type family##_plain, family##_avx2, family##_avx512
#define TN_LOOPS_PICK_AT(family, isa)                                                                        \
  ((isa) >= TN_ISA_AVX512 ? &family##_avx512 : (isa) >= TN_ISA_AVX2 ? &family##_avx2 : &family##_plain)
#else
#define TN_LOOPS_DECLARE(type, family) extern const type family##_plain
#define TN_LOOPS_PICK_AT(family, isa)  ((void)(isa), &family##_plain)
#endif
#define TN_LOOPS_PICK(family) TN_LOOPS_PICK_AT(family, tn_onednn_isa())
