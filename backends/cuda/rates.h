/* backends/cuda/rates.h: estimated times of kernels: the peak rates of a device, and the share of them that
 * kernels of a kind reach. docs/guide/devices.md has the published figures that the shares follow. */
#pragma once

#include "tenon/plugin/kernel.h"

typedef enum tn_cuda_kind {
  TN_CUDA_CONVOLUTION,       /* by cuDNN on matrix units */
  TN_CUDA_OLDER_CONVOLUTION, /* by code that cuDNN compiles for an older architecture */
  TN_CUDA_PLAIN_CONVOLUTION, /* by cuDNN on the plain units */
  TN_CUDA_ATTENTION,         /* by cuDNN, with heads of at most 64 */
  TN_CUDA_WIDE_ATTENTION,
  TN_CUDA_ATTENTION_GRAD,
  TN_CUDA_WIDE_ATTENTION_GRAD,
  TN_CUDA_PRODUCT,           /* by cuBLASLt on matrix units */
  TN_CUDA_UNALIGNED_PRODUCT, /* the same, where rows do not begin at multiples of 16 bytes */
  TN_CUDA_PLAIN_PRODUCT,     /* by cuBLASLt on the plain units */
  TN_CUDA_OWN_PRODUCT, /* convolutions and attention by the kernels of this backend, on the plain units */
  TN_CUDA_STREAM,      /* elements in the order of memory: pointwise regions, copies, the optimizer */
  TN_CUDA_ROWS,        /* sums, norms, losses, windows, lookups, transposes */
  TN_CUDA_KINDS
} tn_cuda_kind;

typedef struct tn_cuda_share {
  double memory, arithmetic; /* of bytes_per_s; of the rate of the units that compute */
} tn_cuda_share;

/* Pointwise arithmetic is not contracted, so half of the peak is its limit. */
static inline tn_cuda_share tn_cuda_share_of(tn_cuda_kind kind) {
  static const tn_cuda_share shares[TN_CUDA_KINDS] = {
      [TN_CUDA_CONVOLUTION] = {0.8, 0.6},
      [TN_CUDA_OLDER_CONVOLUTION] = {0.8, 0.3},
      [TN_CUDA_PLAIN_CONVOLUTION] = {0.8, 0.5},
      [TN_CUDA_ATTENTION] = {0.8, 0.33},
      [TN_CUDA_WIDE_ATTENTION] = {0.8, 0.47},
      [TN_CUDA_ATTENTION_GRAD] = {0.8, 0.26},
      [TN_CUDA_WIDE_ATTENTION_GRAD] = {0.8, 0.38},
      [TN_CUDA_PRODUCT] = {0.9, 0.72},
      [TN_CUDA_UNALIGNED_PRODUCT] = {0.9, 0.36},
      [TN_CUDA_PLAIN_PRODUCT] = {0.9, 0.75},
      [TN_CUDA_OWN_PRODUCT] = {0.8, 0.4},
      [TN_CUDA_STREAM] = {0.9, 0.4},
      [TN_CUDA_ROWS] = {0.8, 0.4},
  };
  return shares[kind];
}

/* Seconds to read or write so many bytes. */
static inline double tn_cuda_traffic_s(const tn_device_properties *d, tn_cuda_kind kind, double bytes) {
  return bytes / (tn_cuda_share_of(kind).memory * d->bytes_per_s);
}

/* Seconds of a launch with so many bytes, and operations on units of this peak rate. */
static inline double tn_cuda_estimate_s(const tn_device_properties *d, tn_cuda_kind kind, double bytes,
                                        double flops, double flops_per_s) {
  tn_cuda_share share = tn_cuda_share_of(kind);
  return tn_estimate_s(d, bytes / share.memory, flops, share.arithmetic * flops_per_s);
}

/* Seconds of a launch whose arithmetic takes no time. */
static inline double tn_cuda_bytes_s(const tn_device_properties *d, tn_cuda_kind kind, double bytes) {
  return d->launch_s + tn_cuda_traffic_s(d, kind, bytes);
}

/* The part of the multiprocessors that compute, on average, where each takes one tile after the other: the
 * last round has fewer tiles (NVIDIA, Matrix Multiplication Background, "wave quantization"). */
static inline double tn_cuda_busy_share(double tiles, int32_t processors) {
  if (processors <= 0 || tiles <= 0) return 1;
  int64_t rounds = ((int64_t)tiles + processors - 1) / processors;
  return tiles / ((double)rounds * processors);
}
