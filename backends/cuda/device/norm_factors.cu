/* backends/cuda/device/norm_factors.cu: see norm_factors.cuh. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/norm_factors.cuh"

extern "C" __global__ void __launch_bounds__(128) norm_factors_f16(const norm_factors_args a) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.channels) return;
  f32 factor = a.rstd[i] * a.gamma[i];
  narrow(&((f16 *)a.factor)[i], factor);
  narrow(&((f16 *)a.summand)[i], a.beta[i] - a.mean[i] * factor);
}
