/* An optimizer: Lion (Chen et al., NeurIPS 2023). In a configuration: `[optimizer] type = lion`. */
#include <tenon/plugin/optimizer.h>

struct lion {
  double lr, beta1, beta2, weight_decay;
};
static const tn_option options[] = {
    TN_OPT_WITH(struct lion, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "1e-4", ">= 0", "learning rate"),
    TN_OPT(struct lion, beta1, TN_OPT_FLOAT, "0.9", "[0, 1)", "share of the momentum in the step"),
    TN_OPT(struct lion, beta2, TN_OPT_FLOAT, "0.99", "[0, 1)", "share of the momentum that is kept"),
    TN_OPT_WITH(struct lion, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0", ">= 0", "decoupled decay"),
    TN_OPT_END};

/* a * x + (1 - a) * y */
static tn_val blend(tn_build *b, double a, tn_val x, tn_val y) {
  return tn_add(b, tn_affine(b, x, a, 0), tn_affine(b, y, 1 - a, 0));
}

static tn_status update(tn_build *b, const void *given) {
  const struct lion *o = given;
  tn_val p = tn_build_in(b, 0), g = tn_build_in(b, 1);
  tn_val m = tn_build_state(b, "exp_avg", tn_val_type(b, p), "zeros");
  tn_val direction = tn_sign(b, blend(b, o->beta1, m, g));
  tn_val decay = tn_mul(b, tn_build_option_value(b, "weight_decay"), p);
  tn_build_commit(b, m, blend(b, o->beta2, m, g));
  tn_build_yield(b, 0, tn_sub(b, p, tn_mul(b, tn_build_option_value(b, "lr"), tn_add(b, direction, decay))));
  return TN_OK;
}

static const tn_optimizer lion = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "lion", "the sign of a momentum", struct lion, options),
    .granularity = TN_UPDATE_ELEMENTWISE,
    .update = update};

TN_PLUGIN(lion, "1.0", "MIT", &lion.item)
