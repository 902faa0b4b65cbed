/* tenon/inspect.h: what is installed, what a key means, what this machine offers. Each result is one
 * JSON text, freed with tn_string_free (context.h). */
#ifndef TENON_INSPECT_H
#define TENON_INSPECT_H

#include "tenon/context.h"

TN_BEGIN_C

/* Items: {"items": [{kind, name, doc, plugin, version, file, options: [{name, type, default, range,
 * doc}], ...}]}; ops have schema, kernels family and pattern. `name` chooses those of one name; NULL
 * takes all. TN_EINVAL with the nearest name when there is none. */
TN_EXPORT tn_status tn_inspect(tn_context *context, const char *name, char **json);

/* A configuration key: "run.seed", "optimizer.lr", "run": {section, doc, keys: [...]}. */
TN_EXPORT tn_status tn_explain(tn_context *context, const char *key, char **json);

/* {version, abi, processors, memory_mib, backends: [{name, devices: [...], reason}]}. */
TN_EXPORT tn_status tn_doctor(tn_context *context, char **json);

TN_END_C
#endif
