/* core/ops/pool.c: pooling over one to three spatial dimensions of (N, C, spatial...). The ops over two
 * dimensions are primitives; pool_ranks.c decomposes the others. */
#include "core/ops/pool.h"

/* ---- shapes ---- */

static tn_status pool_check_window(tn_infer *n, const tn_pool2d_attributes *a, int32_t rank) {
  tn_status status = tn_ops_check_list(n, "kernel", &a->kernel, rank, 1);
  if (status == TN_OK && a->stride.n > 0) status = tn_ops_check_list(n, "stride", &a->stride, rank, 1);
  if (status == TN_OK) status = tn_ops_check_list(n, "padding", &a->padding, rank, 0);
  for (int32_t i = 0; i < rank && status == TN_OK; i++)
    if (a->padding.v[i] > a->kernel.v[i] / 2)
      return tn_fail(n, TN_EINVAL, "padding",
                     "padding %lld is more than half of kernel %lld: some windows would hold "
                     "nothing but padding",
                     (long long)a->padding.v[i], (long long)a->kernel.v[i]);
  return status;
}

/* The number of windows. With `ceil`, a last window may extend beyond the padding if it begins inside the
 * input or the padding before it (PyTorch's rule). 0: the input is smaller than a window. */
static int64_t pool_window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                                 int32_t ceil) {
  int64_t room = size + 2 * padding - kernel;
  if (room < 0 && !(ceil && room + stride > 0)) return 0;
  int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
  return ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
}

static tn_status pool_infer(tn_infer *n, const tn_pool2d_attributes *a, const tn_type *x, tn_type *y) {
  enum { LARGEST = INT32_MAX }; /* keeps all sums of sizes far from overflow */
  int32_t rank = tn_ops_spatial(n);
  TN_TRY(pool_check_window(n, a, rank));
  TN_TRY(tn_ops_check_rank(n, "x", x, 2 + rank, tn_ops_image_dims(rank)));
  const tn_ints *stride = a->stride.n > 0 ? &a->stride : &a->kernel;
  *y = *x;
  for (int32_t i = 0; i < rank; i++) {
    int64_t size = x->dims[2 + i], kernel = a->kernel.v[i];
    bool fits = size >= 1 && size <= LARGEST && kernel <= LARGEST && stride->v[i] <= LARGEST;
    y->dims[2 + i] = fits ? pool_window_count(size, kernel, stride->v[i], a->padding.v[i], a->ceil) : 0;
    if (y->dims[2 + i] < 1)
      return tn_fail(
          n, TN_EINVAL, "kernel", "the kernel of %lld does not fit the input's %s of %lld with padding %lld",
          (long long)kernel, tn_ops_spatial_name(rank, i), (long long)size, (long long)a->padding.v[i]);
  }
  return tn_ops_check_count(n, y);
}

/* ---- options and cost ---- */

#define POOL_OPTIONS(axes, zeros)                                                                            \
  TN_OPT(tn_pool2d_attributes, kernel, TN_OPT_INTS, NULL, NULL, "size of the window: " axes),                \
      TN_OPT(tn_pool2d_attributes, stride, TN_OPT_INTS, "[]", NULL, "step of the window; none: its size"),   \
      TN_OPT(tn_pool2d_attributes, padding, TN_OPT_INTS, zeros, NULL, "on both sides: " axes),               \
      TN_OPT(tn_pool2d_attributes, ceil, TN_OPT_FLAG, "no", NULL, "a last window may reach over the border")
#define POOL1D_OPTIONS POOL_OPTIONS("width", "[0]")
#define POOL2D_OPTIONS POOL_OPTIONS("height, width", "[0, 0]")
#define POOL3D_OPTIONS POOL_OPTIONS("depth, height, width", "[0, 0, 0]")
#define INCLUDE_PAD_OPTION                                                                                   \
  TN_OPT(tn_pool2d_attributes, include_pad, TN_OPT_FLAG, "yes", NULL, "padding counts in the divisor")
#define DIMS_OPTION TN_OPT(tn_pool2d_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions of the result")

