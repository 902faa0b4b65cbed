/* tenon/run.h: a configuration in use: train, evaluate, predict, plan, measure. The program `tenon` uses
 * these functions.
 *
 * A run belongs to a context, which outlives it. Threads: one thread at a time; tn_run_stop may be called
 * from any thread and from signal handlers. A result is one JSON object as text; docs/guide/results.md lists
 * the fields. The caller frees it with tn_string_free (context.h). On failure *json is NULL, with the
 * exceptions named below, and the text of the failure is in the run. A NULL pointer where none is allowed
 * here is TN_EINVAL; without text if it is the handle. */
#ifndef TENON_RUN_H
#define TENON_RUN_H

#include "tenon/context.h"

TN_BEGIN_C

typedef struct tn_run tn_run; /* begins with a tn_env */

typedef struct tn_run_options {
  uint32_t struct_size;
  const char *const *set; /* n_set overrides "section.key=value" */
  int32_t n_set;
  const char *output; /* folder for run folders; NULL: [run] output */
  const char *resume; /* "auto": the newest run of this name; a run folder; NULL: a new run */
  /* Parameters: a safetensors file, the folder of a checkpoint, or a run folder, of which the best checkpoint
   * is taken. NULL: [weights] file; without one, eval and predict take the newest run of this name. */
  const char *weights;
  int32_t terminal; /* columns of the terminal that progress is drawn for; 0: plain lines */
  int32_t quiet;    /* 1: progress begins without the lines about backend, data and model */
  int32_t progress; /* 1: the observer `progress` writes to stderr; 0: only where [run] observers names it */
  const char *const *command; /* n_command words of the command line, for history.jsonl; NULL: not recorded */
  int32_t n_command;
  /* File for a trace of the steps that tn_run_train profiles, [run] profile or 10 of them, and of 10 steps
   * after those that tn_run_bench measures, or as many batches: a timeline that ui.perfetto.dev opens. NULL:
   * tn_run_train writes trace.json to the run folder where [run] profile is set. */
  const char *trace;
  /* 1: the file is data that may be another user's, as config.ini of a run folder. Plugins that it names by
   * a path are an error (TN_EUNAVAILABLE) unless the context has loaded them; folders of libraries that it
   * names are left out, with a warning. */
  int32_t untrusted;
} tn_run_options;

/* Reads a configuration file and the files that it includes, or a model of ONNX, whose path ends in .onnx:
 * the run is then that of the configuration that tn_import_onnx would write, with the weights of the file,
 * for predictions, sessions, plans and measurements (TN_EUNSUPPORTED: the message lists its operators that
 * cannot be expressed). options may be NULL. Error texts have file and line: TN_EINVAL: the configuration is
 * wrong; TN_EIO: a file cannot be read; TN_EUNAVAILABLE: a plugin or device is missing. On failure *run is
 * NULL and the text is in the context. tn_run_close accepts NULL. */
TN_EXPORT tn_status tn_run_open(tn_context *context, const char *path, const tn_run_options *options,
                                tn_run **run);
TN_EXPORT void tn_run_close(tn_run *run);

/* Trains, validates and writes checkpoints as configured. TN_ESTOPPED after tn_run_stop: a checkpoint has
 * been written, unless no step had begun. TN_ENONFINITE: the loss was not finite; the last checkpoint with a
 * finite loss is kept. *json is set in these two cases as well, where a step had begun. TN_EUNAVAILABLE:
 * another run uses the folder that is to be resumed. TN_ECOMM names a rank of several that has failed or does
 * not answer. Where its thread never ends, the call returns [distributed] timeout later without freeing what
 * the thread may use: run and context stay allocated when they are closed, and tn_context_close returns 1. */
TN_EXPORT tn_status tn_run_train(tn_run *run, char **json);
/* Losses and metrics of one pass over the validation data. TN_ENONFINITE: one is not finite, which the
 * message names; *json is set as well, with null in its place. */
