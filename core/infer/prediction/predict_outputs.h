/* core/infer/prediction/predict_outputs.h: the rows of the model's outputs, and the file that they go to. */
#pragma once

#include "core/infer/prediction/output_units.h"

#include <jansson.h>

typedef struct tn_predict_outputs {
  const tn_forward *forward;
  const char *given;      /* "PATH" or "NAME=PATH" of a file of arrays or CSV; NULL: no such file */
  const char *folder;     /* in place of a file; NULL: none */
  const char *json;       /* the file for predictions as JSON; NULL: none */
  const char *path;       /* of it */
  const char *name;       /* NULL: all outputs */
  int32_t only;           /* the number of the output of this name; -1: all outputs */
  tn_output_units *units; /* of each output */
  char **rows;  /* of each output, in the order of the samples: all, or without a file those of a batch */
  int64_t base; /* the sample of the first of them */
} tn_predict_outputs;

/* Reads `given`, the path of a file or folder, before the programs are compiled. TN_EIO: the file cannot be
 * written. */
tn_status tn_predict_outputs_name(tn_run *run, const char *given, tn_predict_outputs *outputs);
/* Finds the named output among those of an open pass. TN_EINVAL: the model has no output of the name, or has
 * several and the file is not a .safetensors file. */
tn_status tn_predict_outputs_find(tn_predict_outputs *outputs, const tn_forward *forward);
/* Allocates the rows of all samples, or of a batch. */
tn_status tn_predict_outputs_start(tn_predict_outputs *outputs);
/* Takes n rows of a slot, those of the samples from `first` on. */
void tn_predict_outputs_take(tn_predict_outputs *outputs, int32_t slot, int64_t first, int64_t n);
/* Row i of output k; without a file one of the batch that was taken last. */
const void *tn_predict_outputs_row(const tn_predict_outputs *outputs, int32_t k, int64_t i);
/* Writes the file of arrays, where one is named. */
tn_status tn_predict_outputs_write(const tn_predict_outputs *outputs);
/* [{"name": "mean", "row": "f32[4]"}, ...] */
json_t *tn_predict_outputs_list(const tn_predict_outputs *outputs);
void tn_predict_outputs_free(tn_predict_outputs *outputs);
