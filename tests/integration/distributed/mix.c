/* A layer whose result depends on the operands of all ranks: mix(reduce) adds their mean by all_reduce,
 * mix(scatter) by reduce_scatter and all_gather. Both give the same bits, forward and backward. mix(wrong)
 * emits an op for another number of ranks. */
#include <tenon/ops.h>
#include <tenon/plugin/layer.h>

enum { REDUCE, SCATTER, WRONG };

typedef struct mix_options {
  int32_t how;
} mix_options;

static tn_val sum_over_ranks(tn_build *b, tn_val x, int32_t how) {
  int64_t ranks = tn_build_ranks(b);
  if (how == REDUCE) return tn_all_reduce(b, x, TN_REDUCTION_SUM);
  if (how == WRONG) return tn_all_gather(b, tn_reduce_scatter(b, x, TN_REDUCTION_SUM, 1), 1);
  return tn_all_gather(b, tn_reduce_scatter(b, x, TN_REDUCTION_SUM, ranks), ranks);
}

static tn_status build(tn_build *b, const void *options) {
  const mix_options *o = options;
  tn_val x = tn_build_in(b, 0);
  const tn_type *t = tn_val_type(b, x);
  tn_val flat = tn_reshape(b, x, 1, (const int64_t[]){tn_type_count(t)});
  tn_val mean = tn_affine(b, sum_over_ranks(b, flat, o->how), 1.0 / tn_build_ranks(b), 0.0);
  tn_build_yield(b, 0, tn_add(b, x, tn_reshape(b, mean, t->rank, t->dims)));
  return tn_build_status(b);
}

static const tn_option options[] = {
    TN_OPT(mix_options, how, TN_OPT_ENUM, "reduce", "reduce|scatter|wrong", "the collectives"), TN_OPT_END};

static const tn_layer_kind mix = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "mix", "adds the mean over ranks", mix_options, options),
    .min_in = 1,
    .max_in = 1,
    .build = build};

TN_PLUGIN(mix, "1.0", "MIT", &mix.item)
