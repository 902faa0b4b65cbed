/* An optimizer: Tiger (Su, 2023), the sign of the momentum. In an INI: `[optimizer] type = tiger`. */
#include <tenon/plugin/optimizer.h>

struct tiger {
  double lr, beta, weight_decay;
};
static const tn_option options[] = {
    TN_OPT_WITH(struct tiger, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "1e-3", ">= 0", "learning rate"),
    TN_OPT(struct tiger, beta, TN_OPT_FLOAT, "0.965", "[0, 1)", "share of the momentum that is kept"),
    TN_OPT_WITH(struct tiger, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0", ">= 0", "decoupled decay"),
    TN_OPT_END};
static const tn_optimizer_state states[] = {{.name = "exp_avg"}, {.name = NULL}};

static const tn_optimizer tiger = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "tiger", "the sign of the momentum", struct tiger, options),
    .granularity = TN_UPDATE_ELEMENTWISE,
    .states = states,
    .formula = "next_exp_avg = beta * exp_avg + (1 - beta) * grad;"
               "next_param = param - lr * (sign(next_exp_avg) + weight_decay * param)"};

TN_PLUGIN(tiger, "1.0", "MIT", &tiger.item)
