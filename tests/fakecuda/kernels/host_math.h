/* tests/fakecuda/kernels/host_math.h: the functions of numbers of CUDA C, by functions of the host. Those
 * that CUDA approximates (__expf) are exact here. */

FAKE_FUNCTION unsigned __float_as_uint(float v) { return fake_bits<unsigned>(v); }
FAKE_FUNCTION int __float_as_int(float v) { return fake_bits<int>(v); }
FAKE_FUNCTION float __uint_as_float(unsigned v) { return fake_bits<float>(v); }
FAKE_FUNCTION float __int_as_float(int v) { return fake_bits<float>(v); }
FAKE_FUNCTION long long __double_as_longlong(double v) { return fake_bits<long long>(v); }
FAKE_FUNCTION double __longlong_as_double(long long v) { return fake_bits<double>(v); }
FAKE_FUNCTION int __double2hiint(double v) { return (int)(fake_bits<unsigned long long>(v) >> 32); }
FAKE_FUNCTION int __double2loint(double v) { return (int)fake_bits<unsigned long long>(v); }
FAKE_FUNCTION double __hiloint2double(int hi, int lo) {
  return fake_bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

/* integers */
FAKE_FUNCTION unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
FAKE_FUNCTION int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
FAKE_FUNCTION unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
FAKE_FUNCTION long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
FAKE_FUNCTION int __mul24(int a, int b) {
  return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8));
}
FAKE_FUNCTION unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
FAKE_FUNCTION int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
FAKE_FUNCTION int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
FAKE_FUNCTION int __popc(unsigned v) { return __builtin_popcount(v); }
FAKE_FUNCTION int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
FAKE_FUNCTION int __ffs(int v) { return __builtin_ffs(v); }
FAKE_FUNCTION int __ffsll(long long v) { return __builtin_ffsll(v); }
FAKE_FUNCTION unsigned __brev(unsigned v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(v);
}
FAKE_FUNCTION unsigned long long __brevll(unsigned long long v) {
  return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}
FAKE_FUNCTION unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
FAKE_FUNCTION unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) << (n & 31) >> 32);
}
FAKE_FUNCTION unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
FAKE_FUNCTION unsigned __sad(int a, int b, unsigned c) { return c + (unsigned)(a > b ? a - b : b - a); }

#define FAKE_LEAST(T, A, B)                                                                                  \
  FAKE_FUNCTION T min(A a, B b) { return (T)a < (T)b ? (T)a : (T)b; }                                        \
  FAKE_FUNCTION T max(A a, B b) { return (T)a > (T)b ? (T)a : (T)b; }
#define FAKE_LEAST_MIXED(T, U) FAKE_LEAST(T, T, T) FAKE_LEAST(U, U, U) FAKE_LEAST(U, T, U) FAKE_LEAST(U, U, T)
FAKE_LEAST_MIXED(int, unsigned)
FAKE_LEAST_MIXED(long, unsigned long)
FAKE_LEAST_MIXED(long long, unsigned long long)
/* As fminf does, min and max of two floats take the number where the other is NaN. */
FAKE_FUNCTION float min(float a, float b) { return __builtin_fminf(a, b); }
FAKE_FUNCTION float max(float a, float b) { return __builtin_fmaxf(a, b); }
FAKE_FUNCTION double min(double a, double b) { return __builtin_fmin(a, b); }
FAKE_FUNCTION double max(double a, double b) { return __builtin_fmax(a, b); }
FAKE_FUNCTION double min(float a, double b) { return __builtin_fmin(a, b); }
FAKE_FUNCTION double max(float a, double b) { return __builtin_fmax(a, b); }
FAKE_FUNCTION double min(double a, float b) { return __builtin_fmin(a, b); }
FAKE_FUNCTION double max(double a, float b) { return __builtin_fmax(a, b); }
FAKE_FUNCTION unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
FAKE_FUNCTION unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
FAKE_FUNCTION long long llmin(long long a, long long b) { return a < b ? a : b; }
FAKE_FUNCTION long long llmax(long long a, long long b) { return a > b ? a : b; }
FAKE_FUNCTION unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
FAKE_FUNCTION unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

