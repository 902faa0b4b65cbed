/* backends/cuda/device/pointwise.cuh: what printed regions call (backends/cuda/pointwise): memory, positions, and one
 * function for each instruction of backends/shared/pointwise/ir.h. Numbers are those of the reference backend
 * (backends/cpu/kernels/pointwise/compute.c); elementary functions are CUDA's. */
#ifndef TN_CUDA_POINTWISE_CUH
#define TN_CUDA_POINTWISE_CUH

#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/divide.cuh"
#include "backends/shared/normal.h"

/* ---- memory ---- */

/* Other elements than those of prelude.cuh. */
static __device__ inline i8 widen(i8 x) { return x; }
static __device__ inline void narrow(i8 *to, i8 x) { *to = x; }

/* V neighbouring elements, which are read and written at once, 16 bytes at a time. */
template <typename T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) pack {
  T v[V];
};

/* Elements at .. at + n - 1; zero behind them. `whole`: all V are there, and lie aligned. */
template <int V, typename T, typename P>
static __device__ inline pack<T, V> load(const T *from, P at, i32 n, bool whole) {
  pack<T, V> x;
  if (whole) return *(const pack<T, V> *)(from + at);
#pragma unroll
  for (i32 k = 0; k < V; k++) x.v[k] = k < n ? from[at + k] : T();
  return x;
}

template <typename T, int V, typename P>
static __device__ inline void store(T *to, P at, i32 n, bool whole, const pack<T, V> &x) {
  if (whole) {
    *(pack<T, V> *)(to + at) = x;
    return;
  }
#pragma unroll
  for (i32 k = 0; k < V; k++)
    if (k < n) to[at + k] = x.v[k];
}

/* Numbers that a launch brings along lie in words of 64 bits. */
static __device__ inline f32 f32_of_word(u64 word) { return f32_of_bits((u32)word); }
static __device__ inline f64 f64_of_word(u64 word) { return __longlong_as_double((i64)word); }

/* ---- positions ---- */

/* Dividers (device/divide.cuh) of positions with 32 and with 64 bits, from words. */
static __device__ inline divider divider_of(u64 divisor, u64 word) {
  divider d = {(i64)divisor, (u32)word, (u32)(word >> 32), 0, 0, 0};
  return d;
}
static __device__ inline divider long_divider_of(u64 divisor, u64 multiplier, u64 shift) {
  divider d = {(i64)divisor, 0, 0, multiplier, (u32)shift, 0};
  return d;
}

/* Positions of a thread that lie behind the end look where the last one does. */
template <typename P> static __device__ inline P within(P p, P count) { return p < count ? p : count - 1; }

/* ---- values per range: tenon/attributes.h, tn_spread_attributes ---- */

/* A place on a table of ranges: its number, where it ends, and its value. */
template <typename T> struct spread {
  i32 range;
  i64 end;
  T value;
};

