/* tenon/run.h: a configuration in use: train, evaluate, predict, plan, measure. Everything that the
 * program `tenon` does, it does through this header.
 *
 * A run belongs to a context and is used by one thread at a time; tn_run_stop alone may be called
 * from anywhere, signal handlers included. Results are one JSON object as text, with the fields that
 * docs/guide lists; give it back with tn_string_free (context.h). */
#ifndef TENON_RUN_H
#define TENON_RUN_H

#include "tenon/context.h"

TN_BEGIN_C

typedef struct tn_run tn_run; /* begins with a tn_env */

typedef struct tn_run_options {
  uint32_t struct_size;
  const char *const *set; /* n_set overrides "section.key=value" */
  int32_t n_set;
  const char *output;  /* folder for run folders; NULL: [run] output */
  const char *resume;  /* "auto": the newest run of this name; a run folder; NULL: a new run */
  const char *weights; /* safetensors file that parameters are read from; NULL: [weights] file */
  int32_t terminal;    /* progress is drawn for a terminal of so many columns; 0: plain lines */
} tn_run_options;

/* Reads the configuration and everything it names. Errors carry file and line: TN_EINVAL for a wrong
 * configuration, TN_EIO, TN_EUNAVAILABLE for a plugin or device that is missing. options may be NULL.
 * On failure *run is NULL and the text is in the context. */
TN_EXPORT tn_status tn_run_open(tn_context *context, const char *path, const tn_run_options *options,
                                tn_run **run);
TN_EXPORT void tn_run_close(tn_run *run);

/* Trains as configured, validating and saving along the way. TN_ESTOPPED after tn_run_stop: the
 * checkpoint is written and the result says "stopped". TN_ENONFINITE: the loss was not finite; the last
 * good checkpoint is kept. *json is set in these two cases as well. */
TN_EXPORT tn_status tn_run_train(tn_run *run, char **json);
/* One pass over the validation data. */
TN_EXPORT tn_status tn_run_eval(tn_run *run, char **json);
/* The model's output for the rows of a .npy file, written as .npy. The file holds the model's first
 * input with the batch in front, of its dtype. */
TN_EXPORT tn_status tn_run_predict(tn_run *run, const char *input, const char *output, char **json);

/* What training would do, without running, data, or weights. `dump_after` names a pass whose graph
 * text is wanted in *dump (both may be NULL). */
TN_EXPORT tn_status tn_run_plan(tn_run *run, const char *dump_after, char **json, char **dump);
/* Layers with shapes, parameters, FLOPs: for the model summary. */
TN_EXPORT tn_status tn_run_summary(tn_run *run, char **json);

/* Time per step on random data of the model's signature, or per batch of the training data's loader alone:
 * reading, transforms, and the way into the batch. */
enum { TN_BENCH_TRAIN = 0, TN_BENCH_INFER = 1, TN_BENCH_LOAD = 2 };
typedef struct tn_bench_options {
  uint32_t struct_size;
  int32_t mode;
  int64_t batch;                 /* 0: the configuration's */
  int32_t steps, rounds, warmup; /* 0: 3 steps in each of 5 rounds after 1; loader: 40, 5, 4 */
  int32_t launches;              /* 1: as many steps once more, with the time of each launch */
} tn_bench_options;
TN_EXPORT tn_status tn_run_bench(tn_run *run, const tn_bench_options *options, char **json);

/* Asks a training run to finish its step, save, and return TN_ESTOPPED. Async-signal-safe. */
TN_EXPORT void tn_run_stop(tn_run *run);

/* The configuration after includes, variables and overrides, as INI text. */
TN_EXPORT tn_status tn_run_config(tn_run *run, char **ini);

TN_END_C
#endif
