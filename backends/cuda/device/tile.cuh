/* backends/cuda/device/tile.cuh: products of tiles in shared memory, by blocks of 16 x 16 threads. A thread owns quads: four
 * adjacent rows and four adjacent columns, in each 64 of a tile. */
#ifndef TN_CUDA_TILE_CUH
#define TN_CUDA_TILE_CUH

static __device__ inline f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
static __device__ inline f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }

/* Adjacent numbers that are read at once. */
template <typename W, int N> struct __align__(N * sizeof(W) < 16 ? N * sizeof(W) : 16) run_of {
  W v[N];
};

/* sums += a b for one term: `a` and `b` are the rows of two tiles that hold it. A thread has runs of A and of B numbers,
 * 16 A and 16 B apart. */
template <typename W, int A, int RUNS_A, int B, int RUNS_B>
static __device__ inline void add_term(const W *a, const W *b, int a_at, int b_at, W (&sums)[A * RUNS_A][B * RUNS_B]) {
  run_of<W, A> rows[RUNS_A];
  run_of<W, B> columns[RUNS_B];
#pragma unroll
  for (int i = 0; i < RUNS_A; i++) rows[i] = *(const run_of<W, A> *)(a + (i * 16 + a_at) * A);
#pragma unroll
  for (int i = 0; i < RUNS_B; i++) columns[i] = *(const run_of<W, B> *)(b + (i * 16 + b_at) * B);
#pragma unroll
  for (int i = 0; i < A * RUNS_A; i++)
#pragma unroll
    for (int j = 0; j < B * RUNS_B; j++)
      sums[i][j] = multiply_add(rows[i / A].v[i % A], columns[j / B].v[j % B], sums[i][j]);
}

#endif
