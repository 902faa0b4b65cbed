/* core/model/growing.h: a model that is built a line at a time. Importers write lines, and learn from the
 * graph which type each value has; so they need no rules of shapes of their own. */
#pragma once

#include "core/model/model.h"

typedef struct tn_growing tn_growing;

/* A model without inputs, for batches of `batch`. Registry and ops must outlive it. */
tn_status tn_growing_create(tn_env *env, tn_registry *registry, struct tn_op_table *ops, int64_t batch,
                            tn_growing **made);
void tn_growing_destroy(tn_growing *g);

/* Adds an input; the type is without the batch. */
tn_status tn_growing_input(tn_growing *g, const char *name, const tn_type *type);
/* Adds a line. A line that is wrong is TN_EINVAL; it leaves no names, and lines may follow. */
tn_status tn_growing_line(tn_growing *g, const char *line);
/* The type of a value, with the batch; NULL: no value has the name. Valid until the next line. */
const tn_type *tn_growing_type(const tn_growing *g, const char *name);
