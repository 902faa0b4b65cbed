/* core/plugin/habits.c: what items of other frameworks are called here. The table serves messages alone; a
 * name in it that an installed plugin takes is that plugin's. */
#include "core/plugin/habits.h"

#include <ctype.h>
#include <string.h>

#include "tenon/plugin/plugin.h"

static const tn_habit habits[] = {
    {TN_LAYER, "linear", "linear", "linear(10), with the size of the result alone"},
    {TN_LAYER, "dense", "linear", "linear(10)"},
    {TN_LAYER, "lazylinear", "linear", "linear(10)"},
    {TN_LAYER, "conv2d", "conv2d", "conv2d(64, kernel=3, padding=1), with the channels of the result alone"},
    {TN_LAYER, "batchnorm1d", "batch_norm", "batch_norm"},
    {TN_LAYER, "batchnorm2d", "batch_norm", "batch_norm"},
    {TN_LAYER, "batchnormalization", "batch_norm", "batch_norm"},
    {TN_LAYER, "layernorm", "layer_norm", "layer_norm"},
    {TN_LAYER, "layernormalization", "layer_norm", "layer_norm"},
    {TN_LAYER, "maxpool2d", "max_pool", "max_pool(2)"},
    {TN_LAYER, "maxpooling2d", "max_pool", "max_pool(2)"},
    {TN_LAYER, "avgpool2d", "avg_pool", "avg_pool(2)"},
    {TN_LAYER, "averagepooling2d", "avg_pool", "avg_pool(2)"},
    {TN_LAYER, "adaptiveavgpool2d", "global_avg_pool", "global_avg_pool, which flattens, too"},
    {TN_LAYER, "globalaveragepooling2d", "global_avg_pool", "global_avg_pool"},
    {TN_LAYER, "dropout2d", "dropout", "dropout(0.5)"},
    {TN_LAYER, "relu", "relu", "relu"},
    {TN_LAYER, "leakyrelu", "leaky_relu", "leaky_relu(0.01)"},
    {TN_LAYER, "gelu", "gelu", "gelu"},
    {TN_LAYER, "silu", "silu", "silu"},
    {TN_LAYER, "swish", "silu", "silu"},
    {TN_LAYER, "flatten", "flatten", "flatten"},
    {TN_LAYER, "sigmoid", "sigmoid", "sigmoid"},
    {TN_LAYER, "tanh", "tanh", "tanh"},
    {TN_LAYER, "softmax", "softmax", "softmax"},
    {TN_LAYER, "logsoftmax", "log_softmax", "log_softmax"},
    {TN_LAYER, "dropout", "dropout", "dropout(0.5)"},
    {TN_LAYER, "embedding", "embedding", "embedding(rows=1000, width=64)"},
    {TN_LAYER, "identity", "identity", "identity"},
    {TN_LAYER, "view", "flatten", "flatten, or reshape"},
    {TN_LAYER, "unflatten", "reshape", "reshape"},
    {TN_LAYER, "cat", "concat", "concat <- a, b"},
    {TN_LAYER, "residual", "add", "add <- a, b"},
    {TN_LAYER, "chunk", "split", "split"},
    {TN_LAYER, "multiheadattention", "attention", "attention; docs/examples/gpt_char.ini has a whole block"},
    {TN_LAYER, "scaleddotproductattention", "attention", "attention"},
    {TN_LAYER, "positionalembedding", "positions", "positions"},
    {TN_LAYER, "sequential", "identity",
     "the layers themselves, one a line, or a [block NAME] section for them"},
    {TN_LAYER, "modulelist", "identity", "the layers themselves, one a line, or `name: block(...) * 4`"},
    {TN_LAYER, "crossentropyloss", "cross_entropy", "cross_entropy"},
    {TN_LAYER, "crossentropy", "cross_entropy", "cross_entropy"},
    {TN_LAYER, "categoricalcrossentropy", "cross_entropy", "cross_entropy"},
    {TN_LAYER, "sparsecategoricalcrossentropy", "cross_entropy", "cross_entropy"},
    {TN_LAYER, "nllloss", "cross_entropy",
     "cross_entropy without log_softmax in the model, since it has one"},
    {TN_LAYER, "mseloss", "mse", "mse"},
    {TN_LAYER, "meansquarederror", "mse", "mse"},
    {TN_LAYER, "acc", "accuracy", "accuracy"},
    {TN_LAYER, "top5", "top_k", "top_k(5)"},
    {TN_OPTIMIZER, "adam", "adamw", "type = adamw with weight_decay = 0, which is Adam"},
    {TN_OPTIMIZER, "adamw", "adamw", "type = adamw"},
    {TN_OPTIMIZER, "sgd", "sgd", "type = sgd"},
    {TN_OPTIMIZER, "momentum", "sgd", "type = sgd and momentum = 0.9"},
    {TN_SCHEDULE, "steplr", "step", "type = step"},
    {TN_SCHEDULE, "multisteplr", "step", "type = step"},
    {TN_SCHEDULE, "cosineannealinglr", "cosine", "type = cosine"},
    {TN_SCHEDULE, "cosineannealing", "cosine", "type = cosine"},
    {TN_SCHEDULE, "constantlr", "constant", "type = constant"},
    {TN_SCHEDULE, "none", "constant", "type = constant, or no [schedule] section"},
    {TN_SOURCE, "imagefolder", "image_folder", "source = image_folder"},
    {TN_SOURCE, "mnist", "idx", "source = idx; docs/examples/mnist_lenet.ini reads MNIST"},
    {TN_SOURCE, "fashionmnist", "idx", "source = idx, as docs/examples/mnist_lenet.ini does for MNIST"},
    {TN_SOURCE, "folder", "image_folder", "source = image_folder"},
    {TN_SOURCE, "images", "image_folder", "source = image_folder"},
    {TN_TRANSFORM, "totensor", "to_float", "to_float"},
    {TN_TRANSFORM, "toimage", "to_float", "to_float"},
    {TN_TRANSFORM, "rescale", "to_float", "to_float"},
    {TN_TRANSFORM, "randomhorizontalflip", "random_flip", "random_flip(0.5)"},
    {TN_TRANSFORM, "horizontalflip", "random_flip", "random_flip(0.5)"},
    {TN_TRANSFORM, "flip", "random_flip", "random_flip(0.5)"},
    {TN_PRECISION, "amp", "bf16", "policy = bf16 or fp16"},
    {TN_PRECISION, "mixed", "bf16", "policy = bf16 or fp16"},
    {TN_PRECISION, "float32", "fp32", "policy = fp32"},
    {TN_PRECISION, "f32", "fp32", "policy = fp32"},
    {TN_PRECISION, "float16", "fp16", "policy = fp16"},
    {TN_PRECISION, "f16", "fp16", "policy = fp16"},
    {TN_PRECISION, "bfloat16", "bf16", "policy = bf16"},
    {TN_BACKEND, "gpu", NULL,
     "`tenon doctor` lists the backends of this machine; use = auto takes the fastest"},
};

const tn_habit *tn_habit_find(uint32_t kind, const char *name) {
  const char *dot = strrchr(name, '.');
  char plain[64];
  size_t n = 0;
  for (const char *c = dot != NULL ? dot + 1 : name; *c != '\0' && n < sizeof plain - 1; c++)
    if (*c != '_') plain[n++] = (char)tolower((unsigned char)*c);
  plain[n] = '\0';
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
    if (habits[i].kind == kind && strcmp(habits[i].foreign, plain) == 0) return &habits[i];
  return NULL;
}
