/* core/records/checkpoints/weights.h: state from and to safetensors files. */
#pragma once

#include "core/step/programs/programs.h"

/* Kinds of state, as masks of 1 << TN_STATE_... */
enum {
  TN_STATES_OF_MODEL = 1 << TN_STATE_PARAM | 1 << TN_STATE_BUFFER,
  TN_STATES_OF_OPTIMIZER = 1 << TN_STATE_OPTIMIZER | 1 << TN_STATE_HOST
};

/* A file, and how its names become those of the model (weights_names.h). */
typedef struct tn_weights_source {
  const char *path, *prefix, *rename;
  const char *skip;      /* patterns of names that keep the model's values */
  const char *transpose; /* patterns of matrices that the file has as (in, out) in place of (out, in) */
  uint32_t kinds;
  const char *advice; /* what messages about other names advise */
  bool averages;      /* a checkpoint's, with averages where the run has them (stored_states.h) */
  bool is_base;       /* below adapters, whose file is open */
  bool keep;          /* the model is in use: a file that is not as it was written changes none of it */
} tn_weights_source;

/* How many states of the kinds were read and skipped. */
typedef struct tn_weights_counts {
  int32_t read, skipped;
} tn_weights_counts;

/* Reads every state of the kinds; floats of another width are converted. Where the file holds adapters
 * (adapter_note.h), the base that it names is read first, and a model without adapters gets W + s B A. A file
 * of a checkpoint is summed meanwhile; TN_EINVAL where it is not as it was written, then the states are
 * undefined unless source->keep. Names that only the file or only the model has, or that have another type in
 * the file, are an error that lists them, unless `skip` matches them: then the model keeps its value.
 * PyTorch's counters *.num_batches_tracked are always skipped, and TN_LOG_VARIANCE where the model has none.
 * `counts` may be NULL. */
tn_status tn_weights_load(tn_run *run, tn_executor *executor, const tn_state_map *map,
                          const tn_weights_source *source, tn_weights_counts *counts);
/* Size and checksum of a file when it was written. */
typedef struct tn_file_sum {
  uint64_t bytes;
  uint32_t crc; /* CRC-32C */
} tn_file_sum;

/* Writes the states whose kind is in the mask (1 << TN_STATE_...), sorted by name, with averages in place of
 * the states that have them (stored_states.h). Where the map has adapters, those of the model that are never
 * trained are left out, and the file names their own. */
tn_status tn_weights_save(tn_run *run, tn_executor *executor, const tn_state_map *map, uint32_t kinds,
                          const char *path, tn_file_sum *sum);
/* Writes the trained parameters with the names that PEFT has for them. */
tn_status tn_weights_save_peft(tn_run *run, tn_executor *executor, const tn_state_map *map, const char *path);