/* One operation for each element of each window. */
static double pool_flops(const tn_pool2d_attributes *a, const tn_type *y) {
  double flops = tn_ops_count(y);
  for (int64_t i = 0; i < a->kernel.n; i++) flops *= (double)a->kernel.v[i];
  return flops;
}
static void pool_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, pool_flops(n->attributes, &n->out[0]));
}

/* ---- max_pool2d ---- */

static tn_status max_pool_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0];
  TN_TRY(pool_infer(n, n->node.attributes, x, &n->node.out[0]));
  n->node.out[1] = n->node.out[0];
  n->node.out[1].dtype = TN_I32;
  return tn_ops_check_channel(n, x);
}

static tn_status max_pool2d_grad_rule(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val dy = tn_build_out_grad(b, 0);
  if (dy != 0)
    tn_build_yield(b, 0, tn_pool_emit(b, "max_pool2d_grad", dy, tn_build_out(b, 1), attributes, &x));
  return TN_OK;
}

static const tn_option max_pool1d_options[] = {POOL1D_OPTIONS, TN_OPT_END};
static const tn_option max_pool2d_options[] = {POOL2D_OPTIONS, TN_OPT_END};
static const tn_option max_pool3d_options[] = {POOL3D_OPTIONS, TN_OPT_END};

const tn_op tn_op_max_pool1d = {
    .item =
        TN_ITEM(tn_op, TN_OP, "max_pool1d",
                "largest element of each window of (N, C, W), and where it lies; NaN is largest, then the "
                "first",
                tn_pool2d_attributes, max_pool1d_options),
    .schema = "(x:T) -> (y:T, index:i32)" TN_OPS_MAXIMA,
    .op_class = TN_CLASS_REDUCE,
    .infer = max_pool_infer,
    .decompose = tn_max_pool1d_decompose,
    .cost = pool_cost,
    .notes = "`ceil` is PyTorch's ceil_mode.",
};

const tn_op tn_op_max_pool2d = {
    .item = TN_ITEM(
        tn_op, TN_OP, "max_pool2d",
        "largest element of each window, and where it lies in its H*W plane; NaN is largest, then the first",
        tn_pool2d_attributes, max_pool2d_options),
    .schema = "(x:T) -> (y:T, index:i32)" TN_OPS_MAXIMA,
    .op_class = TN_CLASS_REDUCE,
    .infer = max_pool_infer,
    .grad = max_pool2d_grad_rule,
    .cost = pool_cost,
    .notes = "The index counts in row-major order. `ceil` is PyTorch's ceil_mode.",
};

const tn_op tn_op_max_pool3d = {
    .item = TN_ITEM(
        tn_op, TN_OP, "max_pool3d",
        "largest element of each window of (N, C, D, H, W), and where it lies in its D*H*W volume; NaN "
        "is largest, then the first",
        tn_pool2d_attributes, max_pool3d_options),
    .schema = "(x:T) -> (y:T, index:i32)" TN_OPS_MAXIMA,
    .op_class = TN_CLASS_REDUCE,
    .infer = max_pool_infer,
    .decompose = tn_max_pool3d_decompose,
    .cost = pool_cost,
    .notes = "`ceil` is PyTorch's ceil_mode.",
};

static tn_status max_pool2d_grad_infer(tn_infer *n) {
  const tn_pool2d_attributes *a = n->node.attributes;
  tn_type y, *dx = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dx);
  if (status == TN_OK) status = pool_infer(n, a, dx, &y);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "dy", n->node.in[0], &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "index", n->node.in[1], &y);
}

/* Indices within planes as indices into the whole of dx. */
static tn_val pool_flat_index(tn_build *b, tn_val index, const tn_type *dx) {
  int64_t planes = dx->dims[0] * dx->dims[1], dims[4] = {dx->dims[0], dx->dims[1], 1, 1};
  const tn_type each = {TN_I64, 1, {planes}};
  tn_val plane = tn_iota(b, &each, 0);
  tn_val first = tn_mul(b, plane, tn_scalar(b, TN_I64, (double)(dx->dims[2] * dx->dims[3])));
  return tn_add(b, tn_to_dtype(b, index, TN_I64), tn_reshape(b, first, 4, dims));
}

