/* tests/unit/plugins/sources/batches_test.c: of every source, the batches of an epoch are the same for any
 * number of workers and of ranks, and from the middle of an epoch on. */
#include "core/data/transform_chain.h"
#include "tests/unit/plugins/sources/kinds.h"

enum { BATCH = 8, MOST_FIELDS = 6, MOST_BYTES = 1 << 16, MOST_BATCHES = 16, SLOTS = 2, FIRST = 2 };

/* ---- loading ---- */

static tn_loader_options loader_options(const kind *k, const void *options, int32_t workers, int32_t ranks) {
  return (tn_loader_options){.source = k->source,
                             .source_options = options,
                             .batch = BATCH / ranks,
                             .shards = ranks,
                             .workers = workers,
                             .prefetch = SLOTS,
                             .training = true,
                             .shuffle = true,
                             .pad_last = true,
                             .epoch_samples = k->epoch,
                             .seed = 3};
}

/* The memory of a batch of one rank. */
typedef struct slot {
  char bytes[MOST_FIELDS][MOST_BYTES];
  void *fields[MOST_FIELDS];
  float weights[BATCH];
  int64_t ids[BATCH];
} slot;

static tn_status slot_submit(tn_loader *loader, slot *s) {
  memset(s->bytes, 0, sizeof s->bytes);
  for (int i = 0; i < MOST_FIELDS; i++) s->fields[i] = s->bytes[i];
  return tn_loader_submit(loader, &(tn_batch){s->fields, s->weights, s->ids});
}

/* Goes on with the hashes of a batch's fields: one for each, so that rows of several ranks follow each other.
 */
static void slot_hash(const tn_loader *loader, const slot *s, int64_t rows, uint64_t hash[MOST_FIELDS + 2]) {
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++) {
    size_t bytes = tn_type_bytes(&tn_loader_field(loader, i)->type) * (size_t)rows;
    assert_in_range(bytes, 1, MOST_BYTES);
    hash[i] = tn_hash_bytes(hash[i], s->bytes[i], bytes);
  }
  hash[MOST_FIELDS] = tn_hash_bytes(hash[MOST_FIELDS], s->weights, sizeof *s->weights * (size_t)rows);
  hash[MOST_FIELDS + 1] = tn_hash_bytes(hash[MOST_FIELDS + 1], s->ids, sizeof *s->ids * (size_t)rows);
}

typedef struct epoch_hashes {
  uint64_t v[MOST_BATCHES][MOST_FIELDS + 2];
  int64_t n;
} epoch_hashes;

/* The batches of an epoch of one rank, from the first one on. */
static void hash_rank(const tn_loader_options *options, int64_t epoch, int64_t first, epoch_hashes *hashes) {
  static slot slots[SLOTS];
  tn_loader *loader = make_loader(options);
  int64_t batches = tn_loader_batches(loader), samples;
  assert_in_range(tn_loader_field_count(loader), 1, MOST_FIELDS);
  assert_in_range(batches, FIRST + 1, MOST_BATCHES);
  assert_int_equal(tn_loader_start(loader, epoch, first), TN_OK);
  for (int i = 0; i < SLOTS; i++) assert_int_equal(slot_submit(loader, &slots[i]), TN_OK);
  for (int64_t b = first; b < batches; b++) {
    slot *s = &slots[(b - first) % SLOTS];
    if (tn_loader_wait(loader, &samples) != TN_OK) fail_msg("%s", tn_error_text(&env));
    slot_hash(loader, s, options->batch, hashes->v[b]);
    assert_int_equal(slot_submit(loader, s), TN_OK);
  }
  hashes->n = batches;
  tn_loader_destroy(loader);
}

static void hash_ranks(const kind *k, const void *options, int32_t workers, int32_t ranks, int64_t epoch,
                       int64_t first, epoch_hashes *hashes) {
  memset(hashes, 0, sizeof *hashes);
  for (int32_t rank = 0; rank < ranks; rank++) {
    tn_loader_options o = loader_options(k, options, workers, ranks);
    o.shard = rank;
    hash_rank(&o, epoch, first, hashes);
  }
}

static void expect_same(const kind *k, const char *what, const epoch_hashes *a, const epoch_hashes *b,
                        int64_t first) {
  assert_int_equal(a->n, b->n);
  for (int64_t n = first; n < a->n; n++)
    if (memcmp(a->v[n], b->v[n], sizeof a->v[n]) != 0)
      fail_msg("%s: batch %lld differs with %s", k->name, (long long)n, what);
}

static void batches_depend_on_seed_and_epoch_alone(void **state) {
  (void)state;
  static const int32_t ways[][2] = {{1, 1}, {3, 1}, {0, 2}, {3, 2}, {1, 4}};
  static epoch_hashes whole, other;
  char what[64];
  for (int i = 0; i < N_KINDS; i++) {
    const kind *k = &kinds[i];
    kind_begin(k);
    const void *options = kind_options(k);
    hash_ranks(k, options, 0, 1, 1, 0, &whole);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
      snprintf(what, sizeof what, "%d workers and %d ranks", ways[way][0], ways[way][1]);
      hash_ranks(k, options, ways[way][0], ways[way][1], 1, 0, &other);
      expect_same(k, what, &whole, &other, 0);
    }
    hash_ranks(k, options, 3, 2, 1, FIRST, &other);
    expect_same(k, "a start in the middle", &whole, &other, FIRST);
    hash_ranks(k, options, 0, 1, 2, 0, &other);
    if (memcmp(whole.v, other.v, sizeof whole.v) == 0)
      fail_msg("%s: the next epoch has the same batches", k->name);
    kind_end();
  }
}

/* Before anything is read. */
static void standard_input_is_refused_to_several_ranks(void **state) {
  (void)state;
  begin_loading();
  tn_loader_options options = {.source = &shards_source,
                               .source_options =
                                   options_of(&shards_source.item, PAIRS("files", "-", "classes", "[3]")),
                               .batch = BATCH,
                               .shards = 2,
                               .training = true,
                               .epoch_samples = 21};
  loader_refused(
      &options, TN_EINVAL,
      "files = -: standard input passes once, so that one rank reads it, and here are 2; run one rank, or "
      "name files");
  end_loading();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches_depend_on_seed_and_epoch_alone),
                                     cmocka_unit_test(standard_input_is_refused_to_several_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
