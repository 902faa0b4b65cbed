/* tests/fakecuda/kernels/host_cuda.h: CUDA C for the compiler of the host. The double of NVRTC puts image.h,
 * this text and host_math.h before each preprocessed source; `__shared__` it rewrites itself. It includes
 * nothing, and reads no macro of the compiler but __cplusplus. */

#define __global__ __attribute__((noinline, used))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __noinline__         __attribute__((noinline))
#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __maxnreg__(n)
#define __cluster_dims__(...)
#define __builtin_assume(e) ((e) ? (void)0 : __builtin_unreachable())
#define __assume(e)         ((e) ? (void)0 : __builtin_unreachable())
#define FAKE_FUNCTION       static __forceinline__
#define FAKE_SITE           const char *file = __builtin_FILE(), int line = __builtin_LINE()

typedef decltype(sizeof(0)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef long clock_t;

static __thread fake_here fakecuda_here;
static const fake_runtime *fakecuda_runtime;

typedef fake_index uint3;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
#define threadIdx (fakecuda_here.thread)
#define blockIdx  (fakecuda_here.block)
#define blockDim  (fakecuda_here.block_dim)
#define gridDim   (fakecuda_here.grid_dim)
static constexpr int warpSize = 32;

/* vectors, with the alignment that CUDA gives them */
#define FAKE_VECTORS(T, N, A1, A2, A4)                                                                       \
  struct __attribute__((aligned(A1))) N##1 {                                                                 \
    T x;                                                                                                     \
  };                                                                                                         \
  struct __attribute__((aligned(A2))) N##2 {                                                                 \
    T x, y;                                                                                                  \
  };                                                                                                         \
  struct N##3 {                                                                                              \
    T x, y, z;                                                                                               \
  };                                                                                                         \
  struct __attribute__((aligned(A4))) N##4 {                                                                 \
    T x, y, z, w;                                                                                            \
  };                                                                                                         \
  FAKE_FUNCTION N##1 make_##N##1(T x) { return N##1 {x}; }                                                   \
  FAKE_FUNCTION N##2 make_##N##2(T x, T y) { return N##2 {x, y}; }                                           \
  FAKE_FUNCTION N##3 make_##N##3(T x, T y, T z) { return N##3 {x, y, z}; }                                   \
  FAKE_FUNCTION N##4 make_##N##4(T x, T y, T z, T w) { return N##4 {x, y, z, w}; }
#define uint3      fake_unused_uint3
#define make_uint3 fake_make_unused_uint3
FAKE_VECTORS(signed char, char, 1, 2, 4)
FAKE_VECTORS(unsigned char, uchar, 1, 2, 4)
FAKE_VECTORS(short, short, 2, 4, 8)
FAKE_VECTORS(unsigned short, ushort, 2, 4, 8)
FAKE_VECTORS(int, int, 4, 8, 16)
FAKE_VECTORS(unsigned, uint, 4, 8, 16)
FAKE_VECTORS(long, long, 8, 16, 16)
FAKE_VECTORS(unsigned long, ulong, 8, 16, 16)
FAKE_VECTORS(long long, longlong, 8, 16, 16)
FAKE_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
FAKE_VECTORS(float, float, 4, 8, 16)
FAKE_VECTORS(double, double, 8, 16, 16)
#undef uint3
#undef make_uint3
FAKE_FUNCTION uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }

