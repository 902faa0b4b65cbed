/* backends/cuda/device/conv_fold.cu: see conv_fold.cuh. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv_fold.cuh"

static __device__ f32 fold_factor(const conv_fold_args &a, i64 output) {
  f32 gamma = a.gamma == nullptr ? 1.0f : a.gamma[output];
  return gamma / sqrtf(a.variance[output] + a.epsilon);
}

template <typename T> static __device__ void fold_bias(const conv_fold_args &a, i64 output) {
  f32 beta = a.beta == nullptr ? 0.0f : a.beta[output];
  narrow(&((T *)a.bias)[output], beta - a.mean[output] * fold_factor(a, output));
}

/* A block for each output. */
template <typename T> static __device__ void conv_fold(const conv_fold_args &a) {
  i64 output = blockIdx.x;
  i32 inputs = (i32)a.inputs, pixels = (i32)a.pixels, row = inputs * pixels;
  const T *weight = (const T *)a.weight + output * row;
  T *to = (T *)a.to + output * row;
  f32 factor = fold_factor(a, output);
  for (i32 i = (i32)threadIdx.x; i < row; i += (i32)blockDim.x)
    narrow(&to[i], widen(weight[i % inputs * pixels + i / inputs]) * factor);
  if (threadIdx.x == 0) fold_bias<T>(a, output);
}

#define CONV_FOLD(type)                                                                                                       \
  extern "C" __global__ void __launch_bounds__(256) conv_fold_##type(const conv_fold_args a) { conv_fold<type>(a); }
CONV_FOLD(f16)
CONV_FOLD(bf16)
CONV_FOLD(f32)
