/* tenon/attributes.h: the attribute structs of Tenon's own ops, which kernels read through
 * tn_node.attributes. Ops that are not listed have no attributes. `tenon inspect OP` shows defaults. Lists
 * over spatial dimensions are {height, width}. The host makes these structs; a minor version appends members.
 */
#ifndef TENON_ATTRIBUTES_H
#define TENON_ATTRIBUTES_H

#include "tenon/option.h"

TN_BEGIN_C

typedef struct tn_cast_attributes {
  int32_t to; /* dtype */
} tn_cast_attributes;

typedef struct tn_affine_attributes {
  double scale, shift; /* y = scale * x + shift */
} tn_affine_attributes;

typedef struct tn_full_attributes {
  tn_ints dims;
  double value;
  int32_t dtype;
} tn_full_attributes;

typedef struct tn_iota_attributes { /* element = its index along axis */
  tn_ints dims;
  int64_t axis;
  int32_t dtype;
} tn_iota_attributes;

typedef struct tn_broadcast_attributes {
  tn_ints dims;
} tn_broadcast_attributes;

/* random_uniform, random_normal. Operands: iteration and block, i64 scalars (an absent block is 0). Element e
 * uses word i % 4 of tn_philox_at(stream, iteration, i / 4); i = block * elements + e is its index in the
 * global batch, which ranks and micro-batches divide into blocks. uniform: low + (high - low) *
 * tn_uniform_of(word). normal: Box-Muller on words 2j, 2j+1: r = sqrt(-2 ln(1 - u0)); z = r cos(2 pi u1) for
 * even i, r sin(2 pi u1) for odd i; mean + std * z. Computed in f64 for f64, else in f32. */
typedef struct tn_random_attributes {
  tn_ints dims;
  int64_t stream;
  double a, b; /* low, high; or mean, std */
  int32_t dtype;
} tn_random_attributes;

/* y[i] = values[index[r]] for the last r with starts[r] <= i; starts[0] is 0. */
typedef struct tn_spread_attributes {
  tn_ints starts, index;
  int64_t count; /* elements of y, rank 1 */
} tn_spread_attributes;

/* Pointwise ops whose options are numbers: in the order of `tenon inspect OP`. */
typedef struct tn_numbers_attributes {
  double v[4];
} tn_numbers_attributes;

/* fake_quantize, fake_quantize_channels. A scale is at least TN_QUANTIZE_LEAST_SCALE, the spacing of f32 at
 * 1, as in PyTorch. */
#define TN_QUANTIZE_LEAST_SCALE 0x1p-23
typedef struct tn_quantize_attributes {
  int64_t bits;
  int64_t axis; /* of fake_quantize_channels */
} tn_quantize_attributes;

typedef struct tn_gelu_attributes {
  int32_t approximate; /* 0 none (erf), 1 tanh */
} tn_gelu_attributes;

typedef struct tn_leaky_relu_attributes {
  double slope;
} tn_leaky_relu_attributes;

typedef struct tn_dropout_attributes {
  double p;
  int64_t stream;
} tn_dropout_attributes;

typedef struct tn_reduce_attributes { /* reduce_*, moments, norm_grad_sums */
  tn_ints axes;                       /* each -rank .. rank-1, once; empty: all */
  int32_t keep;                       /* keep reduced dimensions as 1 (moments and norm_grad_sums never do) */
} tn_reduce_attributes;

typedef struct tn_all_reduce_attributes {
  int32_t reduction; /* TN_REDUCTION_... */
} tn_all_reduce_attributes;

typedef struct tn_reduce_scatter_attributes {
  int64_t ranks;     /* of the run; at least 1 */
  int32_t reduction; /* TN_REDUCTION_... */
} tn_reduce_scatter_attributes;

typedef struct tn_all_gather_attributes {
  int64_t ranks; /* of the run; at least 1 */
} tn_all_gather_attributes;

typedef struct tn_axis_attributes { /* argmax, softmax, log_softmax, concat, gather */
  int64_t axis;                     /* -rank .. rank-1 */
} tn_axis_attributes;

/* Precision of products of f32. FULL: f32. TF32: a kernel may round the operands to TF32, 10 bits of
 * mantissa, to nearest, ties away from zero (PTX ISA, cvt.rna.tf32); kernels for hardware without TF32 may
 * ignore it. The kernels of `cpu` round, as the reference. */
enum { TN_MATH_FULL = 0, TN_MATH_TF32 = 1 };

typedef struct tn_matmul_attributes {
  int32_t transpose_a, transpose_b; /* of the last two dimensions */
  int32_t math;                     /* TN_MATH_... */
} tn_matmul_attributes;

typedef struct tn_conv2d_attributes { /* conv1d, conv2d, conv3d and their gradients */
  tn_ints stride, padding, dilation;  /* one for each dimension; padding: or in front, then behind */
  int64_t groups;
  tn_ints dims; /* gradient ops: of their result; empty for the others */
  int32_t math; /* TN_MATH_... */
} tn_conv2d_attributes;

typedef struct tn_pool2d_attributes { /* max_pool2d, avg_pool2d and their gradients */
  tn_ints kernel, stride, padding;    /* an entry for each spatial dimension; stride empty means kernel */
  int32_t ceil;                       /* output size rounds up, PyTorch's ceil_mode */
  int32_t include_pad;                /* avg: padding counts in the divisor */
  tn_ints dims;                       /* gradient ops: of their result */
} tn_pool2d_attributes;

