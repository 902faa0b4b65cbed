/* tenon/plugin/precision.h: in which element type each op works, and how the loss is scaled.
 *
 * Life cycle: decide is a pure function, called on the compiling thread for every float operand of
 * every op of the model and its gradient, before ops are decomposed; updates of parameters are not
 * asked about. scale and update are called while a training program is built. */
#ifndef TENON_PLUGIN_PRECISION_H
#define TENON_PLUGIN_PRECISION_H

#include "tenon/ops.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* What decide may answer beside dtypes, of f32 operands: stay f32 in memory, but the op may round
 * them to TF32's 10 bits of mantissa before it multiplies. Sets the op's attribute `math` to tf32
 * (tenon/attributes.h), which kernels read; an op without that attribute works in f32. */
enum {
  TN_PRECISION_TF32 = 0x100, /* beyond every dtype: dtypes are below TN_PRECISION_MODES */
  TN_PRECISION_MODES = 0x100 /* answers from here on are modes of multiplication, not dtypes */
};

/* One operand or result that a policy decides about. */
typedef struct tn_precision_site {
  uint32_t struct_size;
  const char *op;
  uint32_t op_class; /* TN_CLASS_... */
  int32_t is_result;
  int32_t index; /* operand or result number, schema order */
  int32_t dtype; /* as the graph has it */
} tn_precision_site;

typedef struct tn_precision {
  tn_item item;
  /* The dtype to use: site->dtype for what the graph has, TN_ANY to take the operand in whatever type
   * it comes, TN_PRECISION_TF32. The host inserts casts. Operands that the schema ties to one dtype get the
   * widest of what was decided for them; constants follow the others if they fit. Results go with
   * their operands. Parameters and optimizer state stay f32; their low-precision copies are derived. */
  int32_t (*decide)(const void *options, const tn_precision_site *site);
  /* Optional loss scaling: yields 0, the scale (f32 scalar) for this step, or nothing for no scaling.
   * It may tn_build_state what it needs. The host multiplies the loss and divides the gradients. */
  tn_status (*scale)(tn_build *b, const void *options);
  /* Goes with scale: tn_build_in(b, 0) is a bool scalar, whether the reduced gradients are all finite; steps
   * where they are not are skipped. Commits what becomes of the scale's own state, which tn_build_state gives
   * again by name. */
  tn_status (*update)(tn_build *b, const void *options);
} tn_precision;

TN_END_C
#endif
