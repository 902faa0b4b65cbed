/* tools/init/resnet.c: the configuration that fine-tunes a ResNet of torchvision on a folder of pictures. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tenon/folders.h"
#include "tools/init/init.h"

enum { SIDE = 224 };

/* ---- what the file holds ---- */

/* Counts "layer3.1.conv1.weight" as block 1 of stage 3. Returns the name behind the block, or NULL. */
static const char *resnet_read_name(const char *name, resnet_shape *shape) {
  int stage, block, end = 0;
  if (sscanf(name, "layer%d.%d.%n", &stage, &block, &end) < 2 || end == 0) return NULL;
  if (stage < 1 || stage > 4 || block < 0 || block > 99) return NULL;
  if (block >= shape->blocks[stage - 1]) shape->blocks[stage - 1] = block + 1;
  return name + end;
}

/* The first layer of the three sizes and variants that the layers here would give other results for, such as
 * grouped convolutions, has another shape. */
static bool resnet_has_stem(const json_t *tensor) {
  static const json_int_t expected[] = {64, 3, 7, 7};
  const json_t *dims = json_object_get(tensor, "shape");
  bool same = json_array_size(dims) == 4;
  for (size_t i = 0; same && i < 4; i++) same = json_integer_value(json_array_get(dims, i)) == expected[i];
  return same;
}

/* Of grouped and of wide variants the inner convolution has another number of channels. */
static bool resnet_has_plain_blocks(const json_t *tensor) {
  const json_t *dims = json_object_get(tensor, "shape");
  return json_integer_value(json_array_get(dims, 0)) == 64 &&
         json_integer_value(json_array_get(dims, 1)) == 64;
}

static bool resnet_read_tensors(const json_t *tensors, resnet_shape *shape) {
  size_t i;
  const json_t *tensor;
  bool stem = false, plain = false;
  json_array_foreach(tensors, i, tensor) {
    const char *name = cli_text(tensor, "path"), *inner = resnet_read_name(name, shape);
    if (strcmp(name, "conv1.weight") == 0) stem = resnet_has_stem(tensor);
    if (strcmp(name, "layer1.0.conv2.weight") == 0) plain = resnet_has_plain_blocks(tensor);
    if (inner != NULL && strcmp(inner, "conv3.weight") == 0) shape->bottleneck = true;
  }
  for (i = 0; i < 4; i++) stem = stem && shape->blocks[i] > 0;
  return stem && plain;
}

int init_survey_resnet(tn_context *context, const cli_args *args, resnet_shape *shape) {
  char *text = NULL;
  tn_status status = tn_show_tensors(context, args->weights, 0, &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *result = json_loads(text, 0, NULL);
  *shape = (resnet_shape){.file = args->weights};
  bool known = resnet_read_tensors(json_object_get(result, "tensors"), shape);
  json_decref(result);
  tn_string_free(context, text);
  if (known) return CLI_OK;
  return cli_refuse(
      args, CLI_DATA,
      "%s: is no ResNet with the names of torchvision (conv1, bn1, layer1 to layer4, fc), which is "
      "what init knows; for other models see docs/guide/fine-tuning.md",
      args->weights);
}

/* ---- writing ---- */

static const char resnet_basic[] = "[block residual]\n"
                                   "args = planes, stride=1\n"
                                   "layers =\n"
                                   "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
                                   "    bn1:   batch_norm\n"
                                   "           relu\n"
                                   "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"
                                   "    bn2:   batch_norm\n"
                                   "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no),\n"
                                   "                batch_norm <- in if stride != 1 or dim(in, 1) != planes\n"
                                   "           add <- bn2, downsample\n"
                                   "           relu\n";
static const char resnet_bottleneck[] =
    "[block residual]\n"
    "args = planes, stride=1\n"
    "layers =\n"
    "    conv1: conv2d(planes, kernel=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n"
    "           relu\n"
    "    conv3: conv2d(4*planes, kernel=1, bias=no)\n"
    "    bn3:   batch_norm\n"
    "    downsample: conv2d(4*planes, kernel=1, stride=stride, bias=no),\n"
    "                batch_norm <- in if stride != 1 or dim(in, 1) != 4*planes\n"
    "           add <- bn3, downsample\n"
    "           relu\n";

static void resnet_write_stage(FILE *to, int stage, int blocks) {
  fprintf(to, "    layer%d: residual(%d%s)", stage + 1, 64 << stage, stage > 0 ? ", stride=2" : "");
  if (blocks > 1) fprintf(to, ", residual(%d)", 64 << stage);
  if (blocks > 2) fprintf(to, " * %d", blocks - 1);
  fprintf(to, "\n");
}

static void resnet_write_model(FILE *to, const pictures *found, const resnet_shape *shape) {
  fprintf(to,
          "\n[model]\ninputs = image: f32[3, %d, %d]\nlayers =\n"
          "    conv1:  conv2d(64, kernel=7, stride=2, padding=3, bias=no)\n"
          "    bn1:    batch_norm\n            relu\n            max_pool(3, stride=2, padding=1)\n",
          SIDE, SIDE);
  for (int i = 0; i < 4; i++) resnet_write_stage(to, i, shape->blocks[i]);
  fprintf(
      to,
      "            global_avg_pool\n    fc:     linear(%lld)\nloss = cross_entropy\nmetrics = accuracy\n\n%s",
      found->train.classes, shape->bottleneck ? resnet_bottleneck : resnet_basic);
}

void init_write_resnet(const init_file *f, const pictures *found, const resnet_shape *shape, init_choice *c) {
  long long batch = init_choose_batch(found->train.count);
  *c = (init_choice){SIDE, batch < 32 ? batch : 32, 10};
  fprintf(f->to,
          "# A ResNet of torchvision for %lld classes, from %lld pictures."
          "\n[run]\nname = %s\nepochs = %lld\n\n",
          found->train.classes, found->train.count, f->name, c->epochs);
  init_write_pictures(f, found, c);
  resnet_write_model(f->to, found, shape);
  fprintf(f->to,
          "\n# fc has another number of classes here, and begins anew.\n[weights]\nfile = %s\nskip = fc.*\n"
          "\n# The other layers are frozen for two epochs, until fc has learned something; their lr is small."
          "\n[group.body]\nmatch = conv1.*, bn1.*, layer*\nfreeze = 2\nlr = 0.001\n"
          "\n[optimizer]\ntype = sgd\nlr = 0.01\nmomentum = 0.9\nweight_decay = 1e-4\n\n[schedule]\ntype = "
          "cosine\n",
          shape->path);
}
