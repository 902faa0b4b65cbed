/* core/conformance/items/items.h: the cases of a plugin's layers, losses, metrics, optimizers, precision
 * policies, sources and transforms. A case has the name "KIND:NAME/...": draws on the device and differences
 * in f64 like those of ops, "layer:serf/f32/3/gradient", and checks by name, "source:rings/workers". */
#pragma once

#include "core/conformance/items/frame.h"
#include "core/conformance/reference/reference.h"
#include "core/conformance/results/results.h"

/* ---- drawn uses ---- */

enum { TN_ITEM_DRAWS = 16 };

/* Which inputs of a drawn optimizer are what; numbers of inputs, or -1 where the optimizer has no such input.
 */
enum { TN_OPTIMIZER_UPDATES = 3, TN_OPTIMIZER_STATES = TN_CASE_RESULTS - 1 };
typedef struct tn_optimizer_roles {
  int32_t param, lr, gradient[TN_OPTIMIZER_UPDATES];
  /* The states, in the order of the results behind those of the updates; `initial` is the number that a state
   * begins with, and `input` its operand, or -1. */
  struct {
    const char *name;
    double initial;
    int32_t input;
  } state[TN_OPTIMIZER_STATES];
  int32_t n_states;
} tn_optimizer_roles;

typedef struct tn_item_case {
  tn_case c; /* first */
  const tn_item *item;
  tn_registry *registry;
  tn_optimizer_roles *roles; /* written by tn_optimizer_emit; NULL: not wanted */
  bool drawn_states;         /* of an optimizer: states are operands; else they have their initial values */
} tn_item_case;

tn_val tn_layer_emit(tn_draw *d, const tn_case *c);
/* One to three updates of a parameter. The results are the parameter after each, and the state. */
tn_val tn_optimizer_emit(tn_draw *d, const tn_case *c);

/* ---- on_reference.c: a drawn use on the reference alone ---- */

typedef struct tn_item_run {
  tn_draw d;
  tn_builder *builder;
  tn_reference *reference;
} tn_item_run;

/* Draws the use, with outputs "y.0" ... Failures of the item have their text in site->env. Close it in any
 * case. */
tn_status tn_item_run_draw(const tn_trial_site *site, const tn_item_case *c, int64_t draw, tn_item_run *run);
/* The same on the reference: fills the inputs and runs it once. */
tn_status tn_item_run_open(const tn_trial_site *site, const tn_item_case *c, int64_t draw, tn_item_run *run);
void tn_item_run_close(tn_item_run *run);
/* A copy of output y.i, the caller's (tn_release). */
double *tn_item_run_copy(const tn_item_run *run, int32_t i, int64_t *n);

/* ---- checks ---- */

typedef struct tn_check {
  tn_suite *suite;
  const tn_entry *entry;
  const char *item;  /* "source:rings" */
  char wrong[768];   /* "": nothing is */
  char lacking[384]; /* why it cannot be checked; "": it can */
} tn_check;

void tn_check_fail(tn_check *check, const char *format, ...) TN_PRINTF(2, 3);
/* Runs a check under the name ITEM/NAME, unless the filter leaves it out. A failed status is a failure of the
 * item, whose text is in suite->env; TN_ENOMEM ends the suite. */
tn_status tn_check_run(tn_suite *suite, const tn_entry *entry, const char *item, const char *name,
                       tn_status (*run)(tn_check *check));

/* The checks of each kind; `item` is "KIND:NAME". */
tn_status tn_layer_cases(tn_suite *suite, const tn_entry *entry, const char *item);
tn_status tn_optimizer_cases(tn_suite *suite, const tn_entry *entry, const char *item);
tn_status tn_policy_cases(tn_suite *suite, const tn_entry *entry, const char *item);
tn_status tn_source_cases(tn_suite *suite, const tn_entry *entry, const char *item);
tn_status tn_transform_cases(tn_suite *suite, const tn_entry *entry, const char *item);

/* checkpoint_case.c: an update behind a checkpoint gives the bits of one without it. */
tn_status tn_optimizer_check_checkpoint(tn_check *check);

/* ---- guarded.c: memory of the host between canaries ---- */

typedef struct tn_guarded {
  uint8_t *block; /* NULL: none */
  size_t bytes;
  uint8_t pattern;
} tn_guarded;

/* Memory of `bytes` filled with a pattern, as its surroundings are. NULL: out of memory. */
void *tn_guarded_new(const void *handle, tn_guarded *g, size_t bytes, uint8_t pattern);
uint8_t *tn_guarded_data(const tn_guarded *g);
/* Whether the surroundings are as they were. *offset: of the first changed byte, from the start of the
 * memory. */
bool tn_guarded_intact(const tn_guarded *g, int64_t *offset);
void tn_guarded_free(const void *handle, tn_guarded *g);
