/* core/graph/build/frame_stack.c: pushes and pops the frames of a builder. */
#include "core/graph/build/builder.h"

const tn_build_frame *tn_builder_frame(tn_build *b) { return tn_builder_top(tn_builder_of(b)); }

void tn_builder_push(tn_build *handle, const tn_build_frame *frame) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_frame open = {frame, b->ops.n};
  if (b->lost_frames == 0 && tn_vec_push(handle, &b->frames, open) == TN_OK) return;
  b->lost_frames++;
  tn_builder_fail(handle, TN_ENOMEM);
}

void tn_builder_pop(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  if (b->lost_frames > 0) {
    b->lost_frames--;
    return;
  }
  if (b->frames.n == 0) {
    tn_builder_stick(b, tn_failf(handle, TN_EINTERNAL, "a frame was popped that had not been pushed"));
    return;
  }
  const tn_open_frame *top = &b->frames.v[b->frames.n - 1];
  if (b->status == TN_OK && b->ops.n > top->n_ops)
    tn_builder_stick(b, tn_failf(handle, TN_EINVAL, "%s: tn_op_begin without tn_op_end",
                                 b->ops.v[b->ops.n - 1].def->op->item.name));
  b->frames.n--;
}
