// Kernels by templates, macros, namespaces; parameters of every alignment.

template <typename T> static __device__ T block_sum(T v) {
  __shared__ T part[128];
  part[threadIdx.x] = v;
  __syncthreads();
  T sum = 0;
  for (unsigned i = 0; i < blockDim.x; i++) sum += part[i];
  __syncthreads();
  return sum;
}

template <typename T,
          int N>
__global__ void __launch_bounds__(N * 2, 1) sum_of(T *to, const T *from) {
  T sum = block_sum<T>(from[threadIdx.x]);
  if (threadIdx.x == 0) *to = sum + (T)N;
}

template __global__ void sum_of<double, 32>(double *, const double *);

#define FILL(NAME, T, VALUE) \
  extern "C" __global__ void __launch_bounds__(32) NAME(T *to) { to[threadIdx.x] = (T)(VALUE); }
FILL(fill_int, int, 7)
FILL(fill_float, float, 0.5f)

extern "C" {
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__global__ void look_up(float *to) { to[threadIdx.x] = table[threadIdx.x % 4]; }
__global__ void declared(int *to);
}

namespace outer::inner {
namespace {
__device__ int two() { return 2; }
}
__global__ void __launch_bounds__(64) twice(int *to) { to[threadIdx.x] = two() * (int)threadIdx.x; }
}  // namespace outer::inner

struct pair {
  char first;
  double second;
};

extern "C" __global__ void mixed(char c, double d, short s, pair p, const __grid_constant__ int n, bool b, float4 f,
                                 double *__restrict__ to) {
  if (threadIdx.x == 0) to[0] = c + d + s + p.first + p.second + n + b + f.x + f.y + f.z + f.w;
}

extern "C" __global__ void declared(int *to) { *to = 11; }

extern "C" __global__ void nothing() {}
