/* tenon/plugin/layer.h: a layer: parameters, state and ops emitted from one line of a model. Losses and
 * metrics are layers with two outputs, value and weight, one of each for every element, not reduced; the host
 * computes sum(value * weight) / sum(weight) over elements, micro-batches and ranks. The weight depends on
 * targets only.
 *
 * Life cycle: build is a pure function, called on the compiling thread once for each program (training,
 * evaluation, prediction) and each use. tn_build_training(b) is 1 in the training program. */
#ifndef TENON_PLUGIN_LAYER_H
#define TENON_PLUGIN_LAYER_H

#include "tenon/ops.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum { TN_LAYER_PLAIN = 0, TN_LAYER_LOSS = 1, TN_LAYER_METRIC = 2 };
/* A metric is that mean itself, e to its power, or its square root. */
enum { TN_OF_MEAN_ITSELF = 0, TN_OF_MEAN_EXP = 1, TN_OF_MEAN_ROOT = 2 };

typedef struct tn_layer_kind {
  tn_item item;
  uint32_t role;
  int32_t min_in, max_in; /* number of inputs; max_in -1: no limit. Losses: values, then targets */
  /* Emits the layer with tn_build_in, tn_build_param, tn_build_state, ops and tn_build_yield. Errors of the
   * builder need no check; the host reports them with the layer's line. Other errors: return tn_fail(...). */
  tn_status (*build)(tn_build *b, const void *options);
  /* Metrics: TN_OF_MEAN_...; it is applied once, to the mean over a whole pass. */
  uint32_t of_mean;
  int32_t falls; /* metrics: 1: better when small, as losses are */
  /* For `tenon inspect` and the reference. types: shapes of inputs and outputs in one line, "(N, C, H, W) to
   * (N, C)", N being the batch. example: lines of [model] with a use. NULL: none. */
  const char *types, *example;
  /* Metrics that are no mean of elements, such as F1: build yields one output, the statistics of each sample,
   * (N, ...). The host sums them over the samples of a whole pass, in f64, and calls of_sums with the sums,
   * which have the type `row`, the output's without N. NULL: the metric is a mean. */
  double (*of_sums)(const double *sums, const tn_type *row);
  /* Metrics of the order of all samples, such as AUROC: build yields one output, a row for each sample, (N,
   * ...). The host keeps the rows of a whole pass and calls of_rows with n of them, of the type `row`. Each
   * is followed by a number of the host's, so a row begins tn_type_count(row) + 1 numbers behind the one
   * before. Such a metric is measured in validation and evaluation, not in training. NULL: the metric is
   * another. */
  tn_status (*of_rows)(const void *handle, const float *rows, int64_t n, const tn_type *row, double *value);
  /* In place of build, for elements that are independent: text in the language of ops' formulas
   * (tenon/plugin/op.h) that defines y, output 0, and weight, output 1, where elements differ. It names the
   * inputs as `inputs` does, "x target", and options that are numbers. All inputs have the shape of the first
   * one, and are cast to its dtype; one that is absent is 0. NULL: build. */
  const char *formula, *inputs;
} tn_layer_kind;

TN_END_C
#endif
