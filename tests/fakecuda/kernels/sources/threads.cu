// Kernels of the tests. Parameters are pointers and long long, so that a buffer of words of 8 bytes holds them.

extern "C" __global__ void scale(float *to, const float *__restrict__ from, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 2.0f * from[i] + 1.0f;
}

// Which block and thread wrote each element of a grid of three dimensions.
extern "C" __global__ void coordinates(unsigned *to) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned z = blockIdx.z * blockDim.z + threadIdx.z, w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
  to[(z * h + y) * w + x] = x | y << 8 | z << 16;
}

extern "C" __global__ void __launch_bounds__(256) tree_sum(float *to, const float *from) {
  __shared__ float part[256];
  part[threadIdx.x] = from[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (unsigned half = 128; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = part[0];
}

static __device__ __forceinline__ float warp_sum(float v) {
#ifdef __CUDA_ARCH__
  float other;
  asm("mov.b32 %0, %1;" : "=f"(other) : "f"(v));
  v = other;
#endif
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  return v;
}

// A sum over the block by shuffles, the partial sums in shared memory.
extern "C" __global__ void __launch_bounds__(1024, 1) warp_sums(float *to, const float *from) {
  static __shared__ float part[32];
  float v = warp_sum(from[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) to[blockIdx.x] = v;
  }
}

extern "C" __global__ void reverse(int *to, const int *from) {
  extern __shared__ int row[];
  row[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  to[blockIdx.x * blockDim.x + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

// The last block to finish adds the parts up, in their order.
__device__ unsigned done;
extern "C" __global__ void last_block(float *to, float *part, const float *from) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = from[blockIdx.x];
    __threadfence();
    is_last = atomicAdd(&done, 1u) == gridDim.x - 1;
    if (is_last) {
      done = 0;
      float sum = 0.0f;
      for (unsigned i = 0; i < gridDim.x; i++) sum += part[i];
      to[0] = sum;
    }
  }
  __syncthreads();
  to[1 + blockIdx.x] = is_last ? 1.0f : 0.0f;
}

extern "C" __global__ void count_all(unsigned *sum, unsigned long long *wide, float *real, int *largest) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(sum, (unsigned)i);
  atomicAdd(wide, 1ull << 33);
  atomicAdd(real, 0.5f);
  atomicMax(largest, i % 2 ? i : -i);
}

// Order of the threads between barriers: each takes a ticket.
extern "C" __global__ void tickets(unsigned *to) {
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  to[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&next, 1u);
}

// Shared memory and dynamic shared memory before anything is written.
extern "C" __global__ void unwritten(unsigned *to) {
  __shared__ float tile[4][8];
  extern __shared__ float more[];
  to[2 * blockIdx.x] = __float_as_uint(tile[blockIdx.x][threadIdx.x]);
  to[2 * blockIdx.x + 1] = __float_as_uint(more[threadIdx.x]);
  tile[blockIdx.x][threadIdx.x] = more[threadIdx.x] = 1.0f;
}

// Thread 5 takes a lock that the other threads of the block wait for.
extern "C" __global__ void locked(unsigned *lock, unsigned *count) {
  bool waits = true;
  while (waits) {
    if (atomicCAS(lock, 0u, 1u) == 0u) {
      *count += 1;
      __threadfence();
      atomicExch(lock, 0u);
      waits = false;
    }
  }
}

// Threads that have exited do not count at a barrier.
extern "C" __global__ void early_exit(unsigned *to, long long n) {
  if (threadIdx.x >= n) return;
  to[threadIdx.x] = (unsigned)__syncthreads_count(1);
}

extern "C" __global__ void votes(unsigned *to) {
  unsigned t = threadIdx.x;
  to[t] = (unsigned)__syncthreads_count(t % 3 == 0);
  to[64 + t] = (unsigned)__syncthreads_and(t < 64) | (unsigned)__syncthreads_and(t < 63) << 1;
  to[128 + t] = (unsigned)__syncthreads_or(t == 63) | (unsigned)__syncthreads_or(t == 64) << 1;
}
