/* tools/init/images.c: the configuration for a folder of pictures. */
#include "tools/init/init.h"

/* The first layers, and the number of stages, for a picture's side. */
typedef struct images_stem {
  long long side;
  const char *layers;
  int stages;
} images_stem;

static const images_stem images_stems[] = {
    {32, "    conv1:  conv2d(32, kernel=3, padding=1, bias=no, init=kaiming_normal(mode=fan_out))\n", 3},
    {64,
     "    conv1:  conv2d(32, kernel=3, stride=2, padding=1, bias=no, init=kaiming_normal(mode=fan_out))\n",
     3},
    {128,
     "    conv1:  conv2d(32, kernel=7, stride=2, padding=3, bias=no, init=kaiming_normal(mode=fan_out))\n",
     4}};

static const char images_block[] =
    "[block basic]\n"
    "args = planes, stride=1\n"
    "layers =\n"
    "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no, "
    "init=kaiming_normal(mode=fan_out))\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, padding=1, bias=no, init=kaiming_normal(mode=fan_out))\n"
    "    bn2:   batch_norm\n"
    "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no, init=kaiming_normal(mode=fan_out)),\n"
    "                batch_norm <- in if stride != 1 or dim(in, 1) != planes\n"
    "           add <- bn2, downsample\n"
    "           relu\n";

/* The largest side that is not much more than that of the pictures. */
static const images_stem *images_choose_stem(const pictures *found) {
  long long shorter = found->width < found->height ? found->width : found->height;
  return &images_stems[shorter < 48 ? 0 : shorter < 96 ? 1 : 2];
}

long long init_choose_batch(long long count) {
  long long batch = 64;
  while (batch > 4 && batch * 10 > count) batch /= 2; /* batch_norm needs a few */
  return batch;
}

/* Without pictures for it there is no validation, and no [data.valid]. */
static void images_write_transforms(FILE *to, const pictures *found, long long side) {
  const char *norm = "to_float, normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])";
  bool fits = found->same && found->width == side && found->height == side;
  fprintf(to, "\n# random_flip mirrors: leave it out where left and right differ, as in writing.\n");
  fprintf(to, "[data.train]\n");
  if (!fits)
    fprintf(to,
            "# All pictures of a batch have one size, which the crops make here. resize(%lld) makes the "
            "shorter side\n"
            "# %lld and keeps the ratio, so the size varies; resize([%lld, %lld]) makes all %lld x %lld.\n",
            side, side, side, side, side, side);
  if (fits)
    fprintf(to, "transforms = random_crop(%lld, padding=%lld), random_flip,\n             %s\n", side,
            side / 8, norm);
  else
    fprintf(to, "transforms = random_resized_crop(%lld, scale=[0.25, 1]), random_flip,\n             %s\n",
            side, norm);
  fprintf(to, "\n[data.valid]\n");
  if (fits)
    fprintf(to, "transforms = %s\n", norm);
  else
    fprintf(to, "transforms = resize(%lld), center_crop(%lld),\n             %s\n", side * 8 / 7, side, norm);
}

static void images_write_archives(const init_file *f, const pictures *found) {
  fprintf(f->to, "[data]\nsource = shards\nfiles = %s\n", found->files);
  if (found->valid_files[0] != '\0') fprintf(f->to, "valid = %s\n", found->valid_files);
  fprintf(f->to, "inputs = image: %s\ntargets = label: cls\nclasses = %lld\n", found->ending,
          found->train.classes);
}

void init_write_pictures(const init_file *f, const pictures *found, const init_choice *c) {
  bool fits = found->same && found->width == c->side && found->height == c->side;
  if (found->files[0] != '\0')
    images_write_archives(f, found);
  else
    fprintf(f->to, "[data]\nsource = image_folder\nfolder = %s\n", f->path);
  fprintf(f->to, "batch = %lld\n", c->batch);
  if (!fits) fprintf(f->to, "size = 0\nat_least = %lld\n", c->side * 8 / 7);
  if (!found->parts && found->files[0] == '\0') fprintf(f->to, "subfolder = .\n");
  if (!found->valid.there) fprintf(f->to, "split = 0.1\n");
  if (found->unread > 0) fprintf(f->to, "corrupt = skip\n");
  images_write_transforms(f->to, found, c->side);
}

static void images_write_model(const init_file *f, const pictures *found, const images_stem *stem) {
  fprintf(f->to, "\n[model]\ninputs = image: f32[3, %lld, %lld]\nlayers =\n%s", stem->side, stem->side,
          stem->layers);
  fprintf(f->to, "    bn1:    batch_norm\n            relu\n");
  if (stem->stages == 4) fprintf(f->to, "            max_pool(3, stride=2, padding=1)\n");
  fprintf(f->to, "    layer1: basic(32) * 2\n");
  for (int i = 1, planes = 64; i < stem->stages; i++, planes *= 2)
    fprintf(f->to, "    layer%d: basic(%d, stride=2), basic(%d)\n", i + 1, planes, planes);
  fprintf(
      f->to,
      "            global_avg_pool\n    fc:     linear(%lld)\nloss = cross_entropy\nmetrics = accuracy\n\n%s",
      found->train.classes, images_block);
}

void init_write_images(const init_file *f, const pictures *found, init_choice *c) {
  const images_stem *stem = images_choose_stem(found);
  *c = (init_choice){stem->side, init_choose_batch(found->train.count), 30};
  long long steps = c->epochs * (found->train.count / c->batch), warmup = steps / 10;
  fprintf(f->to, "# A small ResNet for %lld classes, from %lld pictures, most of about %lld x %lld pixels.\n",
          found->train.classes, found->train.count, found->width, found->height);
  fprintf(f->to, "[run]\nname = %s\nepochs = %lld\n\n", f->name, c->epochs);
  init_write_pictures(f, found, c);
  images_write_model(f, found, stem);
  fprintf(f->to,
          "\n[optimizer]\ntype = sgd\nlr = %s\nmomentum = 0.9\nweight_decay = 5e-4\n"
          "\n[schedule]\ntype = cosine\nwarmup = %lld\n",
          c->batch >= 32 ? "0.05" : "0.01", warmup < 200 ? warmup : 200);
}
