/* tenon/model.h: a model written in C: a function that emits it with the calls of build.h and ops.h, and
 * with tn_build_layer. What a configuration says in [model] is said here; everything else about the run is
 * the same, and tenon/run.h and tenon/session.h take it from there.
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
 * The function is called once for each program (the training step, evaluation, inference; tn_build_training
 * says which kind) and must emit the same parameters each time. Calls come from inside the run or session
 * function that needs the programs, one after the other; where several devices train, from their threads.
 * Errors stick in the builder, so nothing needs to be checked in between; they come back from that function
 * with "model:" in front. */
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include "tenon/build.h"
#include "tenon/run.h"

TN_BEGIN_C

/* Emits a model; what it returns ends the building where it is not TN_OK. */
typedef tn_status (*tn_model_fn)(tn_build *b, void *user);

/* A run whose model is a function. `settings` is the rest of a configuration, INI text with the same
 * sections and keys ("[optimizer]\ntype = sgd\nlr = 0.1\n"), in which relative paths start at the current
 * folder; NULL: none. Single keys can be given by options->set, "optimizer.lr=0.1". `user` is passed on and
 * must stay valid until the run is closed. Otherwise like tn_run_open. */
TN_EXPORT tn_status tn_run_open_model(tn_context *context, tn_model_fn emit, void *user, const char *settings,
                                      const tn_run_options *options, tn_run **run);

/* ---- inside the function ------------------------------------------------------------------------
 * tn_build_layer's names become paths of parameters: "fc1" gives fc1.weight and fc1.bias. "" is for layers
 * without parameters. Blocks of `settings` ([block NAME]) are layers as well. tn_build_param and
 * tn_build_state make parameters of the model's own. */

/* A field that the model takes, by name: `type` is that of a sample; the value has the batch in front. Asked
 * for again, it is the same value. */
TN_EXPORT tn_val tn_model_input(tn_build *b, const char *name, const tn_type *type);
/* The same for what losses and metrics compare with. Only while tn_model_measured. */
TN_EXPORT tn_val tn_model_target(tn_build *b, const char *name, const tn_type *type);

/* What the model computes. One is called "output"; others get names of their own. */
TN_EXPORT void tn_model_output(tn_build *b, const char *name, tn_val value);

/* 1 while a program with losses and metrics is built (training, evaluation), 0 for inference. */
TN_EXPORT int32_t tn_model_measured(tn_build *b);

/* A loss or metric as a line of [model] loss or metrics says it, without `<-`: "cross_entropy",
 * "aux: mse(weight=0.3)"; the inputs are given. Training minimizes the sum of the losses, each the weighted
 * mean over its elements, times its `weight`. Ignored where not tn_model_measured. */
TN_EXPORT void tn_model_loss(tn_build *b, const char *line, const tn_val *in, int32_t n);
TN_EXPORT void tn_model_metric(tn_build *b, const char *line, const tn_val *in, int32_t n);
/* A loss that the function computes itself: `value` per element, the batch in front, and `weight` per
 * element, or 0 for ones; `factor` scales it in the total. */
TN_EXPORT void tn_model_loss_value(tn_build *b, const char *name, tn_val value, tn_val weight, double factor);

TN_END_C
#endif
