/* Moments of channels in CUDA C: right for row-major operands, and wrong where channels are the innermost
 * dimension, which is read as if it were row-major. */
#include <tenon/attributes.h>
#include <tenon/plugin/cuda.h>
#include <tenon/plugin/plugin.h>

/* The argument of the function: the same members in C and in CUDA C. */
struct moments_args {
  float *mean, *variance;
  const float *x;
  long long images, channels, positions;
};

static const char text[] = "struct moments_args { float *mean, *variance; const float *x; long long images, "
                           "channels, positions; };\n"
                           "extern \"C\" __global__ void channel_moments(const moments_args a) {\n"
                           "  long long c = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "  double mean = 0, squares = 0, n = (double)(a.images * a.positions);\n"
                           "  if (c >= a.channels) return;\n"
                           "  for (long long i = 0; i < a.images; i++)\n"
                           "    for (long long p = 0; p < a.positions; p++) mean += a.x[(i * a.channels + c) "
                           "* a.positions + p] / n;\n"
                           "  for (long long i = 0; i < a.images; i++)\n"
                           "    for (long long p = 0; p < a.positions; p++) {\n"
                           "      double d = a.x[(i * a.channels + c) * a.positions + p] - mean;\n"
                           "      squares += d * d / n;\n"
                           "    }\n"
                           "  a.mean[c] = (float)mean;\n"
                           "  a.variance[c] = (float)squares;\n"
                           "}\n";

enum { THREADS = 64 };

typedef struct moments {
  const tn_cuda *cuda;
  tn_cuda_code *code;
} moments;

static const tn_operand_layout channels_last = {.rule = TN_LAYOUT_FIXED,
                                                .layout = {.set = 1, .order = {0, 2, 3, 1}}};

static tn_status query(tn_query *q) {
  const tn_type *x = q->match->in[0];
  const tn_reduce_attributes *a = q->match->nodes[0].node->attributes;
  if (x->dtype != TN_F32 || x->rank != 4 || a->axes.n != 3)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "images in f32 only");
  tn_variant plain = {.struct_size = sizeof plain, .name = "row-major", .cost_s = 1, .deterministic = 1};
  tn_variant last = {.struct_size = sizeof last,
                     .id = 1,
                     .name = "channels last",
                     .in = &channels_last,
                     .cost_s = 1e-12,
                     .deterministic = 1};
  tn_add_variant(q, &plain);
  tn_add_variant(q, &last);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  moments *kept = tn_new(p, sizeof *kept);
  if (kept == NULL) return TN_ENOMEM;
  kept->cuda = p->native;
  *prepared = kept;
  return kept->cuda->compile(p, "broken_moments.c", text, "channel_moments", 0, &kept->code);
}

static void release(tn_env *env, void *prepared) {
  moments *kept = prepared;
  kept->cuda->release(env, kept->code);
  tn_delete(env, kept);
}

static tn_status launch(tn_launch *l) {
  const moments *m = l->prepared;
  const int64_t *dims = l->in[0].type.dims;
  struct moments_args args = {l->out[0].data, l->out[1].data, l->in[0].data,
                              dims[0],        dims[1],        dims[2] * dims[3]};
  tn_cuda_grid grid = {.blocks = {(uint32_t)((dims[1] + THREADS - 1) / THREADS), 1, 1},
                       .threads = {THREADS, 1, 1}};
  return m->cuda->launch(l, m->code, &grid, &args, sizeof args);
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "layout_moments", "moments with a fault in one layout"),
    .family = "cuda",
    .pattern = "mean, variance = moments(x)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = launch};
TN_PLUGIN(broken, "1", "MIT", &kernel.item)
