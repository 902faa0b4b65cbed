/* backends/cuda/device/conv_fold.cu: see conv_fold.cuh. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv_fold.cuh"

static __device__ f32 fold_factor(const conv_fold_args &a, i64 output) {
  f32 gamma = a.gamma == nullptr ? 1.0f : a.gamma[output];
  return gamma / sqrtf(a.variance[output] + a.epsilon);
}

template <typename To> static __device__ void fold_bias(const conv_fold_args &a, i64 output) {
  f32 beta = a.beta == nullptr ? 0.0f : a.beta[output];
  narrow(&((To *)a.bias)[output], beta - a.mean[output] * fold_factor(a, output));
}

/* A block for each output. */
template <typename From, typename To> static __device__ void conv_fold(const conv_fold_args &a) {
  i64 output = blockIdx.x;
  i32 inputs = (i32)a.inputs, pixels = (i32)a.pixels, row = inputs * pixels;
  const From *weight = (const From *)a.weight + output * row;
  To *to = (To *)a.to + output * row;
  f32 factor = fold_factor(a, output);
  for (i32 i = (i32)threadIdx.x; i < row; i += (i32)blockDim.x)
    narrow(&to[i], widen(weight[i % inputs * pixels + i / inputs]) * factor);
  if (threadIdx.x == 0) fold_bias<To>(a, output);
}

#define CONV_FOLD(from, to)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(256) conv_fold_##from##_##to(const conv_fold_args a) {                         \
    conv_fold<from, to>(a);                                                                                                   \
  }
CONV_FOLD(f32, f16)
CONV_FOLD(f32, bf16)
CONV_FOLD(f32, f32)
CONV_FOLD(f16, f16)
CONV_FOLD(bf16, bf16)
