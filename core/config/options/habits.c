/* core/config/options/habits.c: what options of other frameworks are called here. The tables serve messages
 * alone. */
#include "core/config/options/habits.h"

#include <string.h>

typedef struct option_pair {
  const char *foreign, *own;
} option_pair;

static const option_pair renamed[] = {{"kernel_size", "kernel"},
                                      {"filters", "channels"},
                                      {"out_channels", "channels"},
                                      {"out_features", "units"},
                                      {"num_embeddings", "rows"},
                                      {"vocab_size", "rows"},
                                      {"embedding_dim", "width"},
                                      {"rate", "p"},
                                      {"eps", "epsilon"},
                                      {"use_bias", "bias"},
                                      {"negative_slope", "slope"},
                                      {"ceil_mode", "ceil"},
                                      {"count_include_pad", "include_pad"},
                                      {"smoothing", "label_smoothing"},
                                      {"ignore_index", "ignore"},
                                      {"elementwise_affine", "affine"},
                                      {"dim", "axis"},
                                      {"dim", "axes"},
                                      {"keepdim", "keep"},
                                      {"keepdims", "keep"},
                                      {"learning_rate", "lr"},
                                      {"batch_size", "batch"},
                                      {"num_epochs", "epochs"},
                                      {"limit_train_batches", "limit_train"},
                                      {"limit_val_batches", "limit_valid"},
                                      {"limit_val", "limit_valid"},
                                      {"overfit_batches", "overfit"},
                                      {"early_stopping_patience", "patience"},
                                      {"early_stopping_rounds", "patience"},
                                      {"gradient_clip_val", "clip"},
                                      {"accumulate_grad_batches", "accumulate"},
                                      {"train_batch_size", "batch"},
                                      {"lr_scheduler", "type"},
                                      {"accelerator", "use"},
                                      {"class_balance", "balance"},
                                      {"damaged", "corrupt"},
                                      {"handler", "corrupt"},
                                      {"level", "tokenizer"},
                                      {"max_epochs", "epochs"},
                                      {"num_workers", "workers"},
                                      {"step_size", "every_epochs"},
                                      {"t_max", "steps"},
                                      {"T_max", "steps"},
                                      {"total_steps", "steps"},
                                      {"total_iters", "steps"},
                                      {"T_0", "t_0"},
                                      {"T_mult", "t_mult"},
                                      {"anneal_strategy", "anneal"},
                                      {"factor", "gamma"},
                                      {"min_lr", "floor"},
                                      {"monitor", "metric"},
                                      {"eta_min", "floor"},
                                      {"warmup_steps", "warmup"},
                                      {"warmup_epochs", "warmup"},
                                      {"warmup_t", "warmup"},
                                      {"warmup_factor", "warmup_start"},
                                      {"warmup_lr_init", "warmup_start"},
                                      {"cycle_mul", "t_mult"},
                                      {"cycle_decay", "decay"},
                                      {"cycle_limit", "cycles"},
                                      {"max_norm", "clip"},
                                      {"grad_clip", "clip"},
                                      {"gradient_clip", "clip"},
                                      {"clip_norm", "clip"},
                                      {"clipnorm", "clip"},
                                      {"clipvalue", "clip_value"},
                                      {"grad_clip_value", "clip_value"},
                                      {"max_value", "clip_value"},
                                      {"gradient_accumulation_steps", "accumulate"},
                                      {"accumulation_steps", "accumulate"},
                                      {"prefetch_factor", "prefetch"},
                                      {"random_seed", "seed"},
                                      {"criterion", "loss"},
                                      {"checkpoint", "file"},
                                      {"optimizer", "type"},
                                      {"scheduler", "type"},
                                      {"name", "type"},
                                      {"dataset", "source"},
                                      {"dtype", "policy"},
                                      {"device", "use"}};

