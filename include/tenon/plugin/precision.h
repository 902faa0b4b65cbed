/* tenon/plugin/precision.h: a precision policy: the dtype of each op's operands and results, and loss
 * scaling.
 *
 * Life cycle: decide is a pure function, called on the compiling thread for every float operand and result of
 * every op of the model and its gradient, before ops are decomposed; it is not called for the optimizer's
 * ops. scale and update are called while a training program is built. */
#ifndef TENON_PLUGIN_PRECISION_H
#define TENON_PLUGIN_PRECISION_H

#include "tenon/ops.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Results of decide that are not dtypes. TF32, for f32 operands: they stay f32 in memory, and the op may
 * round them to the 10 bits of mantissa of TF32 before it multiplies. The host sets the op's attribute `math`
 * to tf32 (tenon/attributes.h), which kernels read; an op without that attribute works in f32. */
enum {
  TN_PRECISION_TF32 = 0x100, /* beyond every dtype: dtypes are below TN_PRECISION_MODES */
  TN_PRECISION_MODES = 0x100 /* answers from here on are modes of multiplication, not dtypes */
};

/* One operand or result of a node. */
typedef struct tn_precision_site {
  uint32_t struct_size;
  const char *op;
  uint32_t op_class; /* TN_CLASS_... */
  int32_t is_result;
  int32_t index; /* operand or result number, schema order */
  int32_t dtype; /* in the graph */
} tn_precision_site;

typedef struct tn_precision {
  tn_item item;
  /* The dtype to use: site->dtype keeps the graph's; TN_ANY accepts the operand's dtype after the ops before
   * it; TN_PRECISION_TF32. The host inserts casts. Operands that the schema ties to one dtype get the widest
   * dtype decided for any of them; constants get that of the others if they fit. Results get the dtype of
   * their operands. Parameters and optimizer state stay f32; low-precision copies are derived from them. */
  int32_t (*decide)(const void *options, const tn_precision_site *site);
  /* Optional loss scaling: yields the scale of this step, an f32 scalar, as output 0; yields nothing for no
   * scaling. It may make state with tn_build_state. The host multiplies the loss and divides the gradients by
   * the scale. */
  tn_status (*scale)(tn_build *b, const void *options);
  /* Required with scale: commits the new value of scale's state, which tn_build_state returns by name.
   * tn_build_in(b, 0) is a bool scalar: all gradients, summed over ranks, are finite. The host skips the
   * update where it is 0. */
  tn_status (*update)(tn_build *b, const void *options);
} tn_precision;

TN_END_C
#endif
