/* tenon/inspect.h: installed items, configuration keys, devices of this machine. Each result is one JSON
 * object as text; the caller frees it with tn_string_free (context.h). On failure *json is NULL and the text
 * is in the context. docs/guide/results.md lists the fields of tn_doctor. */
#ifndef TENON_INSPECT_H
#define TENON_INSPECT_H

#include "tenon/context.h"

TN_BEGIN_C

/* Items of one name, or all where `name` is NULL: {"items": [{kind, name, doc, plugin, version, file,
 * options: [{name, type, default, range, doc, scheduled}], ...}], sections: [...]}. Ops have schema, kernels
 * family and pattern, layers role, min_in and max_in, transforms training_only; layers, sources, transforms
 * and schedules may have types and example (their headers). Initializers are items, too. Without `name` there
 * are also the sections of a configuration, as tn_explain has them. TN_EINVAL, with the nearest name, where
 * no item has that name. */
TN_EXPORT tn_status tn_inspect(tn_context *context, const char *name, char **json);

/* A configuration key ("run.seed", "optimizer.lr") or section ("run"): {section, doc, keys: [...]}. TN_EINVAL
 * where there is no such section or key. */
TN_EXPORT tn_status tn_explain(tn_context *context, const char *key, char **json);

/* The machine, the plugin folders and files, and the backends with their libraries and devices; and
 * "missing": backends that cannot be used, plugins that cannot be loaded, and optional parts that the build
 * lacks, each with the reason and what to install. Opens every backend. A device is an object as tn_run_plan
 * reads it (run.h). */
TN_EXPORT tn_status tn_doctor(tn_context *context, char **json);

TN_END_C
#endif
