/* backends/cuda/device/alignment.cu: alignment and its gradient by the forward-backward algorithm, as
 * backends/cpu/kernels/alignment.c has it. A block takes a sequence through its steps; its threads share the states.
 * Logarithms are f64. Numbers of steps and states outside the operand count as its bounds. */
#include "backends/cuda/device/alignment.cuh"
#include "backends/cuda/device/reduce.cuh"

struct alignment {
  const unsigned char *skip;
  i64 steps, states, pitch; /* pitch: states of the operand */
  f64 *alpha, *beta;        /* beta: two steps */
  f64 none;                 /* -inf */
};

static __device__ inline i64 within(i64 n, i64 most) { return n < 0 ? 0 : n > most ? most : n; }

static __device__ inline alignment alignment_of(const alignment_args &a, i64 row) {
  alignment p;
  p.steps = within(a.of_steps[row], a.steps);
  p.states = within(a.of_states[row], a.states);
  p.pitch = a.states;
  p.skip = a.skip + row * a.states;
  p.alpha = a.room + row * (a.steps + 2) * a.states;
  p.beta = p.alpha + a.steps * a.states;
  set_lowest(&p.none);
  return p;
}

static __device__ inline f64 log_sum(f64 x, f64 y, f64 z) {
  f64 most = x > y ? x : y;
  most = most > z ? most : z;
  if (x != x || y != y || z != z) return x + y + z;
  return most - most != 0 ? most : most + log(exp(x - most) + exp(y - most) + exp(z - most));
}

static __device__ inline bool skips(const alignment &p, i64 s) { return s >= 2 && s < p.states && p.skip[s] != 0; }

template <typename T> static __device__ f64 alignment_forward(const alignment &p, const T *score) {
  for (i64 t = 0; t < p.steps; t++) {
    const f64 *from = p.alpha + (t - 1) * p.pitch;
    for (i64 s = threadIdx.x; s < p.states; s += blockDim.x) {
      f64 before = s < 2 ? 0 : p.none;
      if (t > 0) before = log_sum(from[s], s > 0 ? from[s - 1] : p.none, skips(p, s) ? from[s - 2] : p.none);
      p.alpha[t * p.pitch + s] = before == p.none ? before : before + (f64)widen(score[t * p.pitch + s]);
    }
    __syncthreads();
  }
  if (p.steps == 0 || p.states == 0) return p.none;
  const f64 *end = p.alpha + (p.steps - 1) * p.pitch + p.states - 1;
  return log_sum(end[0], p.states > 1 ? end[-1] : p.none, p.none);
}

template <typename T>
static __device__ void alignment_backward(const alignment &p, const T *score, f64 total, f64 dtotal, T *dscore) {
  for (i64 t = p.steps - 1; t >= 0; t--) {
    f64 *own = p.beta + t % 2 * p.pitch;
    const f64 *next = p.beta + (t + 1) % 2 * p.pitch;
    for (i64 s = threadIdx.x; s < p.states; s += blockDim.x) {
      f64 beta = s + 2 >= p.states ? 0 : p.none;
      if (t + 1 < p.steps)
        beta = log_sum(next[s], s + 1 < p.states ? next[s + 1] : p.none, skips(p, s + 2) ? next[s + 2] : p.none);
      own[s] = beta + (f64)widen(score[t * p.pitch + s]);
      narrow(dscore + t * p.pitch + s, (decltype(widen(T())))(dtotal * exp(p.alpha[t * p.pitch + s] + beta - total)));
    }
    __syncthreads();
  }
}

template <typename T> static __device__ void alignment_rows(const alignment_args &a) {
  for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
    alignment p = alignment_of(a, row);
    i64 n = a.steps * a.states;
    const T *score = (const T *)a.score + row * n;
    T *dscore = (T *)a.dscore + row * n;
    f64 total = alignment_forward(p, score);
    if (a.dscore == 0) {
      if (threadIdx.x == 0) narrow((T *)a.total + row, (decltype(widen(T())))total);
    } else {
      for (i64 i = threadIdx.x; i < n; i += blockDim.x) narrow(dscore + i, (decltype(widen(T())))0);
      __syncthreads();
      if (total != p.none) alignment_backward(p, score, total, (f64)widen(((const T *)a.dtotal)[row]), dscore);
    }
    __syncthreads();
  }
}

#define ALIGNMENT(T) \
  extern "C" __global__ void __launch_bounds__(ALIGNMENT_THREADS, 1) alignment_##T(const alignment_args a) { \
    alignment_rows<T>(a); \
  }
ALIGNMENT(f16)
ALIGNMENT(bf16)
ALIGNMENT(f32)
ALIGNMENT(f64)
