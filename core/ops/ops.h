/* core/ops/ops.h: the descriptors of Tenon's own ops: schemas, shapes, gradients, decompositions, costs.
 * There are no kernels here. Like the op of a plugin, they include only the tenon/ headers.
 *
 * The op NAME is `const tn_op tn_op_NAME` in the file of its family. The build lists those that the files
 * define (tools/list-items). */
#pragma once

#include "tenon/plugin/op.h"

/* The plugin of all ops, for the registry of every context. */
const tn_plugin *tn_core_ops(void);
