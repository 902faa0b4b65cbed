/* core/records/folders/run_records.h: what the files of a run folder say: its checkpoints and its metrics. */
#pragma once

#include <jansson.h>

#include "core/records/checkpoints/checkpoint_files.h"

/* A folder in FOLDER/checkpoints. */
typedef struct tn_found_checkpoint {
  const char *name, *path;
  tn_state_record record;
  const char *reason; /* why it cannot be used; NULL: state.json is fine */
  uint64_t bytes;     /* of its files */
  int64_t saved;      /* when state.json was written, in seconds since 1970; 0: unknown */
} tn_found_checkpoint;

typedef struct tn_found_checkpoints {
  tn_found_checkpoint *v; /* the newest first; those that cannot be used last */
  int32_t n;
} tn_found_checkpoints;

/* Finds the checkpoints of a run folder; its memory is the arena's, whose handle gets the errors. A run
 * without checkpoints has none. */
tn_status tn_find_checkpoints(tn_arena *arena, const char *folder, tn_found_checkpoints *found);

/* Reads one checkpoint's folder; a damaged state.json is no error, but the `reason`. */
tn_status tn_examine_checkpoint(tn_arena *arena, const char *path, tn_found_checkpoint *one);

/* Lines of FOLDER/metrics.jsonl. */
typedef struct tn_metric_lines {
  json_t *epochs; /* those of epochs: an array, empty without the file */
  json_t *last;   /* the last line; NULL: none */
} tn_metric_lines;
tn_status tn_metric_lines_read(const void *handle, const char *folder, tn_metric_lines *lines);
void tn_metric_lines_free(tn_metric_lines *lines);

/* run_facts.c: the entry of tn_list_runs for one run folder. *json is set where memory allows it, also after
 * a failure to read one of the files; the caller releases it. */
tn_status tn_describe_run_folder(const void *handle, tn_arena *arena, const char *path, json_t **json);
