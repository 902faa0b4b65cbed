/* core/records/learnt/learnt.h: what a source has learnt from the training data travels with the
 * weights: files of weights have it in their metadata, as a JSON object with the source's text under its
 * name,
 * {"table": {...}} (docs/decisions/0077-learnt-state.md). */
#pragma once

#include "core/data/loader.h"
#include "core/formats/safetensors.h"
#include "core/run/run.h"

#define TN_LEARNT_NOTE "tenon.data"

/* Sets run->learnt to what the source of the training data has learnt, if it learns. */
tn_status tn_learnt_of_data(tn_run *run, tn_loader *loader, const tn_source *source);
/* Sets run->learnt, unless it is set, to that of a file of weights. A warning tells of weights that were
 * trained on data of which something else was learnt. */
tn_status tn_learnt_of_weights(tn_run *run, const tn_safetensors *file, const char *path);
/* The text for tn_env_learnt of `source`; NULL: nothing is known. */
tn_status tn_learnt_text(tn_run *run, const tn_source *source, const char **text);