TN_EXPORT tn_status tn_run_eval(tn_run *run, char **json);
/* Compares the predictions of a classifier with the classes of the validation data: "samples", "classes"
 * (names), "means" and "by_class" (precision, recall, F1, area under the ROC curve of each class against the
 * others), "confusion" (rows: true classes; up to 200 classes), and "worst", the 24 wrong predictions in
 * which the true class had the least probability, as pictures where the input is one. If the weights are
 * those of a run folder, the result is also kept there as evaluation.json. TN_EINVAL: the model is no
 * classifier. TN_ENONFINITE: as for tn_run_predict; these samples are not counted, "not_finite" is their
 * number. */
TN_EXPORT tn_status tn_run_examine(tn_run *run, char **json);

typedef struct tn_predict_options {
  uint32_t struct_size;
  /* "PATH" or "NAME=PATH", n_inputs of them. Either .npy files, one for each input of the model, and
   * .safetensors files, whose arrays have the names of inputs, with the rows as first dimension: rows of the
   * input's type are fed as they are, bytes go through the transforms of validation. Or files and folders
   * that the source of [data.valid] reads (tn_source.open_files), such as pictures, which go through these
   * transforms. */
  const char *const *inputs;
  int32_t n_inputs;
  /* "PATH": a .npy file for the model's output, or a .safetensors file for all of its outputs, by name.
   * "NAME=PATH": the file has the output of this name alone. A .csv file for a row of each input, a .json
   * file for the result, a folder for masks as PNG. NULL: no file. */
  const char *output;
  int32_t top; /* classes of a prediction, the most probable first; 0: 5 */
  /* A folder for pictures with the predicted masks or boxes over them, FILE.png for FILE.jpg. NULL: none. */
  const char *show;
  double threshold; /* the least score of a box; 0: 0.5, below 0: any */
} tn_predict_options;
/* Computes the model's output for each row or file. Where the loss is a cross entropy over classes, the
 * result has the most probable classes, with the names that the weights carry. TN_ENONFINITE: outputs, or
 * inputs, are not finite (of scores of classes, -infinity beside a finite score is); the message names the
 * first, *json and `output` are written as well, "not_finite" is their number, and they have no classes. */
TN_EXPORT tn_status tn_run_predict(tn_run *run, const tn_predict_options *options, char **json);

typedef struct tn_generate_options {
  uint32_t struct_size;
  const char *prompt; /* UTF-8, prompt_bytes of it; NULL: a new line */
  size_t prompt_bytes;
  const int32_t *tokens; /* instead of a text: n_tokens numbers of tokens */
  int64_t n_tokens;
  int64_t count;      /* tokens to generate; 0: 200 */
  double temperature; /* divides the scores: above 1 is more surprising; 0: always the most probable token */
  double top_p;       /* drawn from the most probable tokens that have this mass together; 0: from all */
  int32_t top_k;      /* drawn from so many of the most probable tokens; 0: from all */
  uint64_t seed;
  /* Gets each token as it is drawn, on the calling thread: its text, which may be a part of a UTF-8 character
   * where tokens are bytes, or " " and its number where the prompt is numbers. A result other than 0 ends
   * the text. NULL: none. */
  int32_t (*write)(void *user, const char *text, size_t bytes);
  void *user;
} tn_generate_options;
/* Continues a text by a model whose output has scores of the next token for each of its tokens. Keys and
 * values of earlier tokens are kept, so a token costs one pass of one token. Where the text becomes longer
 * than the model's window, the model goes on from the last half of the window. The result has "text",
 * "tokens" and "tokens_per_s". The tokens are those of the same seed on every run with the same weights and
 * backend. tn_run_stop ends the text early, with TN_OK. TN_ENONFINITE: the scores of a token are not finite;
 * the text ends before it, the message has its place, and *json is set as well. TN_EUNSUPPORTED: a layer,
 * which the text names, mixes tokens in another way than causal attention. */
TN_EXPORT tn_status tn_run_generate(tn_run *run, const tn_generate_options *options, char **json);

