/* tests/unit/plugins/sources/batches_test.c: of every source, the batches of an epoch are the same for any
 * number of workers and of ranks, and from the middle of an epoch on. */
#include <sys/stat.h>

#include "core/data/transform_chain.h"
#include "tests/unit/plugins/sources/files.h"
#include "tests/unit/plugins/sources/loading.h"

enum { BATCH = 8, MOST_FIELDS = 4, MOST_BYTES = 1 << 16, MOST_BATCHES = 16, SLOTS = 2, FIRST = 2 };

extern const tn_source arrays_source, audio_folder_source, cifar_source, concat_source, digits_source,
    idx_source, image_folder_source, random_source, shards_source, table_source, text_source, tokens_source,
    zip_source;

static char *folder;

/* ---- the sources: 21 samples or more, so that the last batch is short ---- */

static void prepare_arrays(void) { write_rows(in_folder(folder, "x.npy"), 21); }
static void prepare_sounds(void) { write_sounds(folder, 11); }
static void prepare_cifar(void) { write_cifar(in_folder(folder, "data_batch_1.bin"), 21); }
static void prepare_idx(void) { write_idx(folder, 21); }
static void prepare_pictures(void) { write_pictures(folder, 11); }
static void prepare_shards(void) { write_shards(folder, 21); }
static void prepare_packed(void) {
  write_shards(folder, 21);
  for (int i = 0; i < 3; i++) {
    char command[1200];
    snprintf(command, sizeof command, "gzip -n %s/s-%d.tar", folder, i);
    assert_int_equal(system(command), 0);
  }
}
static void prepare_table(void) { write_table(in_folder(folder, "t.csv"), 21); }
static void prepare_text(void) { write_text(in_folder(folder, "t.txt"), 21 * 8 + 1); }
static void prepare_tokens(void) { write_tokens(in_folder(folder, "t.bin"), 21 * 8 + 1); }
static void prepare_nothing(void) {}

static void prepare_joined(void) {
  write_idx(folder, 21);
  add_part("a", &idx_source, PAIRS("folder", folder));
  add_part("b", &random_source, PAIRS("shape", "[1, 2, 3]", "classes", "7", "samples", "21"));
}

/* Both with images and labels of the same type. */
static void prepare_alike(void) {
  write_pictures(folder, 5);
  add_part("a", &image_folder_source, PAIRS("folder", folder, "subfolder", ".", "split", "0.2"));
  add_part("b", &image_folder_source, PAIRS("folder", folder, "subfolder", "."));
}

typedef struct kind {
  const tn_source *source;
  void (*prepare)(void);
  const char *const *options; /* "@" begins a path in the folder */
  int64_t epoch;              /* of endless ones */
} kind;

static const kind kinds[] = {
    {&digits_source, prepare_nothing, (const char *const[]){NULL}, 21},
    {&random_source, prepare_nothing, (const char *const[]){"shape", "[3]", "samples", "21", NULL}, 0},
    {&idx_source, prepare_idx, (const char *const[]){"folder", "@", NULL}, 0},
    {&image_folder_source, prepare_pictures, (const char *const[]){"folder", "@", "subfolder", ".", NULL}, 0},
    {&cifar_source, prepare_cifar, (const char *const[]){"folder", "@", NULL}, 0},
    {&text_source, prepare_text, (const char *const[]){"file", "@/t.txt", "tokens", "8", "split", "1", NULL},
     0},
    {&table_source, prepare_table,
     (const char *const[]){"file", "@/t.csv", "inputs", "x: numbers(a, b, standardize=yes)", "targets",
                           "y: category(c)", NULL},
     0},
    {&arrays_source, prepare_arrays, (const char *const[]){"folder", "@", "inputs", "x: x.npy", NULL}, 0},
    {&tokens_source, prepare_tokens,
     (const char *const[]){"folder", "@", "files", "t.bin", "tokens", "8", NULL}, 0},
    {&shards_source, prepare_shards,
     (const char *const[]){"files", "@/s-{0..2}.tar", "inputs", "x: json(x)", NULL}, 0},
    {&shards_source, prepare_packed,
     (const char *const[]){"files", "@/s-{0..2}.tar.gz", "inputs", "x: json(x)", "classes", "[3]",
                           "shuffle_buffer", "6", NULL},
     21},
    {&audio_folder_source, prepare_sounds, (const char *const[]){"folder", "@", "seconds", "0.01", NULL}, 0},
    {&concat_source, prepare_alike, (const char *const[]){"sources", "a, b", NULL}, 0},
    {&concat_source, prepare_alike, (const char *const[]){"sources", "a, b", "weights", "[0.2, 0.8]", NULL},
     0},
    {&zip_source, prepare_joined,
     (const char *const[]){"sources", "a, b", "inputs", "x: a.image, y: b.image", "targets", "label: a.label",
                           NULL},
     0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* ---- loading ---- */

static const void *kind_options(const kind *k) {
  static const char *pairs[16];
  int n = 0;
  for (; k->options[n] != NULL; n++) {
    const char *text = k->options[n];
    pairs[n] = text[0] == '@' ? in_folder(folder, text + 1 + (text[1] == '/')) : text;
  }
  pairs[n] = NULL;
  return options_of(&k->source->item, pairs);
}

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
      fail_msg("source %s: batch %lld differs with %s", k->source->item.name, (long long)n, what);
}

static void batches_depend_on_seed_and_epoch_alone(void **state) {
  (void)state;
  static const int32_t ways[][2] = {{1, 1}, {3, 1}, {0, 2}, {3, 2}, {1, 4}};
  static epoch_hashes whole, other;
  char what[64];
  for (int i = 0; i < N_KINDS; i++) {
    const kind *k = &kinds[i];
    folder = make_folder();
    begin_loading();
    k->prepare();
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
      fail_msg("source %s: the next epoch has the same batches", k->source->item.name);
    end_loading();
    remove_folder(folder);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches_depend_on_seed_and_epoch_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
