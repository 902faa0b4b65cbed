/* tests/unit/model/rig.h: models of made-up layers, small enough that their graphs can be read.
 *
 *   scale(by=1, weight)  x * gain * by; a parameter `gain` of x's last dimension
 *   twice                two outputs: x + 1 and x + 2
 *   sum                  any number of inputs, added
 *   pair                 two `scale` by tn_build_layer, called first and second
 *   cross                the second output of `twice` by tn_build_layer
 *   gap, hits            a loss and a metric: x - target, weighted by 2; x == target, unweighted
 *   broken               yields nothing
 *   own                  no input: a parameter of 3, which has the path of the layer */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/model/model.h"

int rig_open(void **state);
int rig_close(void **state);

/* Builds [model] and blocks from INI text with a batch of 2. The result lives until the next call. */
const tn_graph *rig_build(const char *ini);          /* the layers alone, as for prediction */
const tn_model *rig_build_measured(const char *ini); /* training, with losses and metrics */

/* The statements of the layers' graph, without inputs, state, outputs and what targets need:
 * "%5 = affine(x, scale=1, shift=1) in a; ..." */
void rig_expect_graph(const char *ini, const char *text);
/* The same of the graph with losses and metrics. */
void rig_expect_measured(const char *ini, const char *text);
/* The only statements of an initializer's graph, for stream 1. */
void rig_expect_initializer(const char *init, const tn_type *type, const char *text);
void rig_expect_initializer_error(const char *init, const char *text);
/* Paths of all states in the order in which they were asked for: "a.gain b.gain". */
void rig_expect_states(const char *ini, const char *paths);
/* The build must fail with this text; rig_expect_error: with TN_EINVAL. */
void rig_expect_failure(tn_status want, const char *ini, const char *text);
void rig_expect_error(const char *ini, const char *text);
/* The model's layers, of a [model] whose input is x: f32[3]. */
#define LAYERS(lines) "[model]\ninputs = x: f32[3]\nlayers =\n" lines