/* Gathers at the indices of the scatter: the gradient of dx is a table with rows of one element. */
static tn_status max_pool2d_grad_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_type dx = tn_ops_type(b, tn_build_out(b, 0)), dy = tn_ops_type(b, tn_build_in(b, 0));
  int64_t table[2] = {tn_type_count(&dx), 1};
  tn_val rows = tn_reshape(b, tn_build_out_grad(b, 0), 2, table);
  tn_val taken = tn_embedding(b, pool_flat_index(b, tn_build_in(b, 1), &dx), rows);
  tn_build_yield(b, 0, tn_reshape(b, taken, dy.rank, dy.dims));
  return TN_OK;
}

static void max_pool2d_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, tn_ops_count(n->in[0]));
}

static const tn_option max_pool2d_grad_options[] = {POOL2D_OPTIONS, DIMS_OPTION, TN_OPT_END};

const tn_op tn_op_max_pool2d_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "max_pool2d_grad",
                    "gradient of max_pool2d: dy added where the index, which lies in its window, points",
                    tn_pool2d_attributes, max_pool2d_grad_options),
    .schema = "(dy:T, index:i32) -> (dx:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_REDUCE,
    .infer = max_pool2d_grad_infer,
    .grad = max_pool2d_grad_grad,
    .cost = max_pool2d_grad_cost,
    .notes = "`dims` are those of x.",
};

/* ---- avg_pool2d ---- */

static tn_status avg_pool_infer(tn_infer *n) {
  return pool_infer(n, n->node.attributes, n->node.in[0], &n->node.out[0]);
}

static tn_status avg_pool2d_grad(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_build_yield(b, 0, tn_pool_emit(b, "avg_pool2d_grad", tn_build_out_grad(b, 0), 0, attributes, &x));
  return TN_OK;
}

static const tn_option avg_pool1d_options[] = {POOL1D_OPTIONS, INCLUDE_PAD_OPTION, TN_OPT_END};
static const tn_option avg_pool2d_options[] = {POOL2D_OPTIONS, INCLUDE_PAD_OPTION, TN_OPT_END};
static const tn_option avg_pool3d_options[] = {POOL3D_OPTIONS, INCLUDE_PAD_OPTION, TN_OPT_END};

#define AVG_POOL(name, help, DECOMPOSE, GRAD)                                                                \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name, help, tn_pool2d_attributes, name##_options),                      \
      .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,                                                              \
      .op_class = TN_CLASS_REDUCE,                                                                           \
      .infer = avg_pool_infer,                                                                               \
      .decompose = DECOMPOSE,                                                                                \
      .grad = GRAD,                                                                                          \
      .cost = pool_cost,                                                                                     \
      .notes = "`ceil` is PyTorch's ceil_mode.",                                                             \
  };
AVG_POOL(avg_pool1d, "mean of each window of (N, C, W)", tn_avg_pool1d_decompose, NULL)
AVG_POOL(avg_pool2d, "mean of each window", NULL, avg_pool2d_grad)
AVG_POOL(avg_pool3d, "mean of each window of (N, C, D, H, W)", tn_avg_pool3d_decompose, NULL)

static tn_status avg_pool2d_grad_infer(tn_infer *n) {
  const tn_pool2d_attributes *a = n->node.attributes;
  tn_type y, *dx = &n->node.out[0];
  tn_status status = tn_ops_check_dims(n, &a->dims, dx);
  if (status == TN_OK) status = pool_infer(n, a, dx, &y);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "dy", n->node.in[0], &y);
}

/* Linear: the gradient of the gradient is the pooling itself. */
static tn_status avg_pool2d_grad_grad(tn_build *b, const void *attributes) {
  tn_build_yield(b, 0, tn_pool_emit(b, "avg_pool2d", tn_build_out_grad(b, 0), 0, attributes, NULL));
  return TN_OK;
}

static void avg_pool2d_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, pool_flops(n->attributes, n->in[0]));
}

static const tn_option avg_pool2d_grad_options[] = {POOL2D_OPTIONS, INCLUDE_PAD_OPTION, DIMS_OPTION,
                                                    TN_OPT_END};

