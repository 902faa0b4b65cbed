/* core/export/trained_model.h: the graph of a run's model for inference, and its trained parameters. */
#pragma once

#include "core/data/loader.h"
#include "core/records/checkpoints/stored_states.h"
#include "core/records/checkpoints/weights.h"
#include "core/step/programs/programs.h"

typedef struct tn_trained_model {
  tn_run *run;
  tn_graph
      *graph; /* of ops, as layers emit them, without passes; the caller may take it and set it to NULL */
  int64_t batch;
  tn_device *device;
  tn_program_set set; /* one program, which holds the parameters */
  tn_executor *executor;
  tn_arena arena;
  tn_stored_states states;
  tn_loader *loader; /* of the transforms in the graph; NULL without them */
} tn_trained_model;

/* Batch 0: a prime that no other size of the model is a multiple of. With `prepared` the graph begins with
 * the transforms of validation that a device can apply, on the bytes in front of them, which needs the data.
 * `command` is for messages. The caller closes it, after a failure, too. */
tn_status tn_trained_model_open(tn_run *run, int64_t batch, bool prepared, const char *command,
                                tn_trained_model *m);
void tn_trained_model_close(tn_trained_model *m);

/* Reads a parameter or running statistic by its path in the graph; averages where the run has them. The
 * context is the model. */
tn_status tn_trained_model_read(void *context, const char *path, void *to, size_t bytes);
