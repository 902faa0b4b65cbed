/* Optimizers that cannot be divided among devices: `whole` updates a parameter at a time, `noisy` adds random
 * numbers to all of them. */
#include <tenon/ops.h>
#include <tenon/plugin/optimizer.h>

static tn_status step_down(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_sub(b, tn_build_in(b, 0), tn_affine(b, tn_build_in(b, 1), 0.01, 0)));
  return TN_OK;
}

static tn_status step_noisily(tn_build *b, const void *options) {
  (void)options;
  tn_val param = tn_build_in(b, 0);
  tn_val noise = tn_random_normal(b, tn_build_counter(b, TN_ITERATION), 0, tn_val_type(b, param),
                                  (int64_t)tn_build_random_stream(b, "noise"), 0, 0.01);
  tn_build_yield(b, 0, tn_add(b, param, noise));
  return TN_OK;
}

static const tn_optimizer whole = {
    .item = TN_ITEM_PLAIN(tn_optimizer, TN_OPTIMIZER, "whole", "descends, one parameter at a time"),
    .granularity = TN_UPDATE_PER_PARAMETER,
    .update = step_down};
static const tn_optimizer noisy = {.item =
                                       TN_ITEM_PLAIN(tn_optimizer, TN_OPTIMIZER, "noisy", "walks at random"),
                                   .granularity = TN_UPDATE_ELEMENTWISE,
                                   .update = step_noisily};

TN_PLUGIN(whole, "1", "MIT", &whole.item, &noisy.item)
