/* A source whose samples a test can compute: uniform numbers of variance 1 around a mean (steady.h). The
 * sample of index `stuck` is never read: its reader hangs, as one of a file system that has stopped
 * answering; some others take long. All elements of the sample `zero` are 0. An exit handler makes the file
 * that the environment variable STEADY_EXIT names. */
#include "steady.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin/source.h>
#include <unistd.h>

typedef struct steady_options {
  double mean;
  int64_t stuck, zero, slow_from, slow_us;
} steady_options;

typedef struct steady {
  steady_options options;
  tn_field fields[2];
} steady;

static tn_status steady_open(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)split, (void)seed;
  steady *s = tn_new(env, sizeof *s);
  *source = s;
  if (s == NULL) return TN_ENOMEM;
  s->options = *(const steady_options *)options;
  s->fields[0] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "image",
                            .type = {TN_F32, 3, {STEADY_CHANNELS, STEADY_SIDE, STEADY_SIDE}},
                            .role = TN_FIELD_INPUT};
  s->fields[1] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "label",
                            .type = {.dtype = TN_I32},
                            .role = TN_FIELD_TARGET,
                            .classes = 4};
  return TN_OK;
}

static tn_status steady_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  description->count = STEADY_SAMPLES;
  description->n_fields = 2;
  description->fields = ((steady *)source)->fields;
  return TN_OK;
}

static tn_status steady_read(tn_sample *sample, void *source) {
  const steady_options *o = &((steady *)source)->options;
  while (sample->index == o->stuck) pause();
  if (sample->index % 8 >= o->slow_from) usleep((useconds_t)o->slow_us);
  float *image = tn_sample_field(sample, 0, NULL);
  int32_t *label = tn_sample_field(sample, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < STEADY_VALUES; i++)
    image[i] = sample->index == o->zero ? 0.0f : steady_value(sample->index, i, o->mean);
  *label = (int32_t)(sample->index % 4);
  return TN_OK;
}

static void steady_close(tn_env *env, void *source) { tn_delete(env, source); }

__attribute__((destructor)) static void steady_exit(void) {
  const char *path = getenv("STEADY_EXIT");
  if (path != NULL) (void)!open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
}

static const tn_option options[] = {
    TN_OPT(steady_options, mean, TN_OPT_FLOAT, "0", NULL, "mean of all elements"),
    TN_OPT(steady_options, stuck, TN_OPT_INT, "-1", NULL, "index of the sample that is never read"),
    TN_OPT(steady_options, zero, TN_OPT_INT, "-1", NULL, "index of the sample that is 0"),
    TN_OPT(steady_options, slow_from, TN_OPT_INT, "8", NULL,
           "of each 8 samples, those from here on are slow"),
    TN_OPT(steady_options, slow_us, TN_OPT_INT, "0", NULL, "microseconds for each of them"),
    TN_OPT_END};

static const tn_source source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "steady", "numbers around a mean", steady_options, options),
    .open = steady_open,
    .describe = steady_describe,
    .read = steady_read,
    .close = steady_close};

TN_PLUGIN(steady, "1", "MIT", &source.item)
