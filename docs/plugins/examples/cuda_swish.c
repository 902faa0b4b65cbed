/* A kernel in CUDA C for the op of swish.c, on NVIDIA GPUs. The backend compiles the text when a program
 * first needs it and keeps the code on disk; no header or library of CUDA is needed to build this plugin.
 *
 *   cc -shared -fPIC -o cuda_swish.so cuda_swish.c $(pkg-config --cflags tenon)
 *   tenon conformance swish.so --plugin cuda_swish.so --backend cuda */
#include <tenon/plugin/cuda.h>
#include <tenon/plugin/plugin.h>

/* The argument of the function: the same members in C and in CUDA C. */
struct swish_args {
  float *y;
  const float *x;
  long long count;
  float beta;
};

static const char text[] = "struct swish_args { float *y; const float *x; long long count; float beta; };\n"
                           "extern \"C\" __global__ void swish(const swish_args a) {\n"
                           "  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "  for (; i < a.count; i += (long long)gridDim.x * blockDim.x)\n"
                           "    a.y[i] = a.x[i] / (1.0f + expf(-a.beta * a.x[i]));\n"
                           "}\n";

enum { THREADS = 256, MOST_BLOCKS = 4096 };

typedef struct prepared_swish {
  const tn_cuda *cuda;
  tn_cuda_code *code;
  float beta;
} prepared_swish;

struct swish { /* the attributes of the op, as in swish.c */
  double beta;
};

static tn_status query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  static const int32_t inplace[][2] = {{0, 0}};
  const tn_type *x = q->match->in[0];
  if (x->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "loop",
                  .in = &any,
                  .out = &any,
                  .n_inplace = 1,
                  .inplace = inplace,
                  .cost_s = tn_estimate_s(q->device, 2 * (double)tn_type_bytes(x),
                                          8 * (double)tn_type_count(x), q->device->vector_flops_per_s),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  prepared_swish *kept = tn_new(p, sizeof *kept);
  if (kept == NULL) return TN_ENOMEM;
  kept->cuda = p->native;
  kept->beta = (float)((const struct swish *)p->match->nodes[0].node->attributes)->beta;
  *prepared = kept;
  return kept->cuda->compile(p, "cuda_swish.c", text, "swish", 0, &kept->code);
}

static void release(tn_env *env, void *prepared) {
  prepared_swish *kept = prepared;
  kept->cuda->release(env, kept->code);
  tn_delete(env, kept);
}

static tn_status launch(tn_launch *l) {
  const prepared_swish *kept = l->prepared;
  struct swish_args a = {l->out[0].data, l->in[0].data, tn_type_count(&l->in[0].type), kept->beta};
  uint32_t blocks =
      a.count < THREADS * MOST_BLOCKS ? (uint32_t)((a.count + THREADS - 1) / THREADS) : MOST_BLOCKS;
  tn_cuda_grid grid = {.blocks = {blocks, 1, 1}, .threads = {THREADS, 1, 1}};
  return kept->cuda->launch(l, kept->code, &grid, &a, sizeof a);
}

static const tn_kernel swish_cuda = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "swish_cuda", "swish for f32 on NVIDIA GPUs"),
    .family = "cuda",
    .pattern = "y = swish(x)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = launch};

TN_PLUGIN(cuda_swish, "1.0", "MIT", &swish_cuda.item)
