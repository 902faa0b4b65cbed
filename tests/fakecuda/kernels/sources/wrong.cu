// Kernels that break a rule of CUDA. Each must be refused with its reason.

extern "C" __global__ void part_at_barrier(float *to) {
  if (threadIdx.x == 40) __syncwarp(0x00000300u);
  __syncthreads();
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void two_barriers(float *to) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void barrier_and_warp(float *to) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void shuffle_after_exit(float *to, long long n) {
  if (threadIdx.x >= n) return;
  to[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void sync_after_exit(float *to, long long n) {
  if (threadIdx.x >= n) return;
  __syncwarp();
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void ballot_after_exit(float *to, long long n) {
  if (threadIdx.x >= n) return;
  to[threadIdx.x] = (float)__ballot_sync(0xffffffffu, 1);
}

extern "C" __global__ void ballot_never(float *to) {
  if (threadIdx.x == 7) {
    __ballot_sync(0x00000080u, 1);
    to[7] = (float)__syncthreads_or(0);
  } else {
    to[threadIdx.x] = (float)__ballot_sync(0xffffffffu, 1);
  }
}

extern "C" __global__ void foreign_mask(float *to) { to[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.0f, 0); }

extern "C" __global__ void bad_width(float *to) { to[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0, 12); }

extern "C" __global__ void different_verbs(float *to) {
  to[threadIdx.x] = threadIdx.x < 16 ? __shfl_sync(0xffffffffu, 1.0f, 0) : (float)__any_sync(0xffffffffu, 1);
}

extern "C" __global__ void __launch_bounds__(64) bounded(float *to) { to[threadIdx.x] = 0.0f; }

extern "C" __global__ void writes_past(float *to) {
  extern __shared__ float room[];
  room[threadIdx.x] = 1.0f;
  __syncthreads();
  to[threadIdx.x] = room[threadIdx.x];
}

extern "C" __global__ void trapped(float *to) {
  if (threadIdx.x == 3) __trap();
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void asserted(float *to) {
  assert(threadIdx.x != 2);
  to[threadIdx.x] = 0.0f;
}

extern "C" __global__ void fine(float *to) {
  __syncthreads();
  to[threadIdx.x] = 5.0f;
}
