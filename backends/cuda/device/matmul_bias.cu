/* backends/cuda/device/matmul_bias.cu: adds a bias to the rows of a product, where cuBLASLt does not: to products of f64,
 * and to sums of no products. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/matmul_bias.cuh"

template <typename T> static __device__ void matmul_bias(const matmul_bias_args &a) {
  T *y = (T *)a.y;
  const T *bias = (const T *)a.bias;
  for (i64 i = grid_first(); i < a.rows * a.columns; i += grid_step()) {
    if (a.empty && bias == nullptr)
      narrow(&y[i], 0);
    else if (a.empty)
      y[i] = bias[i % a.columns];
    else
      narrow(&y[i], widen(y[i]) + widen(bias[i % a.columns]));
  }
}

extern "C" __global__ void __launch_bounds__(256) matmul_bias_f16(const matmul_bias_args a) { matmul_bias<f16>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_bias_bf16(const matmul_bias_args a) { matmul_bias<bf16>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_bias_f32(const matmul_bias_args a) { matmul_bias<f32>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_bias_f64(const matmul_bias_args a) { matmul_bias<f64>(a); }
