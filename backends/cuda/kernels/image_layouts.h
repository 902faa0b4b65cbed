/* backends/cuda/kernels/image_layouts.h: the layouts of images (batch, channels, height, width) and of the
 * weights of convolutions: row-major, or with the second dimension innermost (NHWC). */
#pragma once

#include "tenon/plugin/kernel.h"

/* Ids of variants. */
enum { TN_CUDA_ROW_MAJOR = 0, TN_CUDA_CHANNELS_LAST = 1 };

static inline tn_operand_layout tn_cuda_image_layout(int32_t variant) {
  tn_operand_layout rule = {0};
  if (variant == TN_CUDA_ROW_MAJOR) return rule;
  rule.rule = TN_LAYOUT_FIXED;
  rule.layout = (tn_layout){.set = 1, .order = {0, 2, 3, 1}};
  return rule;
}
