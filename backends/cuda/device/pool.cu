/* backends/cuda/device/pool.cu: max_pool2d, avg_pool2d and their gradients without a prologue. */
#include "backends/cuda/device/pool_kernels.cuh"

#define POOL_KERNEL(op, suffix, T, W, I)                                                                               \
  extern "C" __global__ void __launch_bounds__(256, 1) op##_pool_##suffix(const pool_args a) {                            \
    for (I i = (I)grid_first(); i < (I)a.count; i += (I)grid_step()) op##_element<T, W, I>(a, no_prologue(), i);                     \
  }
#define POOL_OF(name, T, W)                                                                                            \
  POOL_KERNEL(max, name, T, W, u32)                                                                                    \
  POOL_KERNEL(max, name##_long, T, W, i64)                                                                             \
  POOL_KERNEL(max_grad, name, T, W, u32)                                                                               \
  POOL_KERNEL(max_grad, name##_long, T, W, i64)                                                                        \
  POOL_KERNEL(avg, name, T, W, u32)                                                                                    \
  POOL_KERNEL(avg, name##_long, T, W, i64)                                                                             \
  POOL_KERNEL(avg_grad, name, T, W, u32)                                                                               \
  POOL_KERNEL(avg_grad, name##_long, T, W, i64)

POOL_OF(f16, f16, f32)
POOL_OF(bf16, bf16, f32)
POOL_OF(f32, f32, f32)
POOL_OF(f64, f64, f64)
