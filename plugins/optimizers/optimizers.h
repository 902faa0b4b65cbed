/* plugins/optimizers/optimizers.h: an optimizer is an entry OPTIMIZER: its name, its source, its options, its
 * states and its formula (tenon/plugin/optimizer.h). */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/optimizer.h"

/* Option i is v[i]; option i that is yes or no, flag[i]. */
typedef struct optimizer_options {
  double v[12];
  int32_t flag[3];
} optimizer_options;

#define OPTIMIZER(name, doc, options, ...)                                                                   \
  const tn_optimizer optimizer_##name = {.item = {(uint32_t)sizeof(tn_optimizer), TN_OPTIMIZER, #name, doc,  \
                                                  options, (uint32_t)sizeof(tn_option),                      \
                                                  (uint32_t)sizeof(optimizer_options)},                      \
                                         __VA_ARGS__}

#define OPTIONS(...)                                                                                         \
  (const tn_option[]) { __VA_ARGS__, TN_OPT_END }
#define STATES(...)                                                                                          \
  .states = (const tn_optimizer_state[]) {                                                                   \
    __VA_ARGS__, { NULL }                                                                                    \
  }

#define POSITIVE(name)                                                                                       \
  { name, .values = TN_VALUES_POSITIVE }
#define EXACT(name)                                                                                          \
  { name, .values = TN_VALUES_EXACT }

#define OPTION_NUMBER(i, name, flags, default_text, range, doc)                                              \
  {                                                                                                          \
    name, TN_OPT_FLOAT, flags, (uint32_t)offsetof(optimizer_options, v[i]), (uint32_t)sizeof(double),        \
        default_text, range, doc                                                                             \
  }
#define NUMBER(i, name, default_text, range, doc) OPTION_NUMBER(i, name, 0, default_text, range, doc)
#define SCHEDULED(i, name, default_text, range, doc)                                                         \
  OPTION_NUMBER(i, name, TN_OPT_SCHEDULED, default_text, range, doc)
/* A number, and a value where it has a schedule. */
#define SCHEDULABLE(i, name, default_text, range, doc)                                                       \
  OPTION_NUMBER(i, name, TN_OPT_SCHEDULABLE, default_text, range, doc)
#define FLAG(i, name, default_text, doc)                                                                     \
  {                                                                                                          \
    name, TN_OPT_FLAG, 0, (uint32_t)offsetof(optimizer_options, flag[i]), (uint32_t)sizeof(int32_t),         \
        default_text, NULL, doc                                                                              \
  }

/* Options that most optimizers have: the values 0 and 1. */
#define LR(default_text) SCHEDULED(0, "lr", default_text, ">= 0", "learning rate")
#define L2_DECAY(default_text)                                                                               \
  SCHEDULED(1, "weight_decay", default_text, ">= 0", "L2 penalty added to the gradient")
#define DECOUPLED_DECAY(default_text)                                                                        \
  SCHEDULED(1, "weight_decay", default_text, ">= 0", "decoupled weight decay")

/* Statements that begin formulas: the gradient g with the penalty, or the decayed parameter. */
#define PENALIZED "g = grad + param * weight_decay; kept = param; "
#define DECAYED   "kept = param * (1 - lr * weight_decay); "

/* momentum.c: refuses nesterov without momentum or with dampening, and dampening without momentum. */
tn_status momentum_check(const tn_env *env, double momentum, double dampening, bool nesterov);

/* A step of g by options momentum, dampening and nesterov. The buffer is the gradient itself after the first
 * update, which has no dampening. */
#define MOMENTUM_STEP                                                                                        \
  "share = g * (1 if updates <= 1 else 1 - dampening) if dampening else g;"                                  \
  "next_buffer = buffer * momentum + share;"                                                                 \
  "ahead = g + next_buffer * momentum if nesterov else next_buffer;"                                         \
  "move = (ahead if momentum > 0 else g) * lr"

/* The moments of g and their corrections: without them the first means would be too near 0. */
#define MEAN(g) "next_exp_avg = beta1 * exp_avg + (1 - beta1) * " g "; bias1 = 1 - beta1 ^ updates; "
#define MEAN_SQUARE(g)                                                                                       \
  "next_exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (" g " * " g "); bias2 = 1 - beta2 ^ updates; "
