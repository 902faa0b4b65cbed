/* core/distributed/ranks/flight_file.h: the entries of a flight recorder as a file. */
#pragma once

#include "core/exec/flight_recorder.h"
#include "core/distributed/wire/wire.h"

/* The texts of the file's first line beside the summary. */
typedef struct tn_flight_file {
  const char *folder, *failure; /* failure: the message */
  const char *host;             /* "": this one, the run has one process */
  int32_t process, ranks;
} tn_flight_file;

/* Where a rank is: its counts, its wait, and the collectives that matter. */
void tn_flight_summarize(const tn_flight *flight, int32_t rank, tn_rank_summary *summary);

/* Writes FOLDER/rankN.jsonl: the summary, then a line for each collective in the recorder, the oldest first.
 * Makes the folder, whose parent must exist. */
tn_status tn_flight_write(tn_env *env, const tn_flight *flight, const tn_rank_summary *summary,
                          const tn_flight_file *about);
