/* Cases of the optimizers' updates. Nothing is differentiated through them; their state is f32 or f64. */
#include "../cases.h"

/* A scalar, or one value for each element. */
static tn_val draw_rate(draw *d, const tn_type *param) {
  return draw_tensor(d, draw_flag(d) ? *param : type_of(param->dtype, 0, NULL), FILL_POSITIVE);
}

static tn_type draw_param(draw *d) { return draw_type(d, d->dtype == TN_F64 ? TN_F64 : TN_F32, 0, 3, true); }

static tn_val sgd_update(draw *d, const conformance_case *c) {
  tn_type t = draw_param(d);
  bool momentum = draw_flag(d), nesterov = momentum && draw_flag(d);
  tn_val param = draw_tensor(d, t, c->fill), grad = draw_tensor(d, t, c->fill);
  tn_val buffer = momentum ? draw_tensor(d, t, c->fill) : 0;
  tn_val lr = draw_rate(d, &t), decay = draw_rate(d, &t), updates = draw_counter(d, 1);
  tn_begin(d->b, c->op);
  tn_arg(d->b, param);
  tn_arg(d->b, grad);
  tn_arg(d->b, buffer);
  tn_arg(d->b, lr);
  tn_arg(d->b, decay);
  tn_arg(d->b, updates);
  if (momentum) tn_set_float(d->b, "momentum", 0.9);
  if (momentum && !nesterov) tn_set_float(d->b, "dampening", tn_rng_between(&d->rng, 0, 1));
  tn_set_int(d->b, "nesterov", nesterov);
  return tn_end(d->b);
}

static tn_val adamw_update(draw *d, const conformance_case *c) {
  tn_type t = draw_param(d);
  tn_val param = draw_tensor(d, t, c->fill), grad = draw_tensor(d, t, c->fill);
  tn_val m = draw_tensor(d, t, c->fill), v = draw_tensor(d, t, FILL_POSITIVE);
  tn_val lr = draw_rate(d, &t), decay = draw_rate(d, &t), updates = draw_counter(d, 1);
  tn_begin(d->b, c->op);
  tn_arg(d->b, param);
  tn_arg(d->b, grad);
  tn_arg(d->b, m);
  tn_arg(d->b, v);
  tn_arg(d->b, lr);
  tn_arg(d->b, decay);
  tn_arg(d->b, updates);
  tn_set_float(d->b, "beta1", tn_rng_between(&d->rng, 0, 0.99));
  return tn_end(d->b);
}

const conformance_case update_cases[] = {
    {"sgd_update", sgd_update, FILL_ANY, CASE_FLOATS},
    {"adamw_update", adamw_update, FILL_ANY, CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
