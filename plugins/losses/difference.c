/* plugins/losses/difference.c: the difference of two tensors of one shape. */
#include "plugins/losses/losses.h"

tn_status loss_target(tn_build *b, tn_val *target) {
  tn_val x = tn_build_in(b, 0);
  *target = tn_build_in(b, 1);
  if (!tn_type_same_dims(tn_val_type(b, x), tn_val_type(b, *target)))
    return tn_fail(b, TN_EINVAL, NULL,
                   "the value and the target have different shapes, expected the same shape");
  *target = tn_to_dtype(b, *target, tn_val_type(b, x)->dtype);
  return TN_OK;
}

tn_status loss_error(tn_build *b, tn_val *error) {
  tn_val target;
  tn_status status = loss_target(b, &target);
  if (status == TN_OK) *error = tn_sub(b, tn_build_in(b, 0), target);
  return status;
}