static const option_pair needless[] = {{"in_features", "the size of the input is known"},
                                       {"in_channels", "the channels of the input are known"},
                                       {"num_features", "the channels of the input are known"},
                                       {"normalized_shape", "the size of the input is known"},
                                       {"input_dim", "the size of the input is known"},
                                       {"input_shape", "the shape of the input is known"},
                                       {"inplace", "memory is reused where it can be"},
                                       {"pin_memory", "batches are staged where it pays"},
                                       {"track_running_stats", "running statistics are always kept"}};

#define OWN_SCHEDULE "the momentum has a schedule of its own, [schedule.momentum] with toward = VALUE"
#define FIND_LR      "`tenon find-lr FILE.ini` looks for a learning rate"
static const option_pair elsewhere[] = {
    {"betas", "write beta1 = 0.9 and beta2 = 0.999 with type = adamw"},
    {"amsgrad", "there is no AMSGrad"},
    {"device", "write use into [backend]"},
    {"lr", "write it into [optimizer]"},
    {"learning_rate", "write lr into [optimizer]"},
    {"early_stopping", "write patience = EPOCHS into [run]"},
    {"gradient_clip_algorithm", "write clip for the norm, or clip_value, into [optimizer]"},
    {"sampler", "write balance = yes into [data], which draws every class "
                "equally often; source = table has weight = COLUMN"},
    {"find_lr", FIND_LR},
    {"lr_find", FIND_LR},
    {"auto_lr_find", FIND_LR},
    {"amp", "write policy = bf16 or fp16 into [precision]"},
    {"precision", "write policy into [precision]"},
    {"optimizer", "write type into [optimizer]"},
    {"scheduler", "write type into [schedule]"},
    {"lr_scheduler", "write type into [schedule]"},
    {"let", "write a line such as `head = width // heads` into layers"},
    {"cycle_momentum", OWN_SCHEDULE},
    {"base_momentum", OWN_SCHEDULE},
    {"max_momentum", OWN_SCHEDULE},
    {"max_lr", "it is lr in [optimizer]"}};

/* Sections of other configuration files. */
static const option_pair sections[] = {
    {"trainer", "run"},           {"training", "run"},    {"train", "run"},
    {"dataset", "data"},          {"dataloader", "data"}, {"scheduler", "schedule"},
    {"lr_scheduler", "schedule"}, {"network", "model"},   {"net", "model"}};

/* Names that say too little to belong to one section. */
static const char *const common[] = {"name", "type", "file", "use", "match"};

static const char *habit_in(const option_pair *pairs, size_t n, const char *foreign) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(pairs[i].foreign, foreign) == 0) return pairs[i].own;
  return NULL;
}

const char *tn_option_habit(const char *foreign, const char *const *names, size_t n) {
  for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
    if (strcmp(renamed[i].foreign, foreign) != 0) continue;
    for (size_t k = 0; k < n; k++)
      if (strcmp(names[k], renamed[i].own) == 0) return names[k];
  }
  return NULL;
}

const char *tn_option_home(const char *name, const tn_item *const *tables, const char **section) {
  for (size_t i = 0; i < sizeof common / sizeof *common; i++)
    if (strcmp(common[i], name) == 0) return NULL;
  for (; tables != NULL && *tables != NULL; tables++) {
    const tn_option *option = tn_options_find(*tables, name);
    for (size_t i = 0; option == NULL && i < sizeof renamed / sizeof *renamed; i++)
      if (strcmp(renamed[i].foreign, name) == 0) option = tn_options_find(*tables, renamed[i].own);
    *section = (*tables)->name;
    if (option != NULL) return option->name;
  }
  return NULL;
}

const char *tn_section_habit(const char *foreign) {
  return habit_in(sections, sizeof sections / sizeof *sections, foreign);
}

const char *tn_option_needless(const char *foreign) {
  return habit_in(needless, sizeof needless / sizeof *needless, foreign);
}

const char *tn_option_elsewhere(const char *foreign) {
  return habit_in(elsewhere, sizeof elsewhere / sizeof *elsewhere, foreign);
}
