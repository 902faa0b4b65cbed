/* tenon/export.h: trained models as files of other programs. */
#ifndef TENON_EXPORT_H
#define TENON_EXPORT_H

#include "tenon/run.h"

TN_BEGIN_C

/* Preprocessing of the inputs, the transforms of [data.valid]: as metadata of the file, whose inputs are
 * those of the model; or as nodes, so that the inputs are what the source gives, behind transforms that have
 * no form as ops. NODES opens the data of validation. */
enum { TN_PREPROCESS_METADATA = 0, TN_PREPROCESS_NODES = 1 };

typedef struct tn_export_options {
  uint32_t struct_size;
  int32_t opset;      /* 13 to 23; 0: 17 */
  int32_t fold;       /* 1: batch norm becomes part of the convolution in front of it */
  int32_t external;   /* 1: weights in FILE.data beside the file; above 2 GB they always are there */
  int32_t precision;  /* dtype of the weights in the file: TN_F32, TN_F16 or TN_BF16; 0: TN_F32 */
  int32_t preprocess; /* TN_PREPROCESS_... */
} tn_export_options;

/* Writes the model for inference as a file of ONNX (https://onnx.ai), with the weights that tn_run_predict
 * takes. Inputs, outputs and weights keep their names. The first dimension of the inputs is the batch, of any
 * size, with the name `batch`; a dimension of [model] lengths has the longest one. Names of classes, units of
 * targets, loss, targets, source and transforms of [data.valid] are in metadata_props, as tenon.classes and
 * so on.
 *
 * *json is {"file", "nodes", "weights", "bytes", "external"}; the caller frees it with tn_string_free.
 * options may be NULL. Nothing is overwritten, and after a failure nothing is left. TN_EUNSUPPORTED: the
 * message lists the ops that ONNX, or this opset, cannot express, each with its number and reason. TN_EINVAL:
 * an option is wrong, there are no weights, or the file exists. TN_EIO: it cannot be written. */
TN_EXPORT tn_status tn_run_export_onnx(tn_run *run, const char *path, const tn_export_options *options,
                                       char **json);

typedef struct tn_export_c_options {
  uint32_t struct_size;
  int64_t batch; /* samples of a call of the program; 0: 1 */
} tn_export_c_options;

/* Writes the model for inference as a program in C11 with no dependency but libm: FOLDER/NAME.h, NAME.c and
 * NAME.weights, where NAME is the run's name, with characters other than letters, digits and _ as _. The
 * header declares NAME_run and the sizes of the memory that the caller gives it: the bytes of the weights,
 * and an arena. All numbers are f32, and the batch is fixed.
 *
 * *json is {"folder", "name", "steps", "arena_bytes", "weight_bytes"}. options may be NULL. Nothing is
 * overwritten. TN_EUNSUPPORTED: the message lists the ops that have no text, with their number. TN_EINVAL and
 * TN_EIO as above. */
TN_EXPORT tn_status tn_run_export_c(tn_run *run, const char *folder, const tn_export_c_options *options,
                                    char **json);

TN_END_C
#endif
