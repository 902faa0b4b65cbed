/* core/step/checks/check_model.h: mistakes between the model and other sections. They are noted in the
 * run's ini, so that one run tells all of them (docs/decisions/0035-mistakes-are-collected.md). */
#pragma once

#include "core/data/loader.h"
#include "core/model/model.h"
#include "core/run/run.h"

/* For a model that was built with its losses: notes a [run] best that names no measure of the model and, if
 * the model is to be trained, the patterns of [group.NAME] freeze and [group.NAME] that match no parameter.
 */
tn_status tn_model_check(tn_run *run, const tn_model *model, bool trains);

/* Notes the schedules of options of the model for which a graph of training has no input. */
tn_status tn_schedules_check(tn_run *run, const tn_graph *graph);

/* Notes each of the wanted fields that the data of a split lack or have in another type. Types are without
 * the batch dimension. */
tn_status tn_fields_check(tn_run *run, int32_t split, const tn_loader *loader,
                          const tn_signature_field *wanted, int32_t n);
/* The same for the inputs of a graph that it reads and that are not the host's own. */
tn_status tn_fields_check_graph(tn_run *run, int32_t split, const tn_loader *loader, const tn_graph *graph);
/* The same for [model] inputs, where the model is wrong behind them: for the first one, which the first layer
 * reads, unless the device transforms the fields. */
tn_status tn_fields_check_signature(tn_run *run, int32_t split, const tn_loader *loader);

/* The dimension that varies between batches, of [model] inputs and targets, for a loader. */
tn_status tn_fields_padded(tn_run *run, tn_loader_options *options);
/* An input of a program or graph as a field, without the batch dimension. */
tn_signature_field tn_field_of_input(const char *name, const tn_type *type);
/* Whether the host writes an input of this name: control values, counters, weights of samples. */
bool tn_input_is_of_host(const char *name);