const tn_op tn_op_avg_pool2d_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "avg_pool2d_grad", "gradient of avg_pool2d", tn_pool2d_attributes,
                    avg_pool2d_grad_options),
    .schema = "(dy:T) -> (dx:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_REDUCE,
    .infer = avg_pool2d_grad_infer,
    .grad = avg_pool2d_grad_grad,
    .cost = avg_pool2d_grad_cost,
    .notes = "`dims` are those of x.",
};

/* ---- lp_pool1d to 3d ---- */

#define P_OPTION TN_OPT(tn_lp_pool_attributes, p, TN_OPT_FLOAT, "2", "> 0", "of the norm")
static const tn_option lp_pool1d_options[] = {POOL1D_OPTIONS, P_OPTION, TN_OPT_END};
static const tn_option lp_pool2d_options[] = {POOL2D_OPTIONS, P_OPTION, TN_OPT_END};
static const tn_option lp_pool3d_options[] = {POOL3D_OPTIONS, P_OPTION, TN_OPT_END};

#define LP_POOL(name)                                                                                        \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name, "(sum of x^p)^(1/p) over each window", tn_lp_pool_attributes,     \
                      name##_options),                                                                       \
      .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,                                                              \
      .op_class = TN_CLASS_REDUCE,                                                                           \
      .infer = avg_pool_infer,                                                                               \
      .decompose = tn_lp_pool_decompose,                                                                     \
      .cost = pool_cost,                                                                                     \
      .domain = "x > 0",                                                                                     \
      .notes = "As PyTorch's, without absolute values: x below 0 takes a p for which x^p is defined.",       \
  };
LP_POOL(lp_pool1d)
LP_POOL(lp_pool2d)
LP_POOL(lp_pool3d)

/* ---- max_unpool ---- */

static tn_status max_unpool_infer(tn_infer *n) {
  const tn_unpool_attributes *a = n->node.attributes;
  tn_type back, *y = &n->node.out[0];
  int32_t rank = tn_ops_spatial(n);
  TN_TRY(pool_check_window(n, &a->pool, rank));
  if (a->size.n > 0) TN_TRY(tn_ops_check_list(n, "size", &a->size, rank, 1));
  TN_TRY(tn_ops_check_rank(n, "x", n->node.in[0], 2 + rank, tn_ops_image_dims(rank)));
  *y = tn_unpool_type(a, n->node.in[0]);
  TN_TRY(pool_infer(n, &a->pool, y, &back));
  TN_TRY(tn_ops_check_dims_of(n, "x", n->node.in[0], &back));
  return tn_ops_check_dims_of(n, "index", n->node.in[1], &back);
}

#define UNPOOL_SIZE                                                                                          \
  TN_OPT(tn_unpool_attributes, size, TN_OPT_INTS, "[]", NULL,                                                \
         "spatial dimensions of the result; none: as small as the windows allow")
static const tn_option max_unpool1d_options[] = {POOL1D_OPTIONS, UNPOOL_SIZE, TN_OPT_END};
static const tn_option max_unpool2d_options[] = {POOL2D_OPTIONS, UNPOOL_SIZE, TN_OPT_END};
static const tn_option max_unpool3d_options[] = {POOL3D_OPTIONS, UNPOOL_SIZE, TN_OPT_END};

#define MAX_UNPOOL(name, pool)                                                                               \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name,                                                                   \
                      "zeros with the elements of x where the index of " pool                                \
                      ", which lies in its window, points",                                                  \
                      tn_unpool_attributes, name##_options),                                                 \
      .schema = "(x:T, index:i32) -> (y:T)" TN_OPS_FLOATS,                                                   \
      .op_class = TN_CLASS_REDUCE,                                                                           \
      .infer = max_unpool_infer,                                                                             \
      .decompose = tn_##name##_decompose,                                                                    \
      .notes = "Elements of windows that overlap and have one maximum add up. Zeiler and Fergus, "           \
               "\"Visualizing and understanding convolutional networks\", 2014.",                            \
  };
MAX_UNPOOL(max_unpool1d, "max_pool1d")
MAX_UNPOOL(max_unpool2d, "max_pool2d")
MAX_UNPOOL(max_unpool3d, "max_pool3d")
