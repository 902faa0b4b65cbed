/* plugins/layers/adaptive.c: adaptive_log_softmax (Grave et al., ICML 2017): classes by frequency. The head
 * has a score for each frequent class and for each cluster of others, whose scores come of fewer numbers, the
 * rarer they are. */
#include "plugins/layers/layers.h"

enum { ADAPTIVE_CLUSTERS = 32 };

typedef struct adaptive_options {
  int64_t classes;
  tn_ints cutoffs;
  double div_value;
  int32_t head_bias;
} adaptive_options;

static const tn_option adaptive_rows[] = {
    TN_OPT(adaptive_options, classes, TN_OPT_INT, NULL, ">= 2", "number of classes, the most frequent first"),
    TN_OPT(adaptive_options, cutoffs, TN_OPT_INTS, NULL, ">= 1",
           "the first class of each cluster, in ascending order"),
    TN_OPT(adaptive_options, div_value, TN_OPT_FLOAT, "4", "[1, 1e6]",
           "the first cluster has so many times fewer inputs, each further one so many times fewer again"),
    TN_OPT(adaptive_options, head_bias, TN_OPT_FLAG, "no", NULL, "add a bias to the head"), TN_OPT_END};

/* Where cluster i ends. */
static int64_t adaptive_end(const adaptive_options *o, int64_t i) {
  return i + 1 < o->cutoffs.n ? o->cutoffs.v[i + 1] : o->classes;
}

static tn_status adaptive_check(tn_build *b, const adaptive_options *o) {
  if (tn_val_type(b, tn_build_in(b, 0))->rank < 2)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2",
                   (int)tn_val_type(b, tn_build_in(b, 0))->rank);
  if (o->cutoffs.n < 1 || o->cutoffs.n > ADAPTIVE_CLUSTERS)
    return tn_fail(b, TN_EINVAL, "cutoffs", "%lld numbers, expected 1 to %d", (long long)o->cutoffs.n,
                   (int)ADAPTIVE_CLUSTERS);
  for (int64_t i = 0; i < o->cutoffs.n; i++)
    if (o->cutoffs.v[i] >= adaptive_end(o, i))
      return tn_fail(b, TN_EINVAL, "cutoffs",
                     "a cluster from %lld to %lld has no class, expected ascending "
                     "numbers below the %lld classes",
                     (long long)o->cutoffs.v[i], (long long)adaptive_end(o, i), (long long)o->classes);
  return TN_OK;
}

static tn_val adaptive_scores(tn_build *b, tn_val x, const char *name, int64_t inputs, int64_t units) {
  const tn_type type = {TN_F32, 2, {units, inputs}};
  char init[64];
  tn_val weight = tn_build_param(b, name, &type, layer_default_init(init, sizeof init, "default", inputs));
  return tn_matmul(b, x, weight, 0, 0, 1, TN_MATH_FULL);
}

/* The head's logarithms, to which those within the clusters are added. */
static tn_val adaptive_head(tn_build *b, const adaptive_options *o, int64_t inputs) {
  int64_t units = o->cutoffs.v[0] + o->cutoffs.n;
  const tn_type bias = {TN_F32, 1, {units}};
  char init[64];
  tn_val scores = adaptive_scores(b, tn_build_in(b, 0), "head.weight", inputs, units);
  if (o->head_bias)
    scores = tn_add(
        b, scores,
        tn_build_param(b, "head.bias", &bias, layer_default_init(init, sizeof init, "default", inputs)));
  return tn_log_softmax(b, scores, -1);
}

static tn_val adaptive_cluster(tn_build *b, const adaptive_options *o, int64_t i, int64_t inputs,
                               tn_val head) {
  int32_t last = tn_val_type(b, head)->rank - 1;
  int64_t width = (int64_t)((double)inputs / pow(o->div_value, (double)(i + 1)));
  char down[32], up[32];
  if (width < 1) width = 1;
  snprintf(down, sizeof down, "tail.%d.0.weight", (int)i);
  snprintf(up, sizeof up, "tail.%d.1.weight", (int)i);
  tn_val narrow = adaptive_scores(b, tn_build_in(b, 0), down, inputs, width);
  tn_val scores = adaptive_scores(b, narrow, up, width, adaptive_end(o, i) - o->cutoffs.v[i]);
  tn_val own = tn_slice_axis(b, head, last, o->cutoffs.v[0] + i, o->cutoffs.v[0] + i + 1);
  return tn_add(b, tn_log_softmax(b, scores, -1), own);
}

static tn_status adaptive_build(tn_build *b, const void *given) {
  const adaptive_options *o = given;
  tn_val parts[ADAPTIVE_CLUSTERS + 1];
  TN_TRY(adaptive_check(b, o));
  const tn_type *type = tn_val_type(b, tn_build_in(b, 0));
  int32_t last = type->rank - 1;
  int64_t inputs = type->dims[last];
  tn_val head = adaptive_head(b, o, inputs);
  parts[0] = tn_slice_axis(b, head, last, 0, o->cutoffs.v[0]);
  for (int64_t i = 0; i < o->cutoffs.n; i++) parts[i + 1] = adaptive_cluster(b, o, i, inputs, head);
  tn_build_yield(b, 0, tn_concat(b, o->cutoffs.n + 1, parts, last));
  return TN_OK;
}

const tn_layer_kind layer_adaptive_log_softmax = {
    .item =
        TN_ITEM(tn_layer_kind, TN_LAYER, "adaptive_log_softmax",
                "logarithms of the probabilities of classes by frequency: rare ones have weights of lower "
                "rank (Grave et al., ICML 2017); its loss is cross_entropy",
                adaptive_options, adaptive_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, ..., inputs) to (N, ..., classes)",
    .example = "inputs = x: f32[64]\nlayers = out: adaptive_log_softmax(100, cutoffs=[20, 50])",
    .build = adaptive_build};