/* one type seen as another of its size */
template <typename To, typename From> FAKE_FUNCTION To fake_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
/* the bits of a value of up to 8 bytes */
template <typename T> FAKE_FUNCTION unsigned long long fake_pack(T value) {
  static_assert(sizeof(T) <= 8, "a value of at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T> FAKE_FUNCTION T fake_unpack(unsigned long long bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/* barriers of a block */
FAKE_FUNCTION int fake_wait(int verb, int predicate, const char *file, int line) {
  fake_barrier call = {verb, predicate, 0, line, file};
  fakecuda_runtime->barrier(fakecuda_here.state, &call);
  return call.result;
}
FAKE_FUNCTION void __syncthreads(FAKE_SITE) { fake_wait(FAKE_BARRIER, 0, file, line); }
FAKE_FUNCTION int __syncthreads_count(int p, FAKE_SITE) {
  return fake_wait(FAKE_BARRIER_COUNT, p, file, line);
}
FAKE_FUNCTION int __syncthreads_and(int p, FAKE_SITE) { return fake_wait(FAKE_BARRIER_AND, p, file, line); }
FAKE_FUNCTION int __syncthreads_or(int p, FAKE_SITE) { return fake_wait(FAKE_BARRIER_OR, p, file, line); }

/* operations of a warp */
FAKE_FUNCTION unsigned long long fake_lanes(int verb, unsigned mask, unsigned long long value, unsigned lane,
                                            int width, const char *file, int line) {
  fake_warp call = {verb, line, mask, lane, (unsigned)width, value, 0, file};
  fakecuda_runtime->warp(fakecuda_here.state, &call);
  return call.result;
}
FAKE_FUNCTION void __syncwarp(unsigned mask = 0xffffffffu, FAKE_SITE) {
  fake_lanes(FAKE_WARP_SYNC, mask, 0, 0, 32, file, line);
}
FAKE_FUNCTION unsigned __ballot_sync(unsigned mask, int predicate, FAKE_SITE) {
  return (unsigned)fake_lanes(FAKE_WARP_BALLOT, mask, predicate != 0, 0, 32, file, line);
}
FAKE_FUNCTION int __any_sync(unsigned mask, int predicate, FAKE_SITE) {
  return fake_lanes(FAKE_WARP_BALLOT, mask, predicate != 0, 0, 32, file, line) != 0;
}
FAKE_FUNCTION int __all_sync(unsigned mask, int predicate, FAKE_SITE) {
  return fake_lanes(FAKE_WARP_BALLOT, mask, predicate != 0, 0, 32, file, line) == mask;
}
/* Lanes converge only where an operation of the warp makes them: each is alone. */
FAKE_FUNCTION unsigned __activemask() { return 1u << fakecuda_runtime->lane(fakecuda_here.state); }

#define FAKE_SHUFFLES(T)                                                                                     \
  FAKE_FUNCTION T __shfl_sync(unsigned mask, T v, int lane, int width = 32, FAKE_SITE) {                     \
    return fake_unpack<T>(                                                                                   \
        fake_lanes(FAKE_WARP_SHUFFLE, mask, fake_pack(v), (unsigned)lane, width, file, line));               \
  }                                                                                                          \
  FAKE_FUNCTION T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, FAKE_SITE) {            \
    return fake_unpack<T>(fake_lanes(FAKE_WARP_SHUFFLE_UP, mask, fake_pack(v), delta, width, file, line));   \
  }                                                                                                          \
  FAKE_FUNCTION T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, FAKE_SITE) {          \
    return fake_unpack<T>(fake_lanes(FAKE_WARP_SHUFFLE_DOWN, mask, fake_pack(v), delta, width, file, line)); \
  }                                                                                                          \
  FAKE_FUNCTION T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, FAKE_SITE) {                \
    return fake_unpack<T>(                                                                                   \
        fake_lanes(FAKE_WARP_SHUFFLE_XOR, mask, fake_pack(v), (unsigned)lanes, width, file, line));          \
  }
FAKE_SHUFFLES(int)
FAKE_SHUFFLES(unsigned)
FAKE_SHUFFLES(long)
FAKE_SHUFFLES(unsigned long)
FAKE_SHUFFLES(long long)
FAKE_SHUFFLES(unsigned long long)
FAKE_SHUFFLES(float)
FAKE_SHUFFLES(double)

#define FAKE_MATCH(T)                                                                                        \
  FAKE_FUNCTION unsigned __match_any_sync(unsigned mask, T v, FAKE_SITE) {                                   \
    return (unsigned)fake_lanes(FAKE_WARP_MATCH_ANY, mask, fake_pack(v), 0, 32, file, line);                 \
  }
FAKE_MATCH(int)
FAKE_MATCH(unsigned)
FAKE_MATCH(long long)
FAKE_MATCH(unsigned long long)
FAKE_MATCH(float)
FAKE_MATCH(double)

#define FAKE_REDUCE(NAME, T, VERB)                                                                           \
  FAKE_FUNCTION T NAME(unsigned mask, T v, FAKE_SITE) {                                                      \
    return (T)fake_lanes(VERB, mask, (unsigned)v, 0, 32, file, line);                                        \
  }
