/* core/step/update/lookahead.c: [optimizer] lookahead (Zhang et al., "Lookahead optimizer", NeurIPS 2019), as
 * timm defines it: every k-th update moves the slow parameters a part of the way to the fast ones, which
 * begin again there. The slow ones are the fast ones after the first k updates. Elementwise, it is part of
 * the optimizer's launch. */
#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

tn_val tn_updater_look_ahead(tn_updater *u, tn_val next) {
  tn_build *b = u->b;
  const tn_optimizer_section *s = &u->settings->optimizer;
  tn_val slow = tn_updater_exact_state(u, "slow", tn_val_type(b, next));
  tn_val updates = tn_build_counter(b, TN_UPDATES), k = tn_scalar(b, TN_I64, (double)s->lookahead);
  tn_val meet = tn_eq(b, tn_remainder(b, updates, k), tn_scalar(b, TN_I64, 0)), first = tn_le(b, updates, k);
  tn_val moved = tn_add(b, slow, tn_affine(b, tn_sub(b, next, slow), s->lookahead_alpha, 0));
  tn_val met = tn_where(b, first, next, moved);
  tn_build_commit(b, slow, tn_where(b, tn_or(b, meet, first), met, slow));
  return tn_where(b, meet, met, next);
}
