/* core/plugin/kinds.c: the table of kinds. `required` is fixed within a major version: a minor version that
 * appends a member to a struct does not require it of plugins. */
#include "core/plugin/kinds.h"

#include <string.h>

#include "core/plugin/default_callbacks.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"
#include "tenon/plugin/layer.h"
#include "tenon/plugin/observer.h"
#include "tenon/plugin/optimizer.h"
#include "tenon/plugin/precision.h"
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/transform.h"

#define NEEDS(T, member)                                                                                     \
  { #member, offsetof(T, member) }
#define NEEDS_END                                                                                            \
  { NULL, 0 }
#define UP_TO(T, member) (offsetof(T, member) + sizeof(((T *)0)->member))

static const tn_member no_members[] = {NEEDS_END};

static const tn_member op_members[] = {NEEDS(tn_op, schema), NEEDS_END};
static const tn_member kernel_members[] = {NEEDS(tn_kernel, family), NEEDS(tn_kernel, pattern),
                                           NEEDS(tn_kernel, query), NEEDS(tn_kernel, launch), NEEDS_END};
static const tn_member schedule_members[] = {NEEDS(tn_schedule, factor), NEEDS_END};
static const tn_member source_members[] = {NEEDS(tn_source, open), NEEDS(tn_source, close),
                                           NEEDS(tn_source, describe), NEEDS_END};
static const tn_member transform_members[] = {NEEDS(tn_transform, infer), NEEDS(tn_transform, apply),
                                              NEEDS_END};
static const tn_member precision_members[] = {NEEDS(tn_precision, decide), NEEDS_END};
static const tn_member communicator_members[] = {
    NEEDS(tn_communicator, families), NEEDS(tn_communicator, identify),
    NEEDS(tn_communicator, open),     NEEDS(tn_communicator, close),
    NEEDS(tn_communicator, run),      NEEDS(tn_communicator, status),
    NEEDS(tn_communicator, abort),    NEEDS_END};
static const tn_member observer_members[] = {NEEDS(tn_observer, open), NEEDS(tn_observer, event),
                                             NEEDS(tn_observer, close), NEEDS_END};

static const char *check_backend(const tn_item *item) {
  return tn_backend_check_callbacks((const tn_backend *)item);
}

static const char *check_op(const tn_item *item) {
  const tn_op *op = (const tn_op *)item;
  if (op->op_class > TN_CLASS_RANDOM) return "op_class is unknown, expected one of TN_CLASS_...";
  if (op->formula != NULL && (op->infer != NULL || op->decompose != NULL || op->grad != NULL))
    return "an op with a formula leaves infer, decompose and grad NULL, since they are derived from it";
  if (op->gradient != NULL && op->grad != NULL) return "gradient and grad are two rules for one gradient";
  return NULL;
}

static const char *check_layer(const tn_item *item) {
  const tn_layer_kind *layer = (const tn_layer_kind *)item;
  if (layer->role > TN_LAYER_METRIC)
    return "role is unknown, expected TN_LAYER_PLAIN, TN_LAYER_LOSS or TN_LAYER_METRIC";
  int functions = (layer->of_mean != 0) + (layer->of_sums != NULL) + (layer->of_rows != NULL);
  if (layer->of_mean > TN_OF_MEAN_ROOT)
    return "of_mean is unknown, expected TN_OF_MEAN_ITSELF, TN_OF_MEAN_EXP or TN_OF_MEAN_ROOT";
  if (layer->role != TN_LAYER_METRIC && (functions > 0 || layer->falls != 0))
    return "of_mean, of_sums, of_rows and falls are for metrics";
  if (functions > 1) return "of_mean, of_sums and of_rows are three ways, of which a metric has one";
  if ((layer->build != NULL) == (layer->formula != NULL)) return "a layer has either build or formula";
  if ((layer->formula != NULL) != (layer->inputs != NULL))
    return "formula and inputs come together or not at all";
  if (layer->min_in < 0 || layer->max_in < -1) return "min_in must be >= 0, and max_in >= -1";
  if (layer->max_in != -1 && layer->max_in < layer->min_in) return "max_in is smaller than min_in";
  return NULL;
}

static const char *check_optimizer(const tn_item *item) {
  const tn_optimizer *optimizer = (const tn_optimizer *)item;
  if (optimizer->granularity > TN_UPDATE_PER_PARAMETER)
    return "granularity is neither TN_UPDATE_ELEMENTWISE nor TN_UPDATE_PER_PARAMETER";
  int ways = (optimizer->update != NULL) + (optimizer->formula != NULL);
  if (ways != (optimizer->takes != NULL ? 2 : 1))
    return "an optimizer has either update or formula, or both and takes";
  if (optimizer->takes != NULL && optimizer->granularity != TN_UPDATE_PER_PARAMETER)
    return "takes is for TN_UPDATE_PER_PARAMETER";
  if (optimizer->states != NULL && optimizer->formula == NULL)
    return "states are those of a formula; update makes its own with tn_build_state";
  return NULL;
}

static const char *check_source(const tn_item *item) {
  const tn_source *source = (const tn_source *)item;
  int streams = (source->next != NULL) + (source->tell != NULL) + (source->seek != NULL);
  if (source->read != NULL && streams == 0) return NULL;
  if (source->read == NULL && streams == 3) return NULL;
  return "a source has either read, or all of next, tell and seek";
}

static const char *check_transform(const tn_item *item) {
  const tn_transform *transform = (const tn_transform *)item;
  if (transform->granularity > TN_PER_BATCH) return "granularity is neither TN_PER_SAMPLE nor TN_PER_BATCH";
  if (transform->draws < 0 || (transform->draws > 0) != (transform->draw != NULL))
    return "draw and a positive number of draws come together or not at all";
  if (transform->draw != NULL && (transform->build == NULL || transform->granularity != TN_PER_SAMPLE))
    return "draw is for build of TN_PER_SAMPLE";
  return NULL;
}

static const char *check_precision(const tn_item *item) {
  const tn_precision *precision = (const tn_precision *)item;
  if ((precision->scale == NULL) != (precision->update == NULL))
    return "scale and update come together or not at all";
  return NULL;
}

static const char *check_communicator(const tn_item *item) {
  const tn_communicator *communicator = (const tn_communicator *)item;
  int memory = (communicator->memory_new != NULL) + (communicator->memory_delete != NULL) +
               (communicator->attach != NULL) + (communicator->detach != NULL);
  if (memory != 0 && memory != 4)
    return "memory_new, memory_delete, attach and detach come together or not at all";
  return communicator->identity_bytes == 0 ? "identity_bytes must be at least 1" : NULL;
}

#define KIND(T, name, last, members, check)                                                                  \
  { name, sizeof(T), UP_TO(T, last), members, check }

static const tn_kind kinds[TN_KINDS] = {
    [TN_BACKEND] = KIND(tn_backend, "backend", preference, no_members, check_backend),
    [TN_OP] = KIND(tn_op, "op", formula, op_members, check_op),
    [TN_KERNEL] = KIND(tn_kernel, "kernel", launch, kernel_members, NULL),
    [TN_LAYER] = KIND(tn_layer_kind, "layer", build, no_members, check_layer),
    [TN_OPTIMIZER] = KIND(tn_optimizer, "optimizer", update, no_members, check_optimizer),
    [TN_SCHEDULE] = KIND(tn_schedule, "schedule", factor, schedule_members, NULL),
    [TN_SOURCE] = KIND(tn_source, "source", seek, source_members, check_source),
    [TN_TRANSFORM] = KIND(tn_transform, "transform", build, transform_members, check_transform),
    [TN_PRECISION] = KIND(tn_precision, "precision", update, precision_members, check_precision),
    [TN_COMMUNICATOR] =
        KIND(tn_communicator, "communicator", abort, communicator_members, check_communicator),
    [TN_OBSERVER] = KIND(tn_observer, "observer", close, observer_members, NULL),
};

const tn_kind *tn_kind_find(uint32_t kind) { return kind > 0 && kind < TN_KINDS ? &kinds[kind] : NULL; }

const char *tn_item_missing(const tn_item *item) {
  const tn_member *member = kinds[item->kind].members;
  for (; member->name != NULL; member++) {
    const void *value;
    memcpy(&value, (const char *)item + member->offset, sizeof(value));
    if (value == NULL) return member->name;
  }
  return NULL;
}

const char *tn_kind_name(uint32_t kind) {
  const tn_kind *found = tn_kind_find(kind);
  return found != NULL ? found->name : "item of unknown kind";
}

const char *tn_item_family(const tn_item *item) {
  return item->kind == TN_KERNEL ? ((const tn_kernel *)item)->family : "";
}
