// Each function of CUDA C once. intrinsics_test.c has the values that it expects, in the same order.

extern "C" __global__ void integers(unsigned long long *to, long long wide) {
  unsigned a = (unsigned)wide, b = (unsigned)(wide >> 20);
  int s = (int)a, n = 0;
  to[n++] = __umulhi(a, b);
  to[n++] = (unsigned long long)(long long)__mulhi(s, -7);
  to[n++] = __umul64hi((unsigned long long)wide, 0xfedcba9876543210ull);
  to[n++] = (unsigned long long)__mul64hi(wide, -wide);
  to[n++] = (unsigned long long)(long long)__mul24(0xfffff0, 3);
  to[n++] = __umul24(0xff000010u, 3);
  to[n++] = (unsigned long long)(__clz(s) + 100 * __clz(0) + 10000 * __clz(1));
  to[n++] = (unsigned long long)(__clzll(wide) + 100 * __clzll(0) + 10000 * __clzll(1));
  to[n++] = (unsigned long long)(__popc(a) + 100 * __popcll(~0ull));
  to[n++] = (unsigned long long)(__ffs(0) + 100 * __ffs(8) + 10000 * __ffsll(1ll << 40));
  to[n++] = __brev(0x12345678u);
  to[n++] = __brevll(1ull);
  to[n++] = __byte_perm(0x33221100u, 0x77665544u, 0x7240u);
  to[n++] = __funnelshift_l(0x80000001u, 0x12345678u, 4);
  to[n++] = __funnelshift_r(0x80000001u, 0x12345678u, 4);
  to[n++] = __sad(-3, 4, 10u);
  to[n++] = (unsigned long long)(long long)min(-1, 2) + (unsigned long long)max(-1, 2);
  to[n++] = min(1u, 2u) + 10ull * max(1u, 2u) + 100ull * min(-1, 5u) + 1000ull * min(3ll, 2ll) + 10000ull * max(3ull, 4ull);
  to[n++] = (unsigned long long)(abs(-3) + llabs(-40ll) + abs(-500ll));
  to[n++] = (unsigned long long)(__float2int_rn(2.5f) + 10 * __float2int_rz(2.9f) + 100 * __float2int_ru(2.1f) +
                                 1000 * __float2int_rd(2.9f));
  to[n++] = (unsigned long long)(long long)__float2int_rn(-3e20f);
  to[n++] = __float2uint_rn(-5.0f) + 10ull * __float2uint_rn(3.5f);
  to[n++] = (unsigned long long)__float2ll_rn(1e12f);
  to[n++] = __float2ull_rz(1e13f);
  to[n++] = (unsigned long long)(__double2int_rn(-2.5) + 100 * __double2int_rz(7.9));
  to[n++] = __double2uint_rz(4e9);
  to[n++] = (unsigned long long)__double2ll_rn(-1e15);
  to[n++] = (unsigned long long)(lrintf(2.5f) + 10 * lroundf(2.5f) + 100 * llrint(3.5) + 1000 * (long)ilogbf(9.0f));
  to[n++] = (unsigned long long)(isnan(nanf("")) + 2 * isinf(exp(1e4)) + 4 * isfinite(1.0f) + 8 * (signbit(-0.0f) != 0));
  to[n++] = sizeof(float2) + 100 * sizeof(float4) + 10000 * alignof(float4) + 1000000ull * alignof(ushort4);
}

extern "C" __global__ void bits(unsigned long long *to) {
  int n = 0;
  to[n++] = __float_as_uint(1.5f);
  to[n++] = (unsigned long long)(long long)__float_as_int(-1.5f);
  to[n++] = (unsigned long long)__double_as_longlong(__uint_as_float(0x3fc00000u));
  to[n++] = (unsigned long long)__double_as_longlong(__int_as_float(0x3fc00000));
  to[n++] = (unsigned long long)__double_as_longlong(__longlong_as_double(0x1234));
  to[n++] = (unsigned long long)__double_as_longlong(__hiloint2double(0x3ff00000, 5));
  to[n++] = (unsigned)__double2hiint(1.0) + (unsigned long long)(unsigned)__double2loint(1.0);
  float2 f2 = make_float2(1.0f, 2.0f);
  float4 f4 = make_float4(3.0f, 4.0f, 5.0f, 6.0f);
  int4 i4 = make_int4(1, 2, 3, 4);
  uint4 u4 = make_uint4(5, 6, 7, 8);
  ushort4 s4 = make_ushort4(1, 2, 3, 65535);
  uchar4 c4 = make_uchar4(1, 2, 3, 255);
  double2 d2 = make_double2(7.0, 8.0);
  uint3 u3 = make_uint3(1, 2, 3);
  dim3 dim(4, 5);
  to[n++] = (unsigned long long)(f2.x + f2.y + f4.x + f4.y + f4.z + f4.w + d2.x + d2.y);
  to[n++] = (unsigned long long)(i4.x + i4.y + i4.z + i4.w) + u4.x + u4.y + u4.z + u4.w + s4.w + c4.w;
  to[n++] = u3.x + 10 * u3.y + 100 * u3.z + 1000ull * dim.x + 10000ull * dim.y + 100000ull * dim.z + 1000000ull * warpSize;
  to[n++] = (unsigned long long)(clock64() >= 0) + __ldg(to) + __activemask() % 2;
}

