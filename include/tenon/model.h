/* tenon/model.h: a model written in C: a function that emits it with the calls of build.h and ops.h, instead
 * of the section [model] of a configuration. Runs and sessions (run.h, session.h) work as with a
 * configuration file.
 *
 *     static tn_status classifier(tn_build *b, void *user) {
 *       tn_val x = tn_model_input(b, "x", &(tn_type){TN_F32, 1, {64}});
 *       x = tn_build_layer(b, "fc1", "linear(128)", &x, 1);
 *       x = tn_build_layer(b, "", "relu", &x, 1);
 *       x = tn_build_layer(b, "fc2", "linear(10)", &x, 1);
 *       tn_model_output(b, "output", x);
 *       if (tn_model_measured(b)) {
 *         tn_val label = tn_model_target(b, "label", &(tn_type){TN_I32, 0, {0}});
 *         tn_model_loss(b, "cross_entropy", (tn_val[]){x, label}, 2);
 *         tn_model_metric(b, "accuracy", (tn_val[]){x, label}, 2);
 *       }
 *       return tn_build_status(b);
 *     }
 *
 * The function is called once for each program (training step, evaluation, inference) and emits the same
 * parameters each time. Threads: it is called from within the run or session function that compiles, one call
 * at a time; with several training devices, from the thread of each. Errors stay in the builder until the
 * function returns; the run or session function fails with their text after "model:". */
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include "tenon/build.h"
#include "tenon/run.h"

TN_BEGIN_C

/* Emits a model. A code other than TN_OK makes the compilation fail with it. */
typedef tn_status (*tn_model_fn)(tn_build *b, void *user);

/* A run whose model is a function. `settings` is the rest of a configuration, INI text with the same
 * sections and keys ("[optimizer]\ntype = sgd\nlr = 0.1\n"), in which relative paths start at the current
 * folder; NULL: none. options->set overrides single keys, "optimizer.lr=0.1". `user` is passed to `emit` and
 * stays valid until the run is closed. Otherwise like tn_run_open. */
TN_EXPORT tn_status tn_run_open_model(tn_context *context, tn_model_fn emit, void *user, const char *settings,
                                      const tn_run_options *options, tn_run **run);

/* ---- inside the function ------------------------------------------------------------------------
 * The name given to tn_build_layer begins the paths of its parameters: "fc1" has fc1.weight and fc1.bias;
 * layers without parameters take "". Blocks of `settings` ([block NAME]) are layers as well. tn_build_param
 * and tn_build_state make parameters of the model itself. */

/* An input field by name. `type` is that of one sample; the value has the batch as its first dimension. A
 * second call with the same name returns the same value. */
TN_EXPORT tn_val tn_model_input(tn_build *b, const char *name, const tn_type *type);
/* The same for a field that losses and metrics compare with. Only where tn_model_measured is 1. */
TN_EXPORT tn_val tn_model_target(tn_build *b, const char *name, const tn_type *type);

/* An output of the model. One of them is named "output". */
TN_EXPORT void tn_model_output(tn_build *b, const char *name, tn_val value);

/* 1 while a program with losses and metrics is built (training, evaluation), 0 for inference. */
TN_EXPORT int32_t tn_model_measured(tn_build *b);

/* A loss or metric on n inputs, as a line of [model] loss or metrics without `<-`: "cross_entropy",
 * "aux: mse(weight=0.3)". Training minimizes the sum of the losses, each the weighted mean over its elements
 * times its `weight`. No effect where tn_model_measured is 0. */
TN_EXPORT void tn_model_loss(tn_build *b, const char *line, const tn_val *in, int32_t n);
TN_EXPORT void tn_model_metric(tn_build *b, const char *line, const tn_val *in, int32_t n);
/* A loss that the function has computed: `value` for each element, the batch as first dimension; `weight` for
 * each element, or 0 for ones; `factor` scales it in the total. */
TN_EXPORT void tn_model_loss_value(tn_build *b, const char *name, tn_val value, tn_val weight, double factor);

TN_END_C
#endif
