/* An op with an attribute, a gradient and a kernel for the cpu: y = x * sigmoid(beta * x)
 * (Ramachandran, Zoph, Le, 2017). In a model: `swish(beta=1.5)`.
 *
 *   cc -shared -fPIC -o swish.so swish.c $(pkg-config --cflags tenon) -lm */
#include <math.h>

#include <tenon/ops.h>
#include <tenon/plugin/kernel.h>

struct swish {
  double beta;
};
static const tn_option options[] = {TN_OPT(struct swish, beta, TN_OPT_FLOAT, "1", NULL, "steepness"),
                                    TN_OPT_END};

/* The op in terms of others, which runs on every device. */
static tn_status decompose(tn_build *b, const void *attributes) {
  const struct swish *o = attributes;
  tn_val x = tn_build_in(b, 0);
  tn_build_yield(b, 0, tn_mul(b, x, tn_sigmoid(b, tn_affine(b, x, o->beta, 0))));
  return TN_OK;
}

/* dy/dx = s + beta * y * (1 - s), s = sigmoid(beta * x) */
static tn_status grad(tn_build *b, const void *attributes) {
  const struct swish *o = attributes;
  tn_val s = tn_sigmoid(b, tn_affine(b, tn_build_in(b, 0), o->beta, 0));
  tn_val bent = tn_mul(b, tn_affine(b, tn_build_out(b, 0), o->beta, 0), tn_affine(b, s, -1, 1));
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_add(b, s, bent)));
  return TN_OK;
}

static const tn_op swish = {.item =
                                TN_ITEM(tn_op, TN_OP, "swish", "x sigmoid(beta x)", struct swish, options),
                            .schema = "(x:T) -> (y:T); T in f32 f64",
                            .op_class = TN_CLASS_POINTWISE,
                            .decompose = decompose,
                            .grad = grad};

/* ---- the kernel: f32 on the cpu ---- */

enum { CHUNK = 16384 }; /* elements; fixed, so that results do not depend on the number of threads */

static tn_status query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  static const int32_t inplace[][2] = {{0, 0}};
  if (q->match->in[0]->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "loop",
                  .in = &any,
                  .out = &any,
                  .n_inplace = 1,
                  .inplace = inplace,
                  .cost_s = 2e-9 * (double)tn_type_count(q->match->in[0]),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* A launch needs the attribute, so prepare keeps it; the match does not outlive the call. */
static tn_status prepare(tn_prepare *p, void **prepared) {
  struct swish *kept = tn_new(p, sizeof *kept);
  if (!kept) return TN_ENOMEM;
  *kept = *(const struct swish *)p->match->nodes[0].node->attributes;
  *prepared = kept;
  return TN_OK;
}

static void release(tn_env *env, void *prepared) { tn_delete(env, prepared); }

static void run_chunk(void *arg, int64_t chunk) {
  const tn_launch *l = arg;
  const struct swish *o = l->prepared;
  const float *x = l->in[0].data;
  float *y = l->out[0].data;
  int64_t end = tn_type_count(&l->in[0].type), stop = (chunk + 1) * CHUNK;
  for (int64_t i = chunk * CHUNK; i < (stop < end ? stop : end); i++)
    y[i] = x[i] / (1.0f + expf(-(float)o->beta * x[i]));
}

static tn_status launch(tn_launch *l) {
  tn_parallel(l, (tn_type_count(&l->in[0].type) + CHUNK - 1) / CHUNK, run_chunk, l);
  return TN_OK;
}

static const tn_kernel swish_cpu = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "swish_cpu", "swish for f32 on the cpu"),
    .family = "cpu",
    .pattern = "y = swish(x)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = launch};

TN_PLUGIN(swish, "1.0", "MIT", &swish.item, &swish_cpu.item)