/* functions of the C library: name(double), namef(float), and name(float) */
#define FAKE_MATH1(N)                                                                                        \
  extern "C" double N(double) noexcept;                                                                      \
  extern "C" float N##f(float) noexcept;                                                                     \
  FAKE_FUNCTION float N(float x) { return __builtin_##N##f(x); }
#define FAKE_MATH2(N)                                                                                        \
  extern "C" double N(double, double) noexcept;                                                              \
  extern "C" float N##f(float, float) noexcept;                                                              \
  FAKE_FUNCTION float N(float x, float y) { return __builtin_##N##f(x, y); }
#define FAKE_MATH_TO(T, N)                                                                                   \
  extern "C" T N(double) noexcept;                                                                           \
  extern "C" T N##f(float) noexcept;                                                                         \
  FAKE_FUNCTION T N(float x) { return __builtin_##N##f(x); }
/* clang-format off */
FAKE_MATH1(sqrt)
FAKE_MATH1(cbrt)
FAKE_MATH1(exp)
FAKE_MATH1(exp2)
FAKE_MATH1(expm1)
FAKE_MATH1(log)
FAKE_MATH1(log2)
FAKE_MATH1(log10)
FAKE_MATH1(log1p)
FAKE_MATH1(logb)
FAKE_MATH1(sin)
FAKE_MATH1(cos)
FAKE_MATH1(tan)
FAKE_MATH1(asin)
FAKE_MATH1(acos)
FAKE_MATH1(atan)
FAKE_MATH1(sinh)
FAKE_MATH1(cosh)
FAKE_MATH1(tanh)
FAKE_MATH1(asinh)
FAKE_MATH1(acosh)
FAKE_MATH1(atanh)
FAKE_MATH1(erf)
FAKE_MATH1(erfc)
FAKE_MATH1(tgamma)
FAKE_MATH1(lgamma)
FAKE_MATH1(floor)
FAKE_MATH1(ceil)
FAKE_MATH1(trunc)
FAKE_MATH1(round)
FAKE_MATH1(rint)
FAKE_MATH1(nearbyint)
FAKE_MATH1(fabs)
FAKE_MATH2(atan2)
FAKE_MATH2(pow)
FAKE_MATH2(fmod)
FAKE_MATH2(remainder)
FAKE_MATH2(hypot)
FAKE_MATH2(fmin)
FAKE_MATH2(fmax)
FAKE_MATH2(fdim)
FAKE_MATH2(copysign)
FAKE_MATH2(nextafter)
FAKE_MATH_TO(long, lrint)
FAKE_MATH_TO(long, lround)
FAKE_MATH_TO(long long, llrint)
FAKE_MATH_TO(long long, llround)
FAKE_MATH_TO(int, ilogb)
/* clang-format on */
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
FAKE_FUNCTION float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
FAKE_FUNCTION float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
extern "C" double scalbn(double, int) noexcept;
extern "C" float scalbnf(float, int) noexcept;
FAKE_FUNCTION float scalbn(float x, int n) { return __builtin_scalbnf(x, n); }
extern "C" double frexp(double, int *) noexcept;
extern "C" float frexpf(float, int *) noexcept;
FAKE_FUNCTION float frexp(float x, int *n) { return __builtin_frexpf(x, n); }
extern "C" double modf(double, double *) noexcept;
extern "C" float modff(float, float *) noexcept;
FAKE_FUNCTION float modf(float x, float *n) { return __builtin_modff(x, n); }
FAKE_FUNCTION float pow(float x, int n) { return __builtin_powf(x, (float)n); }
FAKE_FUNCTION double pow(double x, int n) { return __builtin_pow(x, (double)n); }
FAKE_FUNCTION double pow(float x, double y) { return __builtin_pow(x, y); }
FAKE_FUNCTION double pow(double x, float y) { return __builtin_pow(x, y); }
extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
FAKE_FUNCTION long abs(long v) { return v < 0 ? -v : v; }
FAKE_FUNCTION long long abs(long long v) { return v < 0 ? -v : v; }
FAKE_FUNCTION float abs(float v) { return __builtin_fabsf(v); }
FAKE_FUNCTION double abs(double v) { return __builtin_fabs(v); }
#define FAKE_CLASS(T)                                                                                        \
  FAKE_FUNCTION bool isnan(T v) { return __builtin_isnan(v); }                                               \
  FAKE_FUNCTION bool isinf(T v) { return __builtin_isinf(v); }                                               \
  FAKE_FUNCTION bool isfinite(T v) { return __builtin_isfinite(v); }                                         \
  FAKE_FUNCTION bool signbit(T v) { return __builtin_signbit(v); }
FAKE_CLASS(float)
FAKE_CLASS(double)
FAKE_FUNCTION float nanf(const char *) { return __builtin_nanf(""); }
FAKE_FUNCTION double nan(const char *) { return __builtin_nan(""); }

/* functions of CUDA alone; formulas of a float are evaluated in double */
#define FAKE_OWN(N, FORMULA)                                                                                 \
  FAKE_FUNCTION double N(double x) { return FORMULA; }                                                       \
  FAKE_FUNCTION float N##f(float v) {                                                                        \
    double x = v;                                                                                            \
    return (float)(FORMULA);                                                                                 \
  }                                                                                                          \
  FAKE_FUNCTION float N(float v) { return N##f(v); }
FAKE_FUNCTION double fake_sinpi(double x) {
  return __builtin_sin(3.14159265358979323846 * __builtin_fmod(x, 2.0));
}
FAKE_FUNCTION double fake_cospi(double x) {
  return __builtin_cos(3.14159265358979323846 * __builtin_fmod(x, 2.0));
}
FAKE_OWN(rsqrt, 1.0 / __builtin_sqrt(x))
FAKE_OWN(rcbrt, 1.0 / __builtin_cbrt(x))
FAKE_OWN(exp10, __builtin_pow(10.0, x))
FAKE_OWN(sinpi, fake_sinpi(x))
FAKE_OWN(cospi, fake_cospi(x))
FAKE_OWN(normcdf, 0.5 * __builtin_erfc(-x * 0.70710678118654752440))
FAKE_FUNCTION void sincosf(float x, float *s, float *c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
FAKE_FUNCTION void sincos(double x, double *s, double *c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
FAKE_FUNCTION void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
FAKE_FUNCTION void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
FAKE_FUNCTION float fdividef(float x, float y) { return x / y; }

FAKE_FUNCTION float __expf(float x) { return __builtin_expf(x); }
FAKE_FUNCTION float __exp10f(float x) { return exp10f(x); }
FAKE_FUNCTION float __logf(float x) { return __builtin_logf(x); }
FAKE_FUNCTION float __log2f(float x) { return __builtin_log2f(x); }
FAKE_FUNCTION float __log10f(float x) { return __builtin_log10f(x); }
FAKE_FUNCTION float __sinf(float x) { return __builtin_sinf(x); }
FAKE_FUNCTION float __cosf(float x) { return __builtin_cosf(x); }
FAKE_FUNCTION float __tanf(float x) { return __builtin_tanf(x); }
FAKE_FUNCTION void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
FAKE_FUNCTION float __powf(float x, float y) { return __builtin_powf(x, y); }
FAKE_FUNCTION float __fdividef(float x, float y) { return x / y; }
FAKE_FUNCTION float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

/* arithmetic that the compiler never fuses */
FAKE_FUNCTION float __fadd_rn(float a, float b) { return a + b; }
FAKE_FUNCTION float __fsub_rn(float a, float b) { return a - b; }
FAKE_FUNCTION float __fmul_rn(float a, float b) { return a * b; }
FAKE_FUNCTION float __fdiv_rn(float a, float b) { return a / b; }
FAKE_FUNCTION float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FAKE_FUNCTION float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
FAKE_FUNCTION float __frcp_rn(float a) { return 1.0f / a; }
FAKE_FUNCTION float __frsqrt_rn(float a) { return rsqrtf(a); }
FAKE_FUNCTION double __dadd_rn(double a, double b) { return a + b; }
FAKE_FUNCTION double __dsub_rn(double a, double b) { return a - b; }
FAKE_FUNCTION double __dmul_rn(double a, double b) { return a * b; }
FAKE_FUNCTION double __ddiv_rn(double a, double b) { return a / b; }
FAKE_FUNCTION double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
FAKE_FUNCTION double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
FAKE_FUNCTION double __drcp_rn(double a) { return 1.0 / a; }

/* conversions: out of range gives the nearest end, NaN gives 0 (or the smallest number of 64 bits), as on the
 * device */
template <typename T> struct fake_range;
#define FAKE_RANGE(T, LOW, HIGH, END, NAN_)                                                                  \
  template <> struct fake_range<T> {                                                                         \
    static constexpr T low = LOW, high = HIGH, nan = NAN_;                                                   \
    static constexpr double end = END;                                                                       \
  };
FAKE_RANGE(int, -0x7fffffff - 1, 0x7fffffff, 2147483648.0, 0)
FAKE_RANGE(unsigned, 0u, 0xffffffffu, 4294967296.0, 0u)
FAKE_RANGE(long long, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll, 9223372036854775808.0,
           -0x7fffffffffffffffll - 1)
FAKE_RANGE(unsigned long long, 0ull, 0xffffffffffffffffull, 18446744073709551616.0, 0x8000000000000000ull)
template <typename T> FAKE_FUNCTION T fake_to(double whole) {
  typedef fake_range<T> range;
  if (__builtin_isnan(whole)) return range::nan;
  return whole <= (double)range::low ? range::low : whole >= range::end ? range::high : (T)whole;
}
#define FAKE_TO(T, NAME, FROM)                                                                               \
  FAKE_FUNCTION T __##NAME##_rn(FROM v) { return fake_to<T>(__builtin_rint(v)); }                            \
  FAKE_FUNCTION T __##NAME##_rz(FROM v) { return fake_to<T>(__builtin_trunc(v)); }                           \
  FAKE_FUNCTION T __##NAME##_ru(FROM v) { return fake_to<T>(__builtin_ceil(v)); }                            \
  FAKE_FUNCTION T __##NAME##_rd(FROM v) { return fake_to<T>(__builtin_floor(v)); }
FAKE_TO(int, float2int, float)
FAKE_TO(unsigned, float2uint, float)
FAKE_TO(long long, float2ll, float)
FAKE_TO(unsigned long long, float2ull, float)
FAKE_TO(int, double2int, double)
FAKE_TO(unsigned, double2uint, double)
FAKE_TO(long long, double2ll, double)
FAKE_TO(unsigned long long, double2ull, double)
FAKE_FUNCTION float __int2float_rn(int v) { return (float)v; }
FAKE_FUNCTION float __uint2float_rn(unsigned v) { return (float)v; }
FAKE_FUNCTION float __ll2float_rn(long long v) { return (float)v; }
FAKE_FUNCTION float __ull2float_rn(unsigned long long v) { return (float)v; }
FAKE_FUNCTION float __double2float_rn(double v) { return (float)v; }
FAKE_FUNCTION double __int2double_rn(int v) { return v; }
FAKE_FUNCTION double __uint2double_rn(unsigned v) { return v; }
FAKE_FUNCTION double __ll2double_rn(long long v) { return (double)v; }
FAKE_FUNCTION double __ull2double_rn(unsigned long long v) { return (double)v; }
