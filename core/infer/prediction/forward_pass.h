/* core/infer/prediction/forward_pass.h: the model's outputs for every sample of a loader, batch by batch. */
#pragma once

#include "core/data/loader.h"
#include "core/step/programs/programs.h"

enum { TN_FORWARD_SLOTS = 2 };

/* An output of the model: a row for each sample. */
typedef struct tn_output_rows {
  const char *name;
  tn_type row; /* without the batch */
  size_t row_bytes;
} tn_output_rows;

typedef struct tn_forward {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  struct tn_mapped_weights *mapped; /* NULL: none are */
  int32_t index;                    /* of the program */
  const tn_program *program;
  tn_output_rows *outputs; /* the main one first, which scores are read from */
  int32_t n_outputs;
  int64_t batch;
  int64_t length; /* of the dimension that varies between batches; 0: none does */
  tn_loader *loader;
  int64_t count;                   /* samples of the loader */
  void **fields[TN_FORWARD_SLOTS]; /* addresses of the loader's fields in a slot */
  int64_t *ids[TN_FORWARD_SLOTS];  /* the numbers of the samples in it, for tn_loader_sample_name */
} tn_forward;

/* Compiles the program for batches of so many samples, and for a length; 0: the longest. The caller calls
 * tn_forward_close, also after a failure. TN_EINVAL: an output does not have one row per sample. */
tn_status tn_forward_open(tn_run *run, int64_t batch, int64_t length, tn_forward *forward);
/* Initializes the parameters and loads weights; `command` is for messages. */
tn_status tn_forward_load_weights(tn_forward *forward, const char *command);
/* Opens a loader on all samples in their order, with the options' source, files and transforms, and connects
 * its fields with the program's inputs. `what` names the data in messages. */
tn_status tn_forward_attach(tn_forward *forward, const tn_loader_options *options, const char *what);
/* Runs all batches. `rows` gets the first n rows of a slot, which are the samples from `first` on in the
 * order of the loader. */
typedef tn_status (*tn_forward_rows)(void *context, int32_t slot, int64_t first, int64_t n);
tn_status tn_forward_run(tn_forward *forward, tn_forward_rows rows, void *context);
/* The rows of output k in a slot, during `rows`. */
const void *tn_forward_output(const tn_forward *forward, int32_t slot, int32_t k);
/* Whether the outputs of a row in a slot are finite, and the inputs that they came from: a kernel may compute
 * a number from a NaN, as the ReLU that libraries put behind a convolution. */
bool tn_forward_row_is_finite(const tn_forward *forward, int32_t slot, int64_t row);
void tn_forward_close(tn_forward *forward);
