/* A source of noise. WRONG: it goes on with the numbers that the worker's last sample has left, instead of
 * beginning with those of the sample. */
#include <tenon/plugin/source.h>

static const tn_field fields[] = {
    {.struct_size = sizeof(tn_field), .name = "noise", .type = {TN_F32, 1, {5}}, .role = TN_FIELD_INPUT},
    {.struct_size = sizeof(tn_field),
     .name = "label",
     .type = {TN_I32, 0, {0}},
     .role = TN_FIELD_TARGET,
     .classes = 3}};

static tn_status open_noise(tn_env *env, const void *options, int32_t split, uint64_t seed, void **self) {
  uint64_t *kept = tn_new(env, sizeof *kept);
  (void)options;
  if (!kept) return TN_ENOMEM;
  *kept = tn_hash_mix(seed, (uint64_t)split);
  *self = kept;
  return TN_OK;
}
static void close_noise(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status describe(tn_env *env, void *self, tn_description *d) {
  (void)env;
  (void)self;
  d->count = 37;
  d->n_fields = 2;
  d->fields = fields;
  return TN_OK;
}

static tn_status read_noise(tn_sample *s, void *self) {
  tn_rng *rng = tn_sample_scratch(s, sizeof *rng);
  float *noise = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (!rng || !noise || !label) return TN_ENOMEM;
  if (!WRONG || rng->key == 0) *rng = tn_rng_at(tn_hash_mix(*(uint64_t *)self, (uint64_t)s->index), 0);
  for (int i = 0; i < 5; i++) noise[i] = (float)tn_rng_uniform(rng);
  *label = (int32_t)(s->index % 3);
  return TN_OK;
}

static const tn_source source = {.item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "test_noise", "noise"),
                                 .open = open_noise,
                                 .close = close_noise,
                                 .describe = describe,
                                 .read = read_noise};
TN_PLUGIN(wrong, "1", "MIT", &source.item)