typedef struct tn_norm_attributes { /* batch_norm, layer_norm, rms_norm, group_norm and their like */
  double epsilon;
  int64_t trailing; /* layer_norm, rms_norm: how many trailing dimensions are normalized */
  int64_t ranks;    /* batch_norm: ranks that the statistics span; a kernel for batch_norm takes 1 only */
  int64_t groups;   /* group_norm: of channels */
} tn_norm_attributes;

typedef struct tn_local_response_norm_attributes {
  int64_t size; /* neighbouring channels, of which half lie before the own one */
  double alpha, beta, k;
} tn_local_response_norm_attributes;

typedef struct tn_cross_entropy_attributes {
  int64_t axis;     /* of the classes */
  int64_t ignore;   /* this target has loss 0 */
  double smoothing; /* label smoothing, PyTorch's definition */
} tn_cross_entropy_attributes;

typedef struct tn_attention_attributes {
  int32_t causal; /* query i sees keys up to i + (keys - queries) */
  double scale;   /* 0: 1 / sqrt(head width) */
  int32_t math;   /* TN_MATH_..., of its products */
  int64_t heads;  /* of operands (batch, tokens, heads * width); 0: they are (batch, heads, tokens, width) */
  int64_t window; /* general_attention: a query sees keys at a distance below this; 0: all */
  double softcap; /* general_attention: bound of the scores; 0: none */
  int32_t alibi;  /* general_attention: scores fall with the distance */
} tn_attention_attributes;

typedef struct tn_rotary_attributes {
  int64_t heads;       /* of x, (batch, tokens, heads * width) */
  double base;         /* pair i of a head turns by position * base^(-2 i / width) */
  int32_t interleaved; /* pairs are neighbours; else elements i and i + width / 2 */
  int32_t inverse;     /* turns back */
} tn_rotary_attributes;

/* Cells of a recurrence: the values of tn_recurrence_attributes.cell. */
enum {
  TN_CELL_LSTM, /* gates i, f, g, o: c = f c + i g, h = o tanh(c) */
  TN_CELL_GRU,  /* gates r, z, n: n = tanh(x_n + r (w_n h + bias_n)), h = (1 - z) n + z h */
  TN_CELL_TANH, /* h = tanh(x + w h + bias) */
  TN_CELL_RELU
};

typedef struct tn_recurrence_attributes { /* recurrence and its gradient */
  int32_t cell;                           /* TN_CELL_... */
  int32_t reverse;                        /* from the last step to the first */
} tn_recurrence_attributes;

typedef struct tn_embedding_grad_attributes {
  int64_t rows;
} tn_embedding_grad_attributes;

/* What `scatter` does with an update and the element at its index. Updates are applied in the order of their
 * indices along the axis. */
enum { TN_SCATTER_ADD = 0, TN_SCATTER_MAX = 1, TN_SCATTER_MIN = 2, TN_SCATTER_SET = 3 };

typedef struct tn_scatter_attributes {
  int64_t axis; /* -rank .. rank-1 */
  int32_t mode; /* TN_SCATTER_... */
} tn_scatter_attributes;

typedef struct tn_sort_attributes { /* sort, topk */
  int64_t axis;                     /* -rank .. rank-1 */
  int32_t descending;               /* sort */
  int64_t k;                        /* topk: how many elements */
  int32_t largest;                  /* topk: the sorted order is descending */
} tn_sort_attributes;

enum {
  TN_CUMULATIVE_SUM = 0,
  TN_CUMULATIVE_PROD = 1,
  TN_CUMULATIVE_MAX = 2,
  TN_CUMULATIVE_MIN = 3,
  TN_CUMULATIVE_LOGSUMEXP = 4
};

typedef struct tn_cumulative_attributes {
  int64_t axis; /* -rank .. rank-1 */
  int32_t mode; /* TN_CUMULATIVE_... */
  int32_t exclusive, reverse;
} tn_cumulative_attributes;

typedef struct tn_reshape_attributes {
  tn_ints dims; /* one may be -1 */
} tn_reshape_attributes;

typedef struct tn_transpose_attributes {
  tn_ints order; /* result dimension i is operand dimension order[i] */
} tn_transpose_attributes;

typedef struct tn_slice_attributes { /* one entry per dimension */
  tn_ints starts, stops, steps;      /* steps empty: all 1; 0 <= start <= stop <= dim, step >= 1 */
} tn_slice_attributes;

typedef struct tn_crop_attributes {
  tn_ints size; /* height and width of the result, each >= 0 */
} tn_crop_attributes;

typedef struct tn_pad_attributes { /* one entry per dimension */
  tn_ints low, high, inner;        /* zeros before, after, and between neighbours (inner empty: none) */
} tn_pad_attributes;

typedef struct tn_pack_attributes { /* operands flattened into one rank-1 result, gaps zero */
  tn_ints offsets;                  /* in elements, ascending */
  int64_t count;
  /* The region of state that the result covers from element `start` on: an operand may have the layout of the
   * state at its offset. Empty: operands are row-major. */
  const char *region;
  int64_t start;
} tn_pack_attributes;

typedef struct tn_mask_attributes { /* triangular_mask: column <= row + diagonal */
  int64_t rows, columns, diagonal;
} tn_mask_attributes;

typedef struct tn_shuffle_attributes { /* pixel_shuffle, pixel_unshuffle: factor; channel_shuffle: groups */
  int64_t factor, groups;
} tn_shuffle_attributes;

TN_END_C
#endif