extern "C" __global__ void floats(float *to, float x, float y) {
  int n = 0, e = 0;
  float part = 0, s = 0, c = 0;
  to[n++] = __fmul_rn(x, y);
  to[n++] = __fadd_rn(__fmul_rn(x, y), x);
  to[n++] = __fsub_rn(x, y);
  to[n++] = __fmaf_rn(x, y, x);
  to[n++] = __fdiv_rn(x, y);
  to[n++] = __fsqrt_rn(x);
  to[n++] = __frcp_rn(y);
  to[n++] = fmaf(x, y, -x);
  to[n++] = sqrtf(y);
  to[n++] = fabsf(-x) + fminf(x, y) + fmaxf(x, nanf(""));
  to[n++] = floorf(-x) + ceilf(x) + truncf(-x) + roundf(2.5f) + rintf(2.5f) + nearbyintf(3.5f);
  to[n++] = fmodf(y, x) + remainderf(y, x) + fdimf(y, x) + copysignf(x, -1.0f);
  to[n++] = ldexpf(x, 3) + scalbnf(x, -2);
  to[n++] = frexpf(y, &e);
  to[n++] = (float)e + modff(y, &part) + part;
  to[n++] = min(x, y) + max(x, y) + (float)min(x, 0.25) + (float)max(0.25, y);
  to[n++] = abs(-x) + fabs(-y) + floor(x) + sqrt(4.0f);
  to[n++] = __saturatef(y) + __saturatef(-y) + __saturatef(0.25f);
  to[n++] = __int2float_rn(16777217) + __uint2float_rn(3u) + __ll2float_rn(5ll) + __double2float_rn(0.1);
  to[n++] = nextafterf(x, y) + hypotf(3.0f, 4.0f);
  // from here on the device approximates
  to[n++] = expf(x);
  to[n++] = __expf(x);
  to[n++] = exp2f(x);
  to[n++] = exp10f(x);
  to[n++] = expm1f(x);
  to[n++] = logf(y);
  to[n++] = __logf(y);
  to[n++] = log2f(y);
  to[n++] = __log2f(y);
  to[n++] = log10f(y);
  to[n++] = __log10f(y);
  to[n++] = log1pf(y);
  to[n++] = sinf(x);
  to[n++] = __sinf(x);
  to[n++] = cosf(x);
  to[n++] = __cosf(x);
  to[n++] = tanf(x);
  to[n++] = __tanf(x);
  to[n++] = asinf(x);
  to[n++] = acosf(x);
  to[n++] = atanf(x);
  to[n++] = atan2f(x, y);
  to[n++] = sinhf(x);
  to[n++] = coshf(x);
  to[n++] = tanhf(x);
  to[n++] = asinhf(x);
  to[n++] = acoshf(y);
  to[n++] = atanhf(x);
  to[n++] = erff(x);
  to[n++] = erfcf(x);
  to[n++] = tgammaf(y);
  to[n++] = lgammaf(y);
  to[n++] = cbrtf(y);
  to[n++] = rsqrtf(y);
  to[n++] = rcbrtf(y);
  to[n++] = powf(y, x);
  to[n++] = __powf(y, x);
  to[n++] = __fdividef(x, y);
  to[n++] = fdividef(x, y);
  to[n++] = sinpif(x);
  to[n++] = cospif(x);
  to[n++] = normcdff(x);
  to[n++] = exp(x) + log(y) + pow(y, 2) + rsqrt(y);
  sincosf(x, &s, &c);
  to[n++] = s + c;
  __sincosf(x, &s, &c);
  to[n++] = s + c;
}

extern "C" __global__ void doubles(double *to, double x, double y) {
  int n = 0;
  double s = 0, c = 0;
  to[n++] = __dmul_rn(x, y);
  to[n++] = __dadd_rn(__dmul_rn(x, y), x);
  to[n++] = __dsub_rn(x, y);
  to[n++] = __ddiv_rn(x, y);
  to[n++] = __fma_rn(x, y, x);
  to[n++] = __dsqrt_rn(y);
  to[n++] = __drcp_rn(y);
  to[n++] = fma(x, y, -x);
  to[n++] = __int2double_rn(-3) + __uint2double_rn(4u) + __ll2double_rn(1ll << 40);
  to[n++] = floor(-x) + ceil(x) + trunc(-x) + round(2.5) + rint(2.5) + fabs(-x) + fmin(x, y) + fmax(x, y) + fmod(y, x);
  to[n++] = min(x, y) + max(x, y) + abs(-x);
  to[n++] = exp(x);
  to[n++] = log(y);
  to[n++] = pow(y, x);
  to[n++] = sin(x) + cos(x) + tan(x);
  to[n++] = tanh(x) + erf(x) + erfc(y) + lgamma(y);
  to[n++] = sqrt(y) + rsqrt(y) + cbrt(y) + hypot(x, y) + atan2(x, y);
  to[n++] = exp2(x) + exp10(x) + expm1(x) + log2(y) + log10(y) + log1p(y);
  to[n++] = sinpi(x) + cospi(x) + normcdf(x);
  sincos(x, &s, &c);
  to[n++] = s + c;
}

