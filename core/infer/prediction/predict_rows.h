/* core/infer/prediction/predict_rows.h: arrays of .npy and .safetensors files as a source: row i of each is
 * sample i. */
#pragma once

#include "core/base/arena.h"
#include "tenon/plugin/source.h"

enum { TN_PREDICT_INPUTS = 16 };

typedef struct tn_predict_array {
  const char *input, *path; /* input: of the model; NULL: not named yet */
  tn_type type;             /* with the rows as first dimension */
  char *data;
} tn_predict_array;

typedef struct tn_predict_rows {
  tn_predict_array arrays[TN_PREDICT_INPUTS];
  tn_field fields[TN_PREDICT_INPUTS];
  int32_t n;
} tn_predict_rows;

/* Reads a .npy file for an input of the model, or, of a .safetensors file, the array of that name; where
 * `input` is NULL, all arrays by their names. Names of arrays are copied to the arena. TN_EINVAL: an array
 * has another number of rows than those before, or there are more than TN_PREDICT_INPUTS. */
tn_status tn_predict_rows_add(tn_arena *arena, tn_predict_rows *rows, const char *input, const char *path);
/* Whether the file is one of arrays, by its ending. */
bool tn_predict_rows_reads(const char *path);
int64_t tn_predict_rows_count(const tn_predict_rows *rows);
void tn_predict_rows_free(const void *handle, tn_predict_rows *rows);

/* Its options are a tn_predict_rows, which outlives it. */
extern const tn_source tn_predict_rows_source;
