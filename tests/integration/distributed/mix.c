/* A layer whose result depends on the operands of all ranks: mix(reduce) adds their mean by all_reduce,
 * mix(scatter) by reduce_scatter and all_gather. mix(mean) and mix(mean_scatter) leave the division to the
 * communicator. All give the same bits, forward and backward, where the number of ranks is a power of two.
 * mix(wrong) emits an op for another number of ranks, and mix(whole) the mean of integers. */
#include <stdbool.h>

#include <tenon/ops.h>
#include <tenon/plugin/layer.h>

enum { REDUCE, SCATTER, MEAN, MEAN_SCATTER, WRONG, WHOLE };

typedef struct mix_options {
  int32_t how;
} mix_options;

static tn_val mean_over_ranks(tn_build *b, tn_val x, int32_t how) {
  int64_t ranks = tn_build_ranks(b);
  bool mean = how == MEAN || how == MEAN_SCATTER;
  int32_t reduction = mean ? TN_REDUCTION_MEAN : TN_REDUCTION_SUM;
  if (how == WHOLE) return tn_all_reduce(b, tn_to_dtype(b, x, TN_I32), TN_REDUCTION_MEAN);
  if (how == WRONG) ranks = 1;
  tn_val y = how == REDUCE || how == MEAN
                 ? tn_all_reduce(b, x, reduction)
                 : tn_all_gather(b, tn_reduce_scatter(b, x, ranks, reduction), ranks);
  return mean ? y : tn_affine(b, y, 1.0 / tn_build_ranks(b), 0.0);
}

static tn_status build(tn_build *b, const void *options) {
  const mix_options *o = options;
  tn_val x = tn_build_in(b, 0);
  const tn_type *t = tn_val_type(b, x);
  tn_val flat = tn_reshape(b, x, 1, (const int64_t[]){tn_type_count(t)});
  tn_val mean = mean_over_ranks(b, flat, o->how);
  tn_build_yield(b, 0, tn_add(b, x, tn_reshape(b, mean, t->rank, t->dims)));
  return tn_build_status(b);
}

static const tn_option options[] = {TN_OPT(mix_options, how, TN_OPT_ENUM, "reduce",
                                           "reduce|scatter|mean|mean_scatter|wrong|whole", "the collectives"),
                                    TN_OPT_END};

static const tn_layer_kind mix = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "mix", "adds the mean over ranks", mix_options, options),
    .min_in = 1,
    .max_in = 1,
    .build = build};

/* The gradient at 0 is no number, although the result is one. */
static tn_status build_root(tn_build *b, const void *unused) {
  tn_val x = tn_build_in(b, 0);
  (void)unused;
  tn_build_yield(b, 0, tn_sqrt(b, tn_mul(b, x, x)));
  return tn_build_status(b);
}

static const tn_layer_kind root = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "root", "the root of the square"),
    .min_in = 1,
    .max_in = 1,
    .build = build_root};

TN_PLUGIN(mix, "1.0", "MIT", &mix.item, &root.item)
