/* A plugin for requests to stop: a layer and a source in which one is made, or in which a process stays until
 * the test lets it go. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tenon/ops.h>
#include <tenon/plugin/layer.h>
#include <tenon/plugin/source.h>

/* ---- what a callback does ---- */

/* This process gets SIGTERM, once, and its handler has been called when this returns. */
static void ask(void) {
  static int asked;
  if (!asked) raise(SIGTERM);
  asked = 1;
}

/* The file "stays" says that the process has come here; the file "goes" ends the stay. */
static void stay(void) {
  const struct timespec pause = {0, 10000000};
  int fd = open("stays", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  while (access("goes", F_OK) != 0) nanosleep(&pause, NULL);
}

static int is_process(int64_t number) {
  const char *own = getenv("TENON_PROCESS");
  return own != NULL && strtoll(own, NULL, 10) == number;
}

/* ---- a layer ---- */

typedef struct stops_options {
  int64_t stays; /* process that stays; -1: each is asked to stop */
} stops_options;

static const tn_option layer_options[] = {
    TN_OPT(stops_options, stays, TN_OPT_INT, "-1", ">= -1", "the process that stays; -1: SIGTERM is raised"),
    TN_OPT_END};

static tn_status build_stops(tn_build *b, const void *given) {
  const stops_options *o = given;
  if (o->stays < 0) ask();
  if (o->stays >= 0 && is_process(o->stays)) stay();
  tn_build_yield(b, 0, tn_build_in(b, 0));
  return TN_OK;
}

static const tn_layer_kind layer = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "stops",
                                                    "its operand, behind a request to stop", stops_options,
                                                    layer_options),
                                    .min_in = 1,
                                    .max_in = 1,
                                    .build = build_stops};

/* ---- a source ---- */

typedef struct stops_source {
  int64_t stays;
  tn_field fields[2];
} stops_source;

typedef struct stops_source_options {
  int32_t open;
  int64_t stays;
} stops_source_options;

static const tn_option source_options[] = {TN_OPT(stops_source_options, open, TN_OPT_FLAG, "no", NULL,
                                                  "SIGTERM is raised while the source is opened"),
                                           TN_OPT(stops_source_options, stays, TN_OPT_INT, "-1", ">= -1",
                                                  "the process whose samples from 100 on never come"),
                                           TN_OPT_END};

static tn_status open_source(tn_env *env, const void *given, int32_t split, uint64_t seed, void **source) {
  const stops_source_options *o = given;
  (void)seed;
  if (split != TN_SPLIT_TRAIN) return tn_fail(env, TN_EUNAVAILABLE, NULL, "for training");
  stops_source *s = tn_new(env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  if (o->open) ask();
  s->stays = o->stays;
  s->fields[0] = (tn_field){
      .struct_size = sizeof(tn_field), .name = "image", .type = {TN_F32, 1, {4}}, .role = TN_FIELD_INPUT};
  s->fields[1] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "label",
                            .type = {.dtype = TN_I32},
                            .role = TN_FIELD_TARGET,
                            .classes = 3};
  *source = s;
  return TN_OK;
}

static void close_source(tn_env *env, void *source) { tn_delete(env, source); }

static tn_status describe_source(tn_env *env, void *source, tn_description *description) {
  stops_source *s = source;
  (void)env;
  description->count = 4096;
  description->n_fields = 2;
  description->fields = s->fields;
  return TN_OK;
}

/* As a source does that waits for a network. */
static tn_status wait_for_ever(tn_sample *s) {
  const struct timespec pause = {0, 10000000};
  int fd = open("stays", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  while (!tn_sample_stopping(s)) nanosleep(&pause, NULL);
  return tn_fail(s, TN_ESTOPPED, NULL, "stopped while it was waited for");
}

static tn_status read_source(tn_sample *s, void *source) {
  const stops_source *self = source;
  if (s->index >= 100 && self->stays >= 0 && is_process(self->stays)) return wait_for_ever(s);
  float *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  for (int i = 0; i < 4; i++) image[i] = (float)(s->index % 7 + i);
  *label = (int32_t)(s->index % 3);
  return TN_OK;
}

static const tn_source source = {.item = TN_ITEM(tn_source, TN_SOURCE, "stops", "samples that may not come",
                                                 stops_source_options, source_options),
                                 .open = open_source,
                                 .close = close_source,
                                 .describe = describe_source,
                                 .read = read_source};

TN_PLUGIN(stops, "1.0", "MIT", &layer.item, &source.item)
