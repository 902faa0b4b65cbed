/* core/conformance/cases/update.c: cases of optimizer updates. They have no gradients; their state is f32 or
 * f64. */
#include "core/conformance/cases/cases.h"

/* A scalar, or one value per element. */
static tn_val draw_update_rate(tn_draw *d, const tn_type *param) {
  return tn_draw_tensor(d, tn_draw_flag(d) ? *param : tn_draw_type_of(param->dtype, 0, NULL),
                        TN_FILL_POSITIVE);
}

static tn_type draw_update_type(tn_draw *d) {
  return tn_draw_type(d, d->dtype == TN_F64 ? TN_F64 : TN_F32, 0, 3, true);
}

static tn_val update_case_sgd_update(tn_draw *d, const tn_case *c) {
  tn_type t = draw_update_type(d);
  bool momentum = tn_draw_flag(d), nesterov = momentum && tn_draw_flag(d);
  tn_val param = tn_draw_tensor(d, t, c->fill), grad = tn_draw_tensor(d, t, c->fill);
  tn_val buffer = momentum ? tn_draw_tensor(d, t, c->fill) : 0;
  tn_val lr = draw_update_rate(d, &t), decay = draw_update_rate(d, &t), updates = tn_draw_counter(d, 1);
  tn_draw_begin(d, c->op, 6, (tn_val[]){param, grad, buffer, lr, decay, updates});
  if (momentum) tn_op_set_float(d->b, "momentum", 0.9);
  if (momentum && !nesterov) tn_op_set_float(d->b, "dampening", tn_rng_between(&d->rng, 0, 1));
  tn_op_set_int(d->b, "nesterov", nesterov);
  return tn_op_end(d->b);
}

static tn_val update_case_adamw_update(tn_draw *d, const tn_case *c) {
  tn_type t = draw_update_type(d);
  tn_val param = tn_draw_tensor(d, t, c->fill), grad = tn_draw_tensor(d, t, c->fill);
  tn_val m = tn_draw_tensor(d, t, c->fill), v = tn_draw_tensor(d, t, TN_FILL_POSITIVE);
  tn_val lr = draw_update_rate(d, &t), decay = draw_update_rate(d, &t), updates = tn_draw_counter(d, 1);
  tn_draw_begin(d, c->op, 7, (tn_val[]){param, grad, m, v, lr, decay, updates});
  tn_op_set_float(d->b, "beta1", tn_rng_between(&d->rng, 0, 0.99));
  return tn_op_end(d->b);
}

const tn_case tn_update_cases[] = {
    {"sgd_update", update_case_sgd_update, TN_FILL_ANY, TN_CASE_FLOATS},
    {"adamw_update", update_case_adamw_update, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