FAKE_REDUCE(__reduce_add_sync, unsigned, FAKE_WARP_REDUCE_ADD)
FAKE_REDUCE(__reduce_add_sync, int, FAKE_WARP_REDUCE_ADD)
FAKE_REDUCE(__reduce_min_sync, unsigned, FAKE_WARP_REDUCE_MIN)
FAKE_REDUCE(__reduce_min_sync, int, FAKE_WARP_REDUCE_MIN_SIGNED)
FAKE_REDUCE(__reduce_max_sync, unsigned, FAKE_WARP_REDUCE_MAX)
FAKE_REDUCE(__reduce_max_sync, int, FAKE_WARP_REDUCE_MAX_SIGNED)
FAKE_REDUCE(__reduce_and_sync, unsigned, FAKE_WARP_REDUCE_AND)
FAKE_REDUCE(__reduce_or_sync, unsigned, FAKE_WARP_REDUCE_OR)
FAKE_REDUCE(__reduce_xor_sync, unsigned, FAKE_WARP_REDUCE_XOR)

/* memory */
FAKE_FUNCTION void __threadfence() { __atomic_thread_fence(5); }
FAKE_FUNCTION void __threadfence_block() { __atomic_thread_fence(5); }
FAKE_FUNCTION void __threadfence_system() { __atomic_thread_fence(5); }
#define FAKE_LOAD(NAME)                                                                                      \
  template <typename T> FAKE_FUNCTION T NAME(const T *from) { return *from; }
#define FAKE_STORE(NAME)                                                                                     \
  template <typename T> FAKE_FUNCTION void NAME(T *to, T value) { *to = value; }
/* clang-format off */
FAKE_LOAD(__ldg)
FAKE_LOAD(__ldcg)
FAKE_LOAD(__ldca)
FAKE_LOAD(__ldcs)
FAKE_LOAD(__ldlu)
FAKE_LOAD(__ldcv)
FAKE_STORE(__stwb)
FAKE_STORE(__stcg)
FAKE_STORE(__stcs)
FAKE_STORE(__stwt)
/* clang-format on */

/* Memory orders are numbers here: 0 is relaxed, 5 sequentially consistent. */

/* atomics; several launches may run at once, on threads of the host */
template <typename T, typename F> FAKE_FUNCTION T fake_atomic(T *at, F change) {
  T old, wanted;
  __atomic_load(at, &old, 0);
  do {
    wanted = change(old);
  } while (!__atomic_compare_exchange(at, &old, &wanted, false, 0, 0));
  return old;
}
#define FAKE_ATOMIC(NAME, T, FORMULA)                                                                        \
  FAKE_FUNCTION T NAME(T *at, T v) {                                                                         \
    return fake_atomic(at, [v](T old) -> T { return FORMULA; });                                             \
  }
#define FAKE_ATOMIC_INTEGERS(T)                                                                              \
  FAKE_ATOMIC(atomicMin, T, old < v ? old : v)                                                               \
  FAKE_ATOMIC(atomicMax, T, old > v ? old : v)                                                               \
  FAKE_FUNCTION T atomicExch(T *at, T v) { return __atomic_exchange_n(at, v, 0); }                           \
  FAKE_FUNCTION T atomicAnd(T *at, T v) { return __atomic_fetch_and(at, v, 0); }                             \
  FAKE_FUNCTION T atomicOr(T *at, T v) { return __atomic_fetch_or(at, v, 0); }                               \
  FAKE_FUNCTION T atomicXor(T *at, T v) { return __atomic_fetch_xor(at, v, 0); }
#define FAKE_ATOMIC_CAS(T)                                                                                   \
  FAKE_FUNCTION T atomicCAS(T *at, T compare, T v) {                                                         \
    T old = compare;                                                                                         \
    if (!__atomic_compare_exchange_n(at, &old, v, false, 5, 5))                                              \
      fakecuda_runtime->yield(fakecuda_here.state); /* a lock that another thread holds */                   \
    return old;                                                                                              \
  }
