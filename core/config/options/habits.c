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
                                      {"learning_rate", "lr"},
                                      {"batch_size", "batch"},
                                      {"num_epochs", "epochs"},
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

static const option_pair elsewhere[] = {{"betas", "write beta1 = 0.9 and beta2 = 0.999 with type = adamw"},
                                        {"amsgrad", "there is no AMSGrad"},
                                        {"padding_mode", "padding is with zeros"},
                                        {"epochs", "write it into [run]"},
                                        {"seed", "write it into [run]"},
                                        {"threads", "write it into [run]"},
                                        {"lr", "write it into [optimizer]"},
                                        {"learning_rate", "write lr into [optimizer]"},
                                        {"batch", "write it into [data]"},
                                        {"batch_size", "write batch into [data]"},
                                        {"workers", "write it into [data]"},
                                        {"num_workers", "write workers into [data]"},
                                        {"device", "write use into [backend]"},
                                        {"amp", "write policy = bf16 or fp16 into [precision]"},
                                        {"precision", "write policy into [precision]"},
                                        {"optimizer", "write type into [optimizer]"},
                                        {"scheduler", "write type into [schedule]"},
                                        {"max_lr", "it is lr in [optimizer]"},
                                        {"loss", "write it into [model]"}};

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

const char *tn_option_needless(const char *foreign) {
  return habit_in(needless, sizeof needless / sizeof *needless, foreign);
}

const char *tn_option_elsewhere(const char *foreign) {
  return habit_in(elsewhere, sizeof elsewhere / sizeof *elsewhere, foreign);
}
