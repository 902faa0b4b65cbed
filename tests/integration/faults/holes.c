/* A plugin for runs with values that are not finite: samples with NaN, and layers with an infinite value or
 * gradient at zero. */
#include <math.h>
#include <tenon/ops.h>
#include <tenon/plugin/layer.h>
#include <tenon/plugin/source.h>
#include <tenon/random.h>
#include <time.h>
#include <unistd.h>

typedef struct holes_options {
  tn_ints at;
  int64_t every, element, samples, late_from;
  int32_t value, silent;
} holes_options;

static const tn_option options[] = {
    TN_OPT(holes_options, at, TN_OPT_INTS, "[]", ">= 0", "samples with such an element"),
    TN_OPT(holes_options, every, TN_OPT_INT, "0", ">= 0", "if above 0: every so many samples have one"),
    TN_OPT(holes_options, value, TN_OPT_ENUM, "nan", "nan|inf", "value of the element"),
    TN_OPT(holes_options, element, TN_OPT_INT, "7", "[0, 31]", "position in the image"),
    TN_OPT(holes_options, samples, TN_OPT_INT, "64", ">= 1", "in an epoch"),
    TN_OPT(holes_options, silent, TN_OPT_FLAG, "no", NULL, "every sample fails without a message"),
    TN_OPT(holes_options, late_from, TN_OPT_INT, "-1", ">= -1",
           "samples from here on come when the file `go` is there; -1: at once"),
    TN_OPT_END};

typedef struct holes {
  holes_options options;
  tn_field fields[2];
} holes;

static tn_status open_holes(tn_env *env, const void *given, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  if (split != TN_SPLIT_TRAIN) return tn_fail(env, TN_EUNAVAILABLE, NULL, "holes are for training");
  holes *h = tn_new(env, sizeof *h);
  if (h == NULL) return TN_ENOMEM;
  h->options = *(const holes_options *)given;
  h->fields[0] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "image",
                            .type = {TN_F32, 3, {2, 4, 4}},
                            .role = TN_FIELD_INPUT};
  h->fields[1] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "label",
                            .type = {.dtype = TN_I32},
                            .role = TN_FIELD_TARGET,
                            .classes = 3};
  *source = h;
  return TN_OK;
}

static void close_holes(tn_env *env, void *source) { tn_delete(env, source); }

static tn_status describe(tn_env *env, void *source, tn_description *description) {
  holes *h = source;
  (void)env;
  description->count = h->options.samples;
  description->n_fields = 2;
  description->fields = h->fields;
  return TN_OK;
}

static int has_hole(const holes_options *o, int64_t index) {
  for (int64_t i = 0; i < o->at.n; i++)
    if (o->at.v[i] == index) return 1;
  return o->every > 0 && index % o->every == 0;
}

/* As a source that does not ask whether the run is to stop. */
static void await_go(void) {
  while (access("go", F_OK) != 0) nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static tn_status read_sample(tn_sample *s, void *source) {
  const holes_options *o = &((const holes *)source)->options;
  if (o->late_from >= 0 && s->index >= o->late_from) await_go();
  if (o->silent) return TN_EINVAL;
  float *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  tn_rng rng = tn_rng_at((uint64_t)s->index, 0);
  *label = (int32_t)tn_rng_below(&rng, 3);
  for (int i = 0; i < 32; i++)
    image[i] = (float)tn_rng_between(&rng, -1, 1) + (i % 3 == *label ? 1.0f : 0.0f);
  if (has_hole(o, s->index)) image[o->element] = o->value == 0 ? NAN : INFINITY;
  return TN_OK;
}

static const tn_source source = {.item = TN_ITEM(tn_source, TN_SOURCE, "holes",
                                                 "noise with NaN or infinity in it", holes_options, options),
                                 .open = open_holes,
                                 .close = close_holes,
                                 .describe = describe,
                                 .read = read_sample};

static tn_status build_logarithm(tn_build *b, const void *given) {
  (void)given;
  tn_build_yield(b, 0, tn_log(b, tn_relu(b, tn_build_in(b, 0))));
  return TN_OK;
}
static const tn_layer_kind logarithm = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "logarithm", "log(max(x, 0))"),
    .min_in = 1,
    .max_in = 1,
    .build = build_logarithm};

/* The square underflows to 0, and sqrt(0) is 0 with an infinite gradient: the loss of the step stays finite.
 */
static tn_status build_root(tn_build *b, const void *given) {
  (void)given;
  tn_val in = tn_build_in(b, 0), small = tn_mul(b, in, tn_scalar(b, tn_val_type(b, in)->dtype, 1e-30));
  tn_build_yield(b, 0, tn_add(b, in, tn_sqrt(b, tn_mul(b, small, small))));
  return TN_OK;
}
static const tn_layer_kind root = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "root", "x + sqrt((x / 1e30)^2)"),
    .min_in = 1,
    .max_in = 1,
    .build = build_root};

TN_PLUGIN(holes, "1.0", "MIT", &source.item, &logarithm.item, &root.item)