typedef struct tn_plan_options {
  uint32_t struct_size;
  const char *dump_after; /* a compiler pass, "" for each; NULL: no dump */
  const char *device;     /* JSON file of a device to plan for (docs/guide/devices.md); NULL: [backend] use */
  int32_t ranks;          /* plan for so many devices, be they there or not; 0: those of [distributed] */
  int32_t mode;           /* TN_BENCH_TRAIN: the training step, or predictions where [model] has no loss;
                             TN_BENCH_INFER:           predictions */
  int64_t batch;          /* samples of a prediction; 0: 1. A training step has those of [data] batch */
} tn_plan_options;
/* Compiles the training step, or a prediction, and describes its plan; reads no data and no weights, opens no
 * device, runs nothing. *dump is the graph's text after the pass `dump_after`, which the caller frees with
 * tn_string_free. options and dump may be NULL. */
TN_EXPORT tn_status tn_run_plan(tn_run *run, const tn_plan_options *options, char **json, char **dump);
/* The memory of that plan by its use: {rows: [{name, bytes, host}], executor_bytes, total_bytes,
 * offloaded_bytes, placed_bytes, streamed_bytes, peak, by_launch, lines}: the table that `tenon plan` prints.
 * *text, if text is not NULL, is the same as text; the caller frees it with tn_string_free. `dump_after` is
 * not read. options may be NULL. */
TN_EXPORT tn_status tn_run_memory(tn_run *run, const tn_plan_options *options, char **json, char **text);
/* {layers: [{name, op, output, parameters, flops}], parameters, flops}: the model summary. */
TN_EXPORT tn_status tn_run_summary(tn_run *run, char **json);

typedef struct tn_sweep_options {
  uint32_t struct_size;
  /* n_set texts "section.key=VALUE,VALUE" or "section.key=LOW..HIGH", beside the lines of [sweep]. */
  const char *const *set;
  int32_t n_set;
} tn_sweep_options;
/* Draws the runs of a sweep over this configuration ([sweep]) and records them in a new folder,
 * OUTPUT/NAME-sweep; with tn_run_options.resume in an earlier one, which must have the same runs. Plans the
 * configuration, trains nothing: the caller trains each run, with its "set", and "name" as [run] name, and
 * "folder" as [run] output. The result has "folder", "resumed", "jobs" (runs at a time), "threads" ([run]
 * threads of each; 0: as configured) and "sweep": "runs" ("name", "configuration", "set", "seed", "fold"),
 * "rungs" (epochs after which configurations are compared, the last one all), "method", "factor", "metric",
 * "smaller_is_better". TN_EINVAL: the values are wrong. options may be NULL. */
TN_EXPORT tn_status tn_run_begin_sweep(tn_run *run, const tn_sweep_options *options, char **json);

/* tn_run_bench measures the time of a step on random data of the model's input types (TRAIN, INFER), or the
 * time of a batch of the training data's loader alone: reading, transforms, copying into the batch (LOAD).
 * options may be NULL: TN_BENCH_TRAIN, which the processes that a launcher has started measure together, as
 * they train: *json is NULL in all but the first, and TN_ECOMM names a rank that has failed. */
enum { TN_BENCH_TRAIN = 0, TN_BENCH_INFER = 1, TN_BENCH_LOAD = 2 };
typedef struct tn_bench_options {
  uint32_t struct_size;
  int32_t mode;
  int64_t batch;                 /* 0: the configuration's */
  int32_t steps, rounds, warmup; /* 0: 3 steps in each of 5 rounds after 1; loader: 40, 5, 4 */
  int32_t launches;              /* 1: repeat the steps and report the time of each launch */
  /* TRAIN: so many devices of this process, which share the batch; 0: those of [distributed]. The result has
   * the communication that a step exposes, as predicted and as measured. 1, with a communicator that
   * [distributed] names: its collectives run on the one device, so that their calls can be measured. */
  int32_t ranks;
  /* JSON file of a device (docs/guide/devices.md) that the backend `sim` rehearses: kernels and collectives
   * take their predicted times, and nothing is computed. NULL: [backend] use. */
  const char *device;
} tn_bench_options;
TN_EXPORT tn_status tn_run_bench(tn_run *run, const tn_bench_options *options, char **json);

/* Looks at the data as training and validation get them, behind the transforms: "train" and "valid" (null:
 * there is no part for validation), each with "source", "samples" of an epoch, "fields" ("name", "role",
 * "type", "min", "max", "mean", "deviation", "missing": numbers that are NaN, "number": how many numbers
 * these are of), "classes"
 * ("name", "samples"; of all samples if "counted" is "all", else of those that were looked at; null: no
 * target has classes), "looked_at" (samples), and "per_s", samples a second of the loader without its cache.
 * Nothing is compiled. options may be NULL. */
