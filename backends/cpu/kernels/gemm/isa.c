/* backends/cpu/kernels/gemm/isa.c: the functions of tn_gemm_isa for one instruction set. meson.build
 * compiles this file once per instruction set, with its name in TN_GEMM_ISA. The vectors are the vector
 * extensions of GCC and clang, which exist on every architecture. */

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/shared/half.h"

/* A vector fills a register. PANEL_M rows of sums fit into the registers together with one row of B. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define PANEL_M      8
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define PANEL_M      4
#else
#define VECTOR_BYTES 16
#define PANEL_M      4
#endif

enum { DOT_LANES = 16 };

/* distance / step. The step is mostly 1, and a division is slow. */
static inline int64_t steps(int64_t distance, int64_t step) { return step == 1 ? distance : distance / step; }

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

#define WIDE     float
#define MICRO(n) n##_in_f32
#include "backends/cpu/kernels/gemm/micro.h"

#define ELEMENT   float
#define TYPED(n)  n##_f32
#define WIDEN(x)  (x)
#define FACTOR(x) (x)
#define NARROW(x) (x)
#include "backends/cpu/kernels/gemm/typed.h"
#undef TYPED
#undef FACTOR

#define TYPED(n)  n##_tf32
#define FACTOR(x) tn_tf32_of_f32(x)
#include "backends/cpu/kernels/gemm/typed.h"
#undef ELEMENT
#undef TYPED
#undef WIDEN
#undef FACTOR
#undef NARROW

#define ELEMENT   uint16_t
#define TYPED(n)  n##_f16
#define WIDEN(x)  tn_f32_of_f16(x)
#define FACTOR(x) WIDEN(x)
#define NARROW(x) tn_f16_of_f32(x)
#include "backends/cpu/kernels/gemm/typed.h"
#undef TYPED
#undef WIDEN
#undef FACTOR
#undef NARROW

#define TYPED(n)  n##_bf16
#define WIDEN(x)  tn_f32_of_bf16(x)
#define FACTOR(x) WIDEN(x)
#define NARROW(x) tn_bf16_of_f32(x)
#include "backends/cpu/kernels/gemm/typed.h"
#undef ELEMENT
#undef TYPED
#undef WIDEN
#undef FACTOR
#undef NARROW
#undef WIDE
#undef MICRO

#define WIDE     double
#define MICRO(n) n##_in_f64
#include "backends/cpu/kernels/gemm/micro.h"

#define ELEMENT   double
#define TYPED(n)  n##_f64
#define WIDEN(x)  (x)
#define FACTOR(x) (x)
#define NARROW(x) (x)
#include "backends/cpu/kernels/gemm/typed.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const tn_gemm_isa JOIN(tn_gemm_isa, TN_GEMM_ISA) = {
    .name = TEXT(TN_GEMM_ISA),
    .tile = {[TN_F16] = tile_f16,
             [TN_BF16] = tile_bf16,
             [TN_F32] = tile_f32,
             [TN_F64] = tile_f64,
             [TN_GEMM_TF32] = tile_tf32},
    .direct = {[TN_F16] = direct_f16,
               [TN_BF16] = direct_bf16,
               [TN_F32] = direct_f32,
               [TN_F64] = direct_f64,
               [TN_GEMM_TF32] = direct_tf32},
    .pack = {[TN_F16] = pack_all_f16,
             [TN_BF16] = pack_all_bf16,
             [TN_F32] = pack_all_f32,
             [TN_F64] = pack_all_f64,
             [TN_GEMM_TF32] = pack_all_tf32},
};