// Results of each lane of a warp, 32 words for each function.
extern "C" __global__ void lanes(unsigned long long *to) {
  unsigned t = threadIdx.x, all = 0xffffffffu;
  int n = 0;
  to[32 * n++ + t] = (unsigned long long)__shfl_sync(all, (int)t * 10, (int)t + 1);
  to[32 * n++ + t] = __shfl_sync(all, t, 3, 8);
  to[32 * n++ + t] = __shfl_up_sync(all, t + 1ull, 2);
  to[32 * n++ + t] = (unsigned long long)__shfl_up_sync(all, (long long)t << 40, 3, 16);
  to[32 * n++ + t] = (unsigned long long)__shfl_down_sync(all, (float)t, 5);
  to[32 * n++ + t] = (unsigned long long)__shfl_down_sync(all, (double)t, 1, 4);
  to[32 * n++ + t] = (unsigned long long)__shfl_xor_sync(all, (int)t, 7);
  to[32 * n++ + t] = (unsigned long long)__shfl_xor_sync(all, (int)t, 9, 8);
  to[32 * n++ + t] = __ballot_sync(all, t % 5 == 0);
  to[32 * n++ + t] = (unsigned long long)(__any_sync(all, t == 31) + 2 * __any_sync(all, t == 32) + 4 * __all_sync(all, t < 32) +
                                          8 * __all_sync(all, t < 31));
  unsigned half = t < 16 ? 0x0000ffffu : 0xffff0000u;
  to[32 * n++ + t] = t < 16 ? __ballot_sync(half, t & 1) : __ballot_sync(half, t & 2);
  __syncwarp(half);
  to[32 * n++ + t] = __shfl_down_sync(half, t, 8, 16);
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *w, float *f, double *d, unsigned short *h) {
  i[8] = atomicAdd(i, 5);
  u[8] = atomicAdd(u, 5u);
  w[8] = atomicAdd(w, 5ull);
  f[8] = atomicAdd(f, 5.0f);
  d[8] = atomicAdd(d, 5.0);
  atomicMax(i + 1, -1), atomicMin(i + 2, -100);
  atomicMax(u + 1, 4000000000u), atomicMin(u + 2, 1u);
  atomicMax(w + 1, 1ull << 40), atomicMin(w + 2, 1ull);
  i[9] = atomicCAS(i + 3, 3, 30), i[10] = atomicCAS(i + 3, 3, 40);
  u[9] = atomicCAS(u + 3, 3u, 30u);
  w[9] = atomicCAS(w + 3, 3ull, 30ull);
  h[1] = atomicCAS(h, (unsigned short)3, (unsigned short)30);
  i[11] = atomicExch(i + 4, 44);
  u[11] = atomicExch(u + 4, 44u);
  w[11] = atomicExch(w + 4, 44ull);
  f[11] = atomicExch(f + 4, 44.0f);
  atomicAnd(i + 5, 4), atomicOr(i + 6, 8), atomicXor(i + 7, 1);
  atomicAnd(u + 5, 4u), atomicOr(u + 6, 8u), atomicXor(u + 7, 1u);
  atomicAnd(w + 5, 4ull), atomicOr(w + 6, 8ull), atomicXor(w + 7, 1ull);
  atomicSub(i + 12, 2), atomicSub(u + 12, 2u);
  atomicInc(u + 13, 13u), atomicDec(u + 14, 100u);
  __threadfence(), __threadfence_block(), __threadfence_system();
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
extern "C" __global__ void reductions(unsigned *to) {
  unsigned t = threadIdx.x, all = 0xffffffffu;
  int n = 0;
  to[32 * n++ + t] = __match_any_sync(all, t % 4);
  to[32 * n++ + t] = __reduce_add_sync(all, t);
  to[32 * n++ + t] = (unsigned)__reduce_min_sync(all, (int)t - 16);
  to[32 * n++ + t] = __reduce_max_sync(all, t);
  to[32 * n++ + t] = __reduce_and_sync(all, t | 64u);
  to[32 * n++ + t] = __reduce_or_sync(all, t);
  to[32 * n++ + t] = __reduce_xor_sync(all, t);
}
#endif