typedef struct tn_data_options {
  uint32_t struct_size;
  int32_t samples; /* of each part that are looked at, rounded up to whole batches, in 5 seconds; 0: 1000 */
  const char *picture; /* a PNG to write: the pictures of the first batch of training, up to 64; NULL: none */
} tn_data_options;
TN_EXPORT tn_status tn_run_data(tn_run *run, const tn_data_options *options, char **json);

/* Looks for a learning rate: takes steps of training in which it rises exponentially, until the loss is far
 * above its least value or not finite, and reports the losses (Smith, "Cyclical learning rates for training
 * neural networks", WACV 2017). Begins from the configured weights, on one device. Learning rates of groups
 * keep their ratio to the first one. Nothing is saved, and there are no observers. The result has "points"
 * ("lr", "loss", "smoothed"), and the learning rates at which the smoothed loss is "least", and falls most
 * ("steepest"); both are null where it does not fall. "not_finite" is the learning rate with which the loss
 * was not finite, or null. TN_ENONFINITE: it was not in the first step. TN_EINVAL: the optimizer has no lr.
 * options may be NULL. */
typedef struct tn_find_lr_options {
  uint32_t struct_size;
  int32_t steps;   /* 20 to 100000; 0: 100 */
  double from, to; /* the first and the last learning rate; 0: 1e-7 and 10 */
  /* Called after each step, on the calling thread, with its number from 1 on; NULL: no call. */
  void (*progress)(void *user, int32_t step, double lr, double loss);
  void *user;
} tn_find_lr_options;
TN_EXPORT tn_status tn_run_find_lr(tn_run *run, const tn_find_lr_options *options, char **json);

/* Trains two runs of the same configuration side by side, which differ in [backend] use: `reference` on the
 * backend that is trusted, `run` on the one that is tested. Both get the same weights, batches and random
 * numbers, and each takes its own steps. In the first and in the last step, the reference backend computes
 * the ops of every launch of `run` again, from the operands that the launch had. A launch departs where its
 * results differ by more than the tolerance of its ops, unless the same ops in f64 show that rounding
 * explains it, or that it is the reference that is wrong. Nothing is saved. The result says "agree": false
 * where a launch departs; the status is TN_OK then. The text of a failure is in `run`. options may be NULL.
 */
typedef struct tn_compare_options {
  uint32_t struct_size;
  int32_t steps;    /* 0: 12 */
  int32_t launches; /* of each step with the same operands, which must give the same results. 0: 12 */
  const char *file; /* safetensors file that is written for the first launch that departs, for
                       tn_run_repeat_launch; NULL: none */
} tn_compare_options;
TN_EXPORT tn_status tn_run_compare_with(tn_run *run, tn_run *reference, const tn_compare_options *options,
                                        char **json);

/* Repeats the launch that tn_run_compare_with has written to `file`: its kernel in its variant, with its
 * operands and layouts, on the backend of `run`, as often as the file says, and the same ops on the backend
 * of `reference`. Of the configurations only plugins, [run] threads and [backend] are used. "agree" is as
 * above. TN_EUNSUPPORTED: the kernel is not installed, or no longer takes these ops. */
TN_EXPORT tn_status tn_run_repeat_launch(tn_run *run, tn_run *reference, const char *file, char **json);

/* Requests that tn_run_train finish its step, write a checkpoint and return TN_ESTOPPED; before the first
 * step, that what compiles, reads weights or waits for other processes end within a second. So do the other
 * calls of the run, from then on. Async-signal-safe. NULL has no effect. */
TN_EXPORT void tn_run_stop(tn_run *run);

/* The configuration after includes, variables and overrides, as INI text; the caller frees it with
 * tn_string_free. */
TN_EXPORT tn_status tn_run_config(tn_run *run, char **ini);
/* The same with every key that is not given at its default, as resolved.ini of a run folder has it. */
TN_EXPORT tn_status tn_run_resolved_config(tn_run *run, char **ini);

TN_END_C
#endif