/* The last of n ranges that begins at or before i. */
static __device__ inline i32 range_of(const i64 *starts, i32 n, i64 i) {
  i32 low = 0, high = n;
  while (high - low > 1) {
    i32 middle = low + (high - low) / 2;
    if (starts[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Goes on to position i, which is not before the range at hand. */
template <typename T, typename M>
static __device__ inline void spread_to(spread<T> *s, const i64 *starts, const i64 *index, i32 n, const M *values,
                                        i64 i) {
  while (s->range + 1 < n && starts[s->range + 1] <= i) s->range++;
  s->end = s->range + 1 < n ? starts[s->range + 1] : 0x7fffffffffffffffll;
  s->value = widen(values[index[s->range]]);
}

/* ---- random numbers: tenon/attributes.h, tn_random_attributes ---- */

enum { UNIFORM, NORMAL };

/* Philox 4x32-10 (tenon/random.h). */
static __device__ inline void philox(u64 key, u64 hi, u64 lo, u32 (&c)[4]) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  c[0] = (u32)lo;
  c[1] = (u32)(lo >> 32);
  c[2] = (u32)hi;
  c[3] = (u32)(hi >> 32);
#pragma unroll
  for (i32 round = 0; round < 10; round++) {
    u64 p0 = (u64)0xD2511F53u * c[0], p1 = (u64)0xCD9E8D57u * c[2];
    c[0] = (u32)(p1 >> 32) ^ c[1] ^ k0;
    c[2] = (u32)(p0 >> 32) ^ c[3] ^ k1;
    c[1] = (u32)p1;
    c[3] = (u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

static __device__ inline f32 uniform_of(u32 word) { return (f32)(i32)(word >> 8) * 0x1p-24f; }
static __device__ inline void normal_pair(u32 word0, u32 word1, f32 *even, f32 *odd) {
  tn_normal_pair(word0, word1, even, odd);
}
static __device__ inline void normal_pair(u32 word0, u32 word1, f64 *even, f64 *odd) {
  tn_normal_pair_f64(word0, word1, even, odd);
}

/* The numbers 4 group .. 4 group + 3 of a stream. Uniform: a is the lower bound, b the width; normal: a is the mean, b
 * the standard deviation. */
template <int KIND, typename T>
static __device__ inline void random_group(T (&x)[4], u64 key, u64 iteration, u64 group, T a, T b) {
  u32 word[4];
  philox(key, iteration, group, word);
  if (KIND == UNIFORM) {
#pragma unroll
    for (i32 k = 0; k < 4; k++) x[k] = (T)uniform_of(word[k]);
  } else {
    normal_pair(word[0], word[1], &x[0], &x[1]);
    normal_pair(word[2], word[3], &x[2], &x[3]);
  }
#pragma unroll
  for (i32 k = 0; k < 4; k++) x[k] = a + b * x[k];
}

/* Number `index`. */
template <int KIND, typename T> static __device__ inline T random_at(u64 key, i64 iteration, u64 index, T a, T b) {
  T x[4];
  random_group<KIND>(x, key, (u64)iteration, index >> 2, a, b);
  T low = index & 1 ? x[1] : x[0], high = index & 1 ? x[3] : x[2];
  return index & 2 ? high : low;
}

/* Numbers first .. first + V - 1; V is a multiple of 4. A launch whose `first` are multiples of 4 makes no number in
 * vain. Arrays have constant indices, so that they lie in registers. */
template <int KIND, int V, typename T>
static __device__ inline void random_run(T (&to)[V], u64 key, i64 iteration, u64 first, T a, T b) {
  const u32 skip = (u32)first & 3;
  T x[V + 4];
#pragma unroll
  for (i32 g = 0; g <= V / 4; g++) {
    T four[4] = {};
    if (g < V / 4 || skip != 0) random_group<KIND>(four, key, (u64)iteration, (first >> 2) + (u64)g, a, b);
#pragma unroll
    for (i32 k = 0; k < 4; k++) x[4 * g + k] = four[k];
  }
#pragma unroll
  for (i32 k = 0; k < V + 3; k++) x[k] = skip & 1 ? x[k + 1] : x[k];
#pragma unroll
  for (i32 k = 0; k < V + 2; k++) x[k] = skip & 2 ? x[k + 2] : x[k];
#pragma unroll
  for (i32 k = 0; k < V; k++) to[k] = x[k];
}

/* ---- floats ---- */

#define POINTWISE_FLOATS(T, F)                                                                                           \
  static __device__ inline T op_neg(T x) { return -x; }                                                                  \
  static __device__ inline T op_abs(T x) { return fabs##F(x); }                                                          \
  static __device__ inline T op_sign(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }                                \
  static __device__ inline T op_sqrt(T x) { return sqrt##F(x); }                                                         \
  static __device__ inline T op_rsqrt(T x) { return (T)1 / sqrt##F(x); }                                                 \
  static __device__ inline T op_reciprocal(T x) { return (T)1 / x; }                                                     \
  static __device__ inline T op_floor(T x) { return floor##F(x); }                                                       \
  static __device__ inline T op_exp(T x) { return exp##F(x); }                                                           \
  static __device__ inline T op_log(T x) { return log##F(x); }                                                           \
  static __device__ inline T op_tanh(T x) { return tanh##F(x); }                                                         \
  static __device__ inline T op_sigmoid(T x) {                                                                           \
    T e = exp##F(-fabs##F(x));                                                                                           \
    return (x >= 0 ? (T)1 : e) / ((T)1 + e);                                                                             \
  }                                                                                                                      \
  static __device__ inline T op_erf(T x) { return erf##F(x); }                                                           \
  static __device__ inline T op_fmod(T x, T y) { return fmod##F(x, y); }                                                 \
  static __device__ inline T op_add(T x, T y) { return x + y; }                                                          \
  static __device__ inline T op_sub(T x, T y) { return x - y; }                                                          \
  static __device__ inline T op_mul(T x, T y) { return x * y; }                                                          \
  static __device__ inline T op_div(T x, T y) { return x / y; }                                                          \
  /* the larger one, NaN if either is */                                                                                 \
  static __device__ inline T op_maximum(T x, T y) { return x > y || x != x ? x : y; }                                    \
  static __device__ inline T op_minimum(T x, T y) { return x < y || x != x ? x : y; }                                    \
  /* rounded twice: the compiler is told not to contract */                                                              \
  static __device__ inline T op_affine(T x, T scale, T shift) { return x * scale + shift; }                              \
  static __device__ inline u8 op_is_finite(T x) { return x - x == 0; }
POINTWISE_FLOATS(f32, f)
POINTWISE_FLOATS(f64, )

/* ---- whole numbers: they wrap; division truncates and gives 0 where there is no quotient ---- */

template <typename T> static __device__ inline bool is_minus_1(T y) { return (T)-1 < (T)1 && y == (T)-1; }

#define POINTWISE_WHOLE(T, U)                                                                                            \
  static __device__ inline T op_neg(T x) { return (T)(0 - (U)x); }                                                       \
  static __device__ inline T op_abs(T x) { return x > 0 ? x : (T)(0 - (U)x); }                                           \
  static __device__ inline T op_sign(T x) { return (T)(x > 0 ? 1 : -(x != 0)); }                                         \
  static __device__ inline T op_add(T x, T y) { return (T)((U)x + (U)y); }                                               \
  static __device__ inline T op_sub(T x, T y) { return (T)((U)x - (U)y); }                                               \
  static __device__ inline T op_mul(T x, T y) { return (T)((U)x * (U)y); }                                               \
  static __device__ inline T op_div(T x, T y) {                                                                          \
    if (y == 0) return 0;                                                                                                \
    return is_minus_1<T>(y) ? (T)(0 - (U)x) : (T)(x / y);                                                                \
  }                                                                                                                      \
  static __device__ inline T op_fmod(T x, T y) { return y == 0 || is_minus_1<T>(y) ? 0 : x % y; }                        \
  static __device__ inline T op_and(T x, T y) { return x & y; }                                                          \
  static __device__ inline T op_or(T x, T y) { return x | y; }                                                           \
  static __device__ inline T op_xor(T x, T y) { return x ^ y; }                                                          \
  /* a shift by all bits or more leaves 0 to the left, copies of the sign bit, or 0, to the right */                     \
  static __device__ inline T op_shift_left(T x, T y) { return (U)y >= 8 * sizeof(T) ? 0 : (T)((U)x << y); }              \
  static __device__ inline T op_shift_right(T x, T y) { return (U)y < 8 * sizeof(T) ? x >> y : x > 0 || x == 0 ? 0 : -1; }\
  static __device__ inline T op_maximum(T x, T y) { return x > y ? x : y; }                                              \
  static __device__ inline T op_minimum(T x, T y) { return x < y ? x : y; }                                              \
  static __device__ inline u8 op_is_finite(T) { return 1; }
POINTWISE_WHOLE(u8, u8)
POINTWISE_WHOLE(i8, u8)
POINTWISE_WHOLE(i32, u32)
POINTWISE_WHOLE(i64, u64)

/* ---- comparisons, truths, selection ---- */

template <typename T> static __device__ inline u8 op_eq(T x, T y) { return x == y; }
template <typename T> static __device__ inline u8 op_ne(T x, T y) { return x != y; }
template <typename T> static __device__ inline u8 op_lt(T x, T y) { return x < y; }
template <typename T> static __device__ inline u8 op_le(T x, T y) { return x <= y; }
template <typename T> static __device__ inline u8 op_gt(T x, T y) { return x > y; }
template <typename T> static __device__ inline u8 op_ge(T x, T y) { return x >= y; }
static __device__ inline u8 op_not(u8 x) { return x ^ 1; } /* of bool */
template <typename T> static __device__ inline T op_where(u8 c, T x, T y) { return c ? x : y; }

/* ---- conversions: floats become whole numbers toward zero, as far as the type reaches; NaN becomes 0 ---- */

template <typename T> static __device__ inline u8 to_bool(T x) { return x != 0; }
template <typename T> static __device__ inline f32 to_f32(T x) { return (f32)x; }
template <typename T> static __device__ inline f64 to_f64(T x) { return (f64)x; }
#define POINTWISE_WRAPPED(T)                                                                                             \
  static __device__ inline u8 to_u8(T x) { return (u8)x; }                                                               \
  static __device__ inline i8 to_i8(T x) { return (i8)x; }                                                               \
  static __device__ inline i32 to_i32(T x) { return (i32)x; }                                                            \
  static __device__ inline i64 to_i64(T x) { return (i64)x; }
POINTWISE_WRAPPED(u8)
POINTWISE_WRAPPED(i8)
POINTWISE_WRAPPED(i32)
POINTWISE_WRAPPED(i64)

#define POINTWISE_TO_WHOLE(F)                                                                                            \
  static __device__ inline u8 to_u8(F x) { return x != x || x < 0 ? 0 : x > 255 ? 255 : (u8)(i32)x; }                    \
  static __device__ inline i8 to_i8(F x) { return x != x ? 0 : x < -128 ? -128 : x > 127 ? 127 : (i8)(i32)x; }           \
  static __device__ inline i32 to_i32(F x) {                                                                             \
    return x != x ? 0 : x >= (F)0x1p31 ? 0x7fffffff : x < -(F)0x1p31 ? -0x7fffffff - 1 : (i32)x;                         \
  }                                                                                                                      \
  static __device__ inline i64 to_i64(F x) {                                                                             \
    return x != x ? 0 : x >= (F)0x1p63 ? 0x7fffffffffffffffll : x < -(F)0x1p63 ? -0x7fffffffffffffffll - 1 : (i64)x;     \
  }
POINTWISE_TO_WHOLE(f32)
POINTWISE_TO_WHOLE(f64)

/* f32 rounded to the dtype of the value. */
static __device__ inline f32 round_f16(f32 x) { return widen(f16_of(x)); }
static __device__ inline f32 round_bf16(f32 x) { return widen(bf16_of(x)); }

#endif
