// The kernels of the tests of the double of the driver.

extern "C" __global__ void add(float *x, int n, float value) {
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) x[i] += value;
}

// Writes to any address.
extern "C" __global__ void wrong(float *x, long long offset) {
  if (threadIdx.x == 0) x[offset] = 1.0f;
}

// A shuffle with lanes that a block of 4 threads does not have.
extern "C" __global__ void refuse(float *x) {
  float value = __shfl_sync(0xffffffffu, (float)threadIdx.x, 31);
  if (x) *x = value;
}

extern "C" __global__ void __launch_bounds__(256) shared(float *x) {
  __shared__ float s[256];
  s[threadIdx.x] = 1.0f;
  __syncthreads();
  if (x) *x = s[(threadIdx.x + 1) % blockDim.x];
}