FAKE_ATOMIC_INTEGERS(int)
FAKE_ATOMIC_INTEGERS(unsigned)
FAKE_ATOMIC_INTEGERS(unsigned long long)
FAKE_ATOMIC(atomicMin, long long, old < v ? old : v)
FAKE_ATOMIC(atomicMax, long long, old > v ? old : v)
FAKE_FUNCTION int atomicAdd(int *at, int v) { return __atomic_fetch_add(at, v, 0); }
FAKE_FUNCTION unsigned atomicAdd(unsigned *at, unsigned v) { return __atomic_fetch_add(at, v, 0); }
FAKE_FUNCTION unsigned long long atomicAdd(unsigned long long *at, unsigned long long v) {
  return __atomic_fetch_add(at, v, 0);
}
FAKE_ATOMIC(atomicAdd, float, old + v)
FAKE_ATOMIC(atomicAdd, double, old + v)
FAKE_FUNCTION int atomicSub(int *at, int v) { return __atomic_fetch_sub(at, v, 0); }
FAKE_FUNCTION unsigned atomicSub(unsigned *at, unsigned v) { return __atomic_fetch_sub(at, v, 0); }
FAKE_ATOMIC(atomicInc, unsigned, old >= v ? 0u : old + 1)
FAKE_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
FAKE_FUNCTION float atomicExch(float *at, float v) {
  return fake_bits<float>(__atomic_exchange_n((unsigned *)at, fake_bits<unsigned>(v), 0));
}
FAKE_ATOMIC_CAS(int)
FAKE_ATOMIC_CAS(unsigned)
FAKE_ATOMIC_CAS(unsigned long long)
FAKE_ATOMIC_CAS(unsigned short)

/* the rest */
FAKE_FUNCTION long long clock64() { return (long long)fakecuda_runtime->clock(fakecuda_here.state); }
FAKE_FUNCTION clock_t clock() { return (clock_t)clock64(); }
FAKE_FUNCTION void __nanosleep(unsigned) { fakecuda_runtime->yield(fakecuda_here.state); }
FAKE_FUNCTION void __trap(FAKE_SITE) { fakecuda_runtime->trap(fakecuda_here.state, "__trap()", file, line); }
FAKE_FUNCTION void __brkpt() {}
FAKE_FUNCTION void fakecuda_assert(const char *what, FAKE_SITE) {
  fakecuda_runtime->trap(fakecuda_here.state, what, file, line);
}
extern "C" int printf(const char *, ...);
extern "C" void *memcpy(void *, const void *, size_t);
extern "C" void *memset(void *, int, size_t);

/* entries of kernels: parameters lie in the buffer as CUDA lays them */
template <typename... P> struct fake_layout {
  struct table {
    fake_parameter at[sizeof...(P) + 1];
    unsigned bytes;
  };
  static constexpr table make() {
    table made = {};
    const unsigned sizes[] = {(unsigned)sizeof(P)..., 0u}, aligns[] = {(unsigned)alignof(P)..., 1u};
    unsigned at = 0;
    for (unsigned i = 0; i < sizeof...(P); i++) {
      at = (at + aligns[i] - 1) / aligns[i] * aligns[i];
      made.at[i].offset = at;
      made.at[i].bytes = sizes[i];
      at += sizes[i];
    }
    made.bytes = at;
    return made;
  }
  static constexpr table value = make();
};
template <unsigned... I> struct fake_numbers {};
template <unsigned N, unsigned... I> struct fake_count : fake_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct fake_count<0, I...> { typedef fake_numbers<I...> type; };

template <auto K, typename F = decltype(K)> struct fake_entry {
  static_assert(sizeof(F) == 0, "a __global__ function must have a void return type");
};
template <auto K, typename... P> struct fake_entry<K, void (*)(P...)> {
  typedef fake_layout<P...> layout;
  template <unsigned... I> static inline void call(const char *buffer, fake_numbers<I...>) {
    (void)buffer;
    K(*(const P *)(const void *)(buffer + layout::value.at[I].offset)...);
  }
  static void run(const void *buffer) {
    call((const char *)buffer, typename fake_count<sizeof...(P)>::type());
  }
  static constexpr fake_kernel describe(const char *written, int max_threads) {
    return fake_kernel{
        written, nullptr, run, layout::value.at, (int)sizeof...(P), max_threads, layout::value.bytes};
  }
};
/* The address of a kernel is no constant expression as another type. */
FAKE_FUNCTION fake_kernel fake_described(fake_kernel kernel, void (*address)()) {
  kernel.kernel = address;
  return kernel;
}
