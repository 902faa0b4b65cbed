/* tenon/folders.h: run folders, checkpoints and files of weights: list, show, check, compare and
 * convert them. The calls use no device and no plugin and hold no lock: a training may go on meanwhile. One
 * call at a time for a context.
 *
 * Weights are named by a path: a file .safetensors; a checkpoint's folder, with model.safetensors and
 * optimizer.safetensors; a run folder, which stands for checkpoints/best, or checkpoints/last where there is
 * no best; or a folder of .npy files, each of which is called after its tensor.
 *
 * A result is one JSON object as text (docs/guide/results.md); the caller frees it with tn_string_free
 * (context.h). On failure *json is NULL and the text is in the context. TN_EIO: a file cannot be read or
 * written; TN_EINVAL: another kind of path, or a damaged file. */
#ifndef TENON_FOLDERS_H
#define TENON_FOLDERS_H

#include "tenon/context.h"

TN_BEGIN_C

/* The runs in a folder, [run] output of their configurations: {"runs": [...]}, the newest first. A folder is
 * a run's if it has config.ini. "sweeps" has the paths of the sweeps there, and of the folder of a sweep
 * "sweep" is what tn_list_sweep says. */
TN_EXPORT tn_status tn_list_runs(tn_context *context, const char *folder, char **json);

/* The checkpoints of a run folder: {"checkpoints": [...]}, the newest first. Sizes and checksums of the
 * tensors are not compared; tn_verify_checkpoints does that. */
TN_EXPORT tn_status tn_list_checkpoints(tn_context *context, const char *run, char **json);

/* The file that makes a folder one of a sweep: its runs, as tn_run_begin_sweep (run.h) has drawn them. */
#define TN_SWEEP_FILE "sweep.json"
/* How the runs of a sweep came out: "runs", each with its "status" ("waiting": it has not begun), "epochs",
 * "best" score and "scores" after each epoch; and "ranking": the configurations, the best first, each with
 * "mean" and "std" of the best scores of its runs. A score is the metric that [run] best names, of
 * validation. TN_EINVAL: the folder is no sweep's, or its file is damaged. */
TN_EXPORT tn_status tn_list_sweep(tn_context *context, const char *folder, char **json);
/* Writes that to FOLDER/results.json, the table to FOLDER/results.csv, and a page about all runs to
 * FOLDER/report.html, each atomically. */
TN_EXPORT tn_status tn_write_sweep(tn_context *context, const char *folder);

/* Writes a page (HTML) about n folders of runs or sweeps to `path`, atomically: curves, times, memory, the
 * configurations with their differences, and, where tn_run_examine (run.h) has left evaluation.json, the
 * confusion matrix and the worst errors. The page needs no other file and no network. */
TN_EXPORT tn_status tn_write_report(tn_context *context, const char *const *runs, int32_t n,
                                    const char *path);

/* The tensors of weights: path, dtype, shape, bytes; the notes of the file; step and epoch of a checkpoint.
 * `statistics` 1: also the smallest, largest and mean element of each, and how many are not finite. */
TN_EXPORT tn_status tn_show_tensors(tn_context *context, const char *path, int32_t statistics, char **json);

/* Checks the checkpoints of a run folder, one checkpoint, or one file of weights, as resuming and loading
 * would: state.json and the sizes and checksums in it, the structure of the files, and that all floats are
 * finite. Damage is a result, with TN_OK: "valid" is
 * false if one of them cannot be used, with a reason for each. */
TN_EXPORT tn_status tn_verify_checkpoints(tn_context *context, const char *path, char **json);

/* Compares the tensors of two weights by their paths. "equal" is true if both have the same tensors of the
 * same shapes and values; dtypes may differ. `optimizer` 1: optimizer state as well. */
TN_EXPORT tn_status tn_compare_tensors(tn_context *context, const char *a, const char *b, int32_t optimizer,
                                       char **json);

/* Writes the mean of n weights of one model to the new file `to`, which ends in .safetensors: of each tensor
 * of floats, summed in f64; counters are those of the first. Notes of the file, as the names of classes, are
 * those of the first. "statistics": some are running statistics, as those of batch_norm, whose mean is not
 * the statistics of the mean weights. TN_EINVAL: the tensors differ in name, shape or type, or `to` exists.
 */
TN_EXPORT tn_status tn_average_tensors(tn_context *context, const char *const *paths, int32_t n,
                                       const char *to, char **json);

/* Options of tn_convert_tensors. */
typedef struct tn_convert_options {
  uint32_t struct_size;
  int32_t dtype; /* of all floats in the new file: TN_F16, TN_BF16, TN_F32 or TN_F64; TN_ANY: as they are */
  int32_t optimizer; /* 1: optimizer state is written as well */
} tn_convert_options;
/* Writes the weights `from` to the new file `to`, if that ends in .safetensors, and else to a new folder of
 * .npy files. Rounds to nearest, ties to even. Nothing is overwritten. options may be NULL. TN_EINVAL: `to`
 * exists, or a finite element is too large for the dtype; TN_EUNSUPPORTED: .npy has no bf16, or `from` has a
 * type without a Tenon type. */
TN_EXPORT tn_status tn_convert_tensors(tn_context *context, const char *from, const char *to,
                                       const tn_convert_options *options, char **json);

/* Writes the new file `to`: the base of a run with [adapt], with its adapters merged, W + s B A, and with the
 * parameters that it trained in full. Names, dtypes and order of dimensions are those of the base. `from` is
 * a run folder or a checkpoint's folder, whose file names the base. Nothing is overwritten. TN_EINVAL: `from`
 * holds no adapters, `to` exists, or the base is of another model; TN_EIO: the base is not there. */
TN_EXPORT tn_status tn_merge_adapters(tn_context *context, const char *from, const char *to, char **json);

TN_END_C
#endif
