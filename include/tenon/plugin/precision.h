/* tenon/plugin/precision.h: in which element type each op works, and how the loss is scaled.
 *
 * Life cycle: decide is a pure function, called on the compiling thread for every float operand of
 * every op, before ops are decomposed. scale is called once when a training program is built. */
#ifndef TENON_PLUGIN_PRECISION_H
#define TENON_PLUGIN_PRECISION_H

#include "tenon/ops.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* One operand or result that a policy decides about. */
typedef struct tn_precision_site {
  uint32_t struct_size;
  const char *op;
  uint32_t klass; /* TN_CLASS_... */
  int32_t is_result;
  int32_t index; /* operand or result number, schema order */
  int32_t dtype; /* as the graph has it */
} tn_precision_site;

typedef struct tn_precision {
  tn_item item;
  /* The dtype to use; site->dtype to leave it. The host inserts casts. Parameters and optimizer
   * state stay f32; their low-precision copies are derived. A result is decided with its operands:
   * ops whose schema ties them get one dtype. */
  int32_t (*decide)(const void *options, const tn_precision_site *site);
  /* Optional loss scaling with its own state: yields 0, the scale (f32 scalar) for this step. It
   * may tn_state what it needs. */
  tn_status (*scale)(tn_build *b, const void *options);
  /* Goes with scale: tn_in(b, 0) is a bool scalar, whether the reduced gradients are all finite;
   * commits the scale's own state. */
  tn_status (*update)(tn_build *b, const void *options);
} tn_precision;

TN_END_C
#endif
