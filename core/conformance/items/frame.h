/* core/conformance/items/frame.h: calls a layer, optimizer or policy of a plugin without a model: parameters,
 * state, options and counters are operands of a drawn use, and committed values are outputs. */
#pragma once

#include "core/conformance/cases/cases.h"
#include "core/plugin/registry.h"

enum { TN_ITEM_STATES = 24, TN_ITEM_YIELDS = 16 };

/* A parameter or state of the item. */
typedef struct tn_item_state {
  const char *name;
  tn_type type;
  tn_val value;     /* at entry */
  tn_val committed; /* 0: it is not committed */
  bool is_param;
  double initial; /* of its initializer; 0 where that is no number */
  int32_t input;  /* the drawn operand that holds it at entry; -1: it is a constant */
} tn_item_state;

/* A use of an item in a drawn graph. */
typedef struct tn_item_use {
  tn_draw *d;
  tn_registry *registry; /* for layers in layers */
  const tn_item *item;
  tn_item_state states[TN_ITEM_STATES];
  int32_t n_states;
  tn_val counter;    /* of TN_ITERATION and TN_UPDATES; 0: none was asked for */
  bool from_initial; /* states begin with their initializer, if that is a number; else they are drawn */
  const char *scope; /* names of the layers around a nested one, "fc1." */
} tn_item_use;

/* The options of an item in the draw's graph: those of d->settings for `label`, "source:idx", then the
 * defaults, and a value in its range for a required one. */
tn_status tn_item_options(tn_draw *d, const tn_item *item, const char *label, const void **options);
/* Whether d->settings has an option for `label`. */
bool tn_item_is_set(const tn_draw *d, const char *label);
/* A frame that answers the calls of the item; inputs, yields and training are the caller's to set. */
tn_build_frame tn_item_frame(tn_item_use *use);
/* Calls `build` of a layer with n inputs. The first failure sticks in the builder. */
tn_status tn_item_build_layer(tn_item_use *use, const tn_item *layer, const void *options, bool training,
                              const tn_val *in, int32_t n, tn_val yielded[TN_ITEM_YIELDS]);
/* The domain of a number option, by its range. */
tn_range tn_item_option_domain(const tn_option *option);
