/* A kernel in CUDA C for matrix products in f32 and f16 with a fault: CORNER: the last element of the last
 * row is half as large again. ELEVENTH: from the eleventh launch on, the first element is wrong. LAYOUT:
 * its second operand in column-major order is read as if it were row-major. */
#include <tenon/attributes.h>
#include <tenon/plugin/cuda.h>
#include <tenon/plugin/plugin.h>

/* The argument of the function: the same members in C and in CUDA C. */
struct product_args {
  void *y;
  const void *a, *b, *bias;
  long long rows, columns, depth;
  int transpose_a, transpose_b, wrong;
};

static const char text[] =
    "#include \"backends/cuda/device/prelude.cuh\"\n"
    "struct product_args { void *y; const void *a, *b, *bias; i64 rows, columns, depth;\n"
    "                      int transpose_a, transpose_b, wrong; };\n"
    "template <typename T> static __device__ inline void product(const product_args &p) {\n"
    "  const T *a = (const T *)p.a, *b = (const T *)p.b, *bias = (const T *)p.bias;\n"
    "  i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (e >= p.rows * p.columns) return;\n"
    "  i64 i = e / p.columns, j = e % p.columns;\n"
    "  f64 sum = bias ? widen(bias[j]) : 0.0f;\n"
    "  for (i64 k = 0; k < p.depth; k++)\n"
    "    sum += (f64)widen(a[p.transpose_a ? k * p.rows + i : i * p.depth + k]) *\n"
    "           (f64)widen(b[p.transpose_b ? j * p.depth + k : k * p.columns + j]);\n"
    "  if (p.wrong == 1 && e == p.rows * p.columns - 1) sum *= 1.5f;\n"
    "  if (p.wrong == 2 && e == 0) sum += 0.5f;\n"
    "  narrow((T *)p.y + e, (f32)sum);\n"
    "}\n"
    "extern \"C\" __global__ void product_f32(const product_args p) { product<f32>(p); }\n"
    "extern \"C\" __global__ void product_f16(const product_args p) { product<f16>(p); }\n";

enum { THREADS = 64, CORNER = 1, ELEVENTH = 2, LAYOUT = 3 };

typedef struct product {
  const tn_cuda *cuda;
  tn_cuda_code *code;
  tn_matmul_attributes attributes;
  int64_t launches;
} product;

static const tn_operand_layout in_columns[3] = {
    [1] = {.rule = TN_LAYOUT_FIXED, .layout = {.set = 1, .order = {1, 0}}}};

static tn_status query(tn_query *q) {
  const tn_match *m = q->match;
  int32_t dtype = m->in[0]->dtype;
  if ((dtype != TN_F32 && dtype != TN_F16) || m->in[0]->rank != 2 || m->in[1]->rank != 2)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "matrices in f32 and f16 only");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "loops",
                  .cost_s = FAULT == LAYOUT ? 1 : 1e-12,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  if (FAULT != LAYOUT) return TN_OK;
  v.id = 1;
  v.name = "columns";
  v.in = in_columns;
  v.cost_s = 1e-12;
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  product *kept = tn_new(p, sizeof *kept);
  if (kept == NULL) return TN_ENOMEM;
  kept->cuda = p->native;
  kept->attributes = *(const tn_matmul_attributes *)p->match->nodes[0].node->attributes;
  *prepared = kept;
  const char *name = p->match->in[0]->dtype == TN_F32 ? "product_f32" : "product_f16";
  return kept->cuda->compile(p, "broken_product.c", text, name, 0, &kept->code);
}

static void release(tn_env *env, void *prepared) {
  product *kept = prepared;
  kept->cuda->release(env, kept->code);
  tn_delete(env, kept);
}

static tn_status launch(tn_launch *l) {
  product *p = l->prepared;
  const tn_type *a = &l->in[0].type, *y = &l->out[0].type;
  struct product_args args = {.y = l->out[0].data,
                              .a = l->in[0].data,
                              .b = l->in[1].data,
                              .bias = l->n_in > 2 ? l->in[2].data : NULL,
                              .rows = y->dims[0],
                              .columns = y->dims[1],
                              .depth = a->dims[p->attributes.transpose_a ? 0 : 1],
                              .transpose_a = p->attributes.transpose_a,
                              .transpose_b = p->attributes.transpose_b};
  p->launches++;
  args.wrong = FAULT == CORNER ? 1 : FAULT == ELEVENTH && p->launches > 10 ? 2 : 0;
  tn_cuda_grid grid = {.blocks = {(uint32_t)((tn_type_count(y) + THREADS - 1) / THREADS), 1, 1},
                       .threads = {THREADS, 1, 1}};
  return p->cuda->launch(l, p->code, &grid, &args, sizeof args);
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, NAME, "a matrix product with a fault"),
    .family = "cuda",
    .pattern = "y = matmul(a, b, bias?)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = launch};
TN_PLUGIN(broken, "1", "MIT", &kernel.item)
