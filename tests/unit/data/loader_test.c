#include "tests/unit/data/loader_rig.h"

static const tn_transform_use augment[] = {{.transform = &jitter_transform}, {.transform = &shift_transform}};

static void batches_arrive_in_order_with_ids_and_weights(void **state) {
  (void)state;
  numbers source = {.count = 10};
  tn_loader_options options = options_for(&source);
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_samples(loader), 10);
  assert_int_equal(tn_loader_batches(loader), 2);
  room r;
  int64_t samples;
  for (int b = 0; b < 2; b++) {
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_int_equal(samples, 4);
    for (int i = 0; i < 4; i++) {
      assert_true(r.x[4 * i] == (float)(4 * b + i));
      assert_int_equal(r.y[i], 4 * b + i);
      assert_int_equal(r.ids[i], 4 * b + i);
      assert_true(r.weights[i] == 1.0f);
    }
  }
  assert_int_equal(next(loader, &r, &samples), TN_EOF);
  assert_int_equal(next(loader, &r, &samples), TN_EOF);
  tn_loader_destroy(loader);
}

static void the_short_last_batch_is_padded_with_weight_zero(void **state) {
  (void)state;
  numbers source = {.count = 6};
  tn_loader_options options = options_for(&source);
  options.pad_last = true;
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_batches(loader), 2);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(samples, 2);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(r.y[i], i == 1 ? 5 : 4);
    assert_int_equal(r.ids[i], i == 1 ? 5 : 4);
    assert_true(r.weights[i] == (i < 2 ? 1.0f : 0.0f));
  }
  tn_loader_destroy(loader);
}

static void weights_and_ids_may_be_absent(void **state) {
  (void)state;
  numbers source = {.count = 6};
  tn_loader_options options = options_for(&source);
  options.pad_last = true;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  batch_in(&r);
  tn_batch batch = {r.fields, NULL, NULL};
  for (int b = 0; b < 2; b++) {
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
    assert_int_equal(tn_loader_wait(loader, &samples), TN_OK);
  }
  assert_int_equal(samples, 2);
  tn_loader_destroy(loader);
}

/* The second loader outlives the first, and reads what it would read by itself. */
static void loaders_share_an_open_source(void **state) {
  (void)state;
  int32_t opens[2] = {0, 0};
  numbers source = {.count = 40, .opens = opens};
  tn_loader_options options = options_for(&source), other = options;
  tn_loader *first = make(&options);
  other.transforms = augment;
  other.n_transforms = 2;
  tn_loader *alone = make(&other);
  uint64_t expected = hash_epoch(alone, 1, 0);
  tn_loader_destroy(alone);
  assert_true(opens[0] == 2 && opens[1] == 1);
  other.like = first;
  tn_loader *second = make(&other);
  assert_int_equal(opens[0], 2);
  tn_loader_destroy(first);
  assert_int_equal(opens[1], 1);
  assert_true(hash_epoch(second, 1, 0) == expected);
  tn_loader_destroy(second);
  assert_int_equal(opens[1], 2);
}

/* Options of another source, another part, and a stream, which has one position. */
static void another_source_is_opened_beside_the_first(void **state) {
  (void)state;
  int32_t opens[2] = {0, 0};
  numbers source = {.count = 40, .opens = opens}, more = {.count = 80, .opens = opens};
  tn_loader_options options = options_for(&source), others[4] = {options, options, options, options};
  others[0].source_options = &more;
  others[1].split = TN_SPLIT_VALID;
  others[2].fold = (tn_data_fold){1, 4, false};
  others[3].source = &numbers_stream;
  for (int i = 0; i < 4; i++) {
    if (i == 3) options.source = &numbers_stream;
    tn_loader *first = make(&options);
    others[i].like = first;
    tn_loader *second = make(&others[i]);
    assert_int_equal(opens[0], 2 * i + 2);
    tn_loader_destroy(second);
    tn_loader_destroy(first);
    assert_int_equal(opens[1], 2 * i + 2);
  }
}

static void order_and_augmentation_do_not_depend_on_workers(void **state) {
  (void)state;
  static const int32_t workers[] = {0, 1, 4};
  uint64_t hashes[3][2];
  for (int w = 0; w < 3; w++) {
    numbers source = {.count = 203};
    tn_loader_options options = options_for(&source);
    options.batch = 16;
    options.shuffle = options.pad_last = true;
    options.transforms = augment;
    options.n_transforms = 2;
    options.workers = workers[w];
    tn_loader *loader = make(&options);
    for (int64_t epoch = 0; epoch < 2; epoch++) hashes[w][epoch] = hash_epoch(loader, epoch, 0);
    assert_true(hash_epoch(loader, 1, 0) == hashes[w][1]);
    tn_loader_destroy(loader);
  }
  assert_true(hashes[0][0] != hashes[0][1]);
  for (int w = 1; w < 3; w++)
    for (int e = 0; e < 2; e++) assert_true(hashes[w][e] == hashes[0][e]);
}

static void every_epoch_visits_every_sample_in_another_order(void **state) {
  (void)state;
  numbers source = {.count = 12};
  tn_loader_options options = options_for(&source);
  options.shuffle = true;
  tn_loader *loader = make(&options);
  int64_t order[2][12];
  for (int64_t epoch = 0; epoch < 2; epoch++) {
    assert_int_equal(tn_loader_start(loader, epoch, 0), TN_OK);
    int seen[12] = {0};
    for (int b = 0; b < 3; b++) {
      room r;
      int64_t samples;
      assert_int_equal(next(loader, &r, &samples), TN_OK);
      for (int i = 0; i < 4; i++) {
        order[epoch][4 * b + i] = r.ids[i];
        assert_int_equal(seen[r.ids[i]]++, 0);
      }
    }
  }
  assert_memory_not_equal(order[0], order[1], sizeof(order[0]));
  tn_loader_destroy(loader);
}

static void another_seed_gives_another_order_and_other_augmentation(void **state) {
  (void)state;
  uint64_t hashes[2];
  for (int i = 0; i < 2; i++) {
    numbers source = {.count = 40};
    tn_loader_options options = options_for(&source);
    options.transforms = augment;
    options.n_transforms = 2;
    options.seed = (uint64_t)i;
    tn_loader *loader = make(&options);
    hashes[i] = hash_epoch(loader, 0, 0);
    tn_loader_destroy(loader);
  }
  assert_true(hashes[0] != hashes[1]);
}

static void restarting_in_the_middle_gives_the_same_batches(void **state) {
  (void)state;
  for (int32_t workers = 0; workers <= 3; workers += 3) {
    numbers source = {.count = 40};
    tn_loader_options options = options_for(&source);
    options.shuffle = true;
    options.workers = workers;
    options.transforms = augment;
    options.n_transforms = 2;
    tn_loader *loader = make(&options);
    room straight[10], again;
    int64_t samples;
    assert_int_equal(tn_loader_start(loader, 3, 0), TN_OK);
    for (int b = 0; b < 10; b++) assert_int_equal(next(loader, &straight[b], &samples), TN_OK);
    for (int64_t first = 9; first >= 0; first -= 3) {
      assert_int_equal(tn_loader_start(loader, 3, first), TN_OK);
      assert_int_equal(next(loader, &again, &samples), TN_OK);
      assert_memory_equal(again.x, straight[first].x, sizeof(again.x));
      assert_memory_equal(again.ids, straight[first].ids, sizeof(again.ids));
    }
    tn_loader_destroy(loader);
  }
}

static void a_restart_forgets_what_was_pending(void **state) {
  (void)state;
  for (int32_t workers = 0; workers <= 2; workers++) {
    numbers source = {.count = 40};
    tn_loader_options options = options_for(&source);
    options.workers = workers;
    tn_loader *loader = make(&options);
    room rooms[2], r;
    int64_t samples;
    for (int round = 0; round < 50; round++) {
      for (int i = 0; i < 2; i++) {
        tn_batch batch = batch_in(&rooms[i]);
        assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
      }
      assert_int_equal(tn_loader_start(loader, 0, 5), TN_OK);
      assert_int_equal(next(loader, &r, &samples), TN_OK);
      assert_int_equal(r.ids[0], 20);
      assert_int_equal(r.y[3], 23);
    }
    tn_loader_destroy(loader);
  }
}

static void training_epochs_of_an_endless_source_are_all_fresh(void **state) {
  (void)state;
  numbers source = {.count = -1};
  tn_loader_options options = options_for(&source);
  options.epoch_samples = 8;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(tn_loader_start(loader, 5, 1), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(r.ids[0], 5 * 8 + 4);
  tn_loader_destroy(loader);
}

static void an_endless_source_may_say_how_long_an_epoch_is(void **state) {
  (void)state;
  numbers source = {.count = -1, .epoch = 12};
  tn_loader_options options = options_for(&source);
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_batches(loader), 3);
  tn_loader_destroy(loader);
  options.epoch_samples = 20; /* the configuration overrides the source's default */
  loader = make(&options);
  assert_int_equal(tn_loader_batches(loader), 5);
  tn_loader_destroy(loader);
}

static void an_epoch_longer_than_a_finite_source_is_refused(void **state) {
  (void)state;
  numbers source = {.count = 12};
  tn_loader_options options = options_for(&source);
  options.epoch_samples = 20;
  refuses(&options, TN_EINVAL, "it has 12 samples, fewer than the 20 of epoch");
}

/* The indices of an epoch of 20 of 100 samples. */
static void take_ids(uint64_t seed, int32_t workers, int64_t epoch, int64_t ids[20]) {
  numbers source = {.count = 100};
  tn_loader_options options = options_for(&source);
  options.seed = seed;
  options.workers = workers;
  options.training = false;
  options.pad_last = true;
  options.epoch_samples = 20;
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_start(loader, epoch, 0), TN_OK);
  for (int b = 0; b < 5; b++) {
    room r;
    int64_t samples;
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_int_equal(samples, 4);
    memcpy(ids + 4 * b, r.ids, 4 * sizeof *r.ids);
  }
  tn_loader_destroy(loader);
}

/* A source in the order of its classes, 10 samples each: two of each class are taken. */
static void a_shortened_epoch_has_samples_of_every_class(void **state) {
  (void)state;
  int64_t ids[20], others[20];
  int seen[10] = {0}, first_of_all = 0;
  take_ids(1, 0, 0, ids);
  for (int i = 0; i < 20; i++) {
    assert_true(ids[i] >= 0 && ids[i] < 100 && (i == 0 || ids[i] > ids[i - 1]));
    seen[ids[i] / 10]++;
    first_of_all += ids[i] == i;
  }
  for (int c = 0; c < 10; c++) assert_int_equal(seen[c], 2);
  assert_true(first_of_all < 5);
  for (int32_t workers = 0; workers <= 4; workers += 2) {
    take_ids(1, workers, 7, others);
    assert_memory_equal(ids, others, sizeof ids);
  }
  take_ids(2, 0, 0, others);
  assert_memory_not_equal(ids, others, sizeof ids);
}

static void a_size_that_follows_the_sample_is_asked_for_again(void **state) {
  (void)state;
  const tn_transform_use uses[] = {
      {.transform = &twice_transform}, {.transform = &twice_transform}, {.transform = &fix_transform}};
  numbers source = {.count = 20, .vary = 1};
  tn_loader_options options = options_for(&source);
  options.transforms = uses;
  options.n_transforms = 3;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  const float *second = r.x + 8; /* sample 1 has two elements: 1 and its key */
  assert_true(second[0] == 1 && second[2] == 1 && second[4] == 1 && second[6] == 1);
  assert_true(second[1] == second[3] && second[1] == second[7]);
  tn_loader_destroy(loader);
}

static void validation_is_the_same_in_every_epoch(void **state) {
  (void)state;
  for (int64_t count = -1; count <= 20; count += 21) {
    numbers source = {.count = count};
    tn_loader_options options = options_for(&source);
    options.epoch_samples = 8;
    options.training = false;
    options.transforms = augment;
    options.n_transforms = 2;
    tn_loader *loader = make(&options);
    uint64_t first = hash_epoch(loader, 0, 0);
    assert_true(hash_epoch(loader, 4, 0) == first);
    room r;
    int64_t samples;
    assert_int_equal(tn_loader_start(loader, 4, 0), TN_OK);
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_true(r.x[0] == 1000.0f); /* shifted, but not jittered */
    tn_loader_destroy(loader);
  }
}

static void a_streaming_source_keeps_its_order_with_any_number_of_workers(void **state) {
  (void)state;
  uint64_t hashes[3];
  for (int32_t w = 0; w < 3; w++) {
    numbers source = {.count = 30};
    tn_loader_options options = options_for(&source);
    options.source = &numbers_stream;
    options.workers = 2 * w;
    options.pad_last = true;
    options.transforms = augment;
    options.n_transforms = 2;
    tn_loader *loader = make(&options);
    hashes[w] = hash_epoch(loader, 1, 0);
    room r;
    int64_t samples;
    assert_int_equal(tn_loader_start(loader, 1, 7), TN_OK);
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_int_equal(samples, 2);
    assert_int_equal(r.ids[1], 29);
    tn_loader_destroy(loader);
  }
  assert_true(hashes[0] == hashes[1] && hashes[0] == hashes[2]);
}

/* Reads one epoch of all shards and compares it, sample by sample, with a single loader whose batch is as
 * large as an update of all shards. */
static void compare_shards(const tn_loader_options *like, int32_t shards, int32_t accumulate) {
  tn_loader_options options = *like;
  tn_loader *parts[4], *whole;
  room one, part;
  int64_t samples, size = options.batch, total = 0;
  options.batch = size * shards * accumulate;
  whole = make(&options);
  options.batch = size;
  options.shards = shards;
  options.accumulate = accumulate;
  for (options.shard = 0; options.shard < shards; options.shard++) parts[options.shard] = make(&options);
  for (int64_t update = 0; next(whole, &one, &samples) == TN_OK; update++) {
    int64_t at = 0, real = 0;
    for (int32_t m = 0; m < accumulate; m++)
      for (int32_t r = 0; r < shards; r++, at += size) {
        int64_t here;
        assert_int_equal(next(parts[r], &part, &here), TN_OK);
        assert_memory_equal(part.x, one.x + 4 * at, 4 * (size_t)size * sizeof(float));
        assert_memory_equal(part.weights, one.weights + at, (size_t)size * sizeof(float));
        assert_memory_equal(part.ids, one.ids + at, (size_t)size * sizeof(int64_t));
        real += here;
      }
    assert_int_equal(real, samples);
    total += accumulate;
  }
  for (int32_t r = 0; r < shards; r++) {
    assert_int_equal(tn_loader_batches(parts[r]), total);
    assert_int_equal(next(parts[r], &part, &samples), TN_EOF);
    tn_loader_destroy(parts[r]);
  }
  tn_loader_destroy(whole);
}

static void shards_and_micro_batches_read_together_what_one_batch_reads(void **state) {
  (void)state;
  for (int variant = 0; variant < 16; variant++) {
    numbers source = {.count = variant & 4 ? 41 : 48};
    tn_loader_options options = options_for(&source);
    options.batch = 2;
    options.transforms = augment;
    options.n_transforms = 2;
    options.pad_last = variant & 1;
    options.workers = variant & 2;
    if (variant & 8)
      options.source = &numbers_stream;
    else
      options.shuffle = true;
    compare_shards(&options, 2, 1);
    compare_shards(&options, 4, 1);
    compare_shards(&options, 1, 2);
    compare_shards(&options, 2, 3);
    compare_shards(&options, 4, 4);
  }
}

/* ---- the reads of each shard ---- */

enum { COUNTED = 48, SHARDS = 3 };

/* One epoch of all shards, and the reads of each. */
typedef struct epoch_reads {
  atomic_int reads[SHARDS][COUNTED];
  bool has[SHARDS][COUNTED];  /* the sample is in a batch with weight 1 */
  bool pads[SHARDS][COUNTED]; /* it is a row of weight 0 */
  int incomplete[SHARDS];     /* batches with padding */
} epoch_reads;

static void note_batch(epoch_reads *e, int shard, const room *r, int64_t size) {
  bool padded = false;
  for (int64_t i = 0; i < size; i++) {
    bool real = r->weights[i] == 1.0f;
    (real ? e->has : e->pads)[shard][r->ids[i]] = true;
    padded |= !real;
  }
  e->incomplete[shard] += padded;
}

static void read_shards(const tn_loader_options *like, epoch_reads *e) {
  tn_loader_options options = *like;
  numbers source = *(const numbers *)like->source_options;
  memset(e, 0, sizeof *e);
  options.source_options = &source;
  options.shards = SHARDS;
  for (options.shard = 0; options.shard < SHARDS; options.shard++) {
    room r;
    int64_t samples;
    source.reads = e->reads[options.shard];
    tn_loader *loader = make(&options);
    assert_int_equal(tn_loader_start(loader, 0, 0), TN_OK);
    while (next(loader, &r, &samples) == TN_OK) note_batch(e, options.shard, &r, options.batch);
    tn_loader_destroy(loader);
  }
}

/* A shard reads a sample of its own once, one that it repeats as padding once for each batch that it pads,
 * and no other. */
static void check_reads(const epoch_reads *e, int64_t used) {
  int64_t seen = 0;
  for (int i = 0; i < COUNTED; i++) {
    int owners = 0;
    for (int s = 0; s < SHARDS; s++) {
      owners += e->has[s][i];
      assert_int_equal(e->reads[s][i], e->has[s][i] + (e->pads[s][i] ? e->incomplete[s] : 0));
    }
    assert_in_range(owners, 0, 1);
    seen += owners;
  }
  assert_int_equal(seen, used);
}

/* Updates are of 3 * 4 samples, or of 3 * 2 * 4 with micro-batches: 41 leave 5, or 17. */
static void each_shard_reads_its_own_samples_and_once(void **state) {
  (void)state;
  for (int variant = 0; variant < 32; variant++) {
    numbers source = {.count = variant & 1 ? 41 : COUNTED};
    tn_loader_options options = options_for(&source);
    bool pads = variant & 2, halves = variant & 4;
    int64_t update = options.batch * SHARDS * (halves ? 2 : 1);
    options.pad_last = pads;
    options.accumulate = halves ? 2 : 1;
    options.workers = variant & 8 ? 3 : 0;
    options.source = variant & 16 ? &numbers_stream : &numbers_source;
    options.shuffle = (variant & 16) == 0;
    epoch_reads e;
    read_shards(&options, &e);
    check_reads(&e, pads ? source.count : source.count / update * update);
    for (int s = 0, padded = 0; s < SHARDS; s++) {
      padded += e.incomplete[s];
      if (s == SHARDS - 1) assert_true((padded > 0) == (pads && source.count % update != 0));
    }
  }
}

static void a_shard_starts_in_the_middle_of_an_epoch(void **state) {
  (void)state;
  numbers source = {.count = 40};
  for (int streams = 0; streams < 2; streams++) {
    tn_loader_options options = options_for(&source);
    if (streams) options.source = &numbers_stream;
    options.shards = 2;
    options.shard = 1;
    tn_loader *loader = make(&options);
    room r;
    int64_t samples;
    assert_int_equal(tn_loader_start(loader, 3, 2), TN_OK);
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_int_equal(r.ids[0], 20); /* block 2 * 2 + 1 */
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_int_equal(r.ids[0], 28);
    tn_loader_destroy(loader);
  }
}

static void shards_of_an_endless_source_divide_its_epoch(void **state) {
  (void)state;
  numbers source = {.count = -1, .epoch = 16};
  tn_loader_options options = options_for(&source);
  options.shards = 2;
  options.shard = 1;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(tn_loader_batches(loader), 2);
  assert_int_equal(tn_loader_start(loader, 1, 1), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(r.ids[0], 16 + 12);
  tn_loader_destroy(loader);
}

static void a_stream_that_ends_early_is_an_error(void **state) {
  (void)state;
  numbers source = {.count = -1, .ends_at = 6};
  tn_loader_options options = options_for(&source);
  options.source = &numbers_stream;
  options.epoch_samples = 8;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "ended"));
  tn_loader_destroy(loader);
}

static void varying_fields_pass_through_until_a_transform_fixes_them(void **state) {
  (void)state;
  static const char *const x[] = {"x"};
  const tn_transform_use uses[] = {{.transform = &shift_transform},
                                   {.transform = &fix_transform, .fields = x, .n_fields = 1}};
  numbers source = {.count = 20, .vary = 1};
  tn_loader_options options = options_for(&source);
  options.transforms = uses;
  options.n_transforms = 2;
  options.workers = 2;
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_field_count(loader), 2);
  assert_int_equal(tn_loader_field(loader, 0)->type.dims[0], 8);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_true(r.x[0] == 1000 && r.x[1] == -1);
  assert_true(r.x[3 * 8] == 1003 && r.x[3 * 8 + 3] == 1000 && r.x[3 * 8 + 4] == -1);
  tn_loader_destroy(loader);
}

static void transforms_of_the_batch_come_last_and_see_all_of_it(void **state) {
  (void)state;
  for (int reversals = 1; reversals <= 3; reversals++) {
    const tn_transform_use uses[] = {{.transform = &shift_transform},
                                     {.transform = &reverse_transform},
                                     {.transform = &reverse_transform},
                                     {.transform = &reverse_transform}};
    numbers source = {.count = 8};
    tn_loader_options options = options_for(&source);
    options.transforms = uses;
    options.n_transforms = 1 + reversals;
    options.workers = 2;
    tn_loader *loader = make(&options);
    room r;
    int64_t samples;
    for (int b = 0; b < 2; b++) assert_int_equal(next(loader, &r, &samples), TN_OK);
    assert_true(r.x[0] == (float)(reversals % 2 ? 1007 : 1004));
    assert_int_equal(r.y[0], 4);
    tn_loader_destroy(loader);
  }
}

/* Spans of an epoch of two batches, in four parts each, beside the transforms of whole batches. */
static void check_profile(const tn_span *spans, size_t n, int32_t workers, int32_t batch_stages) {
  int parts[2] = {0};
  assert_int_equal(n, 2 * (4 + batch_stages));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(spans[i].kind, TN_SPAN_READ);
    assert_in_range(spans[i].number, 0, 1);
    parts[spans[i].number]++;
    double took = spans[i].end_s - spans[i].start_s;
    assert_true(spans[i].reading_s >= 0 && spans[i].reading_s <= took);
    if (workers == 0) assert_int_equal(spans[i].track, TN_TRACK_HOST);
    if (workers > 0) assert_in_range(spans[i].track, TN_TRACK_WORKER, TN_TRACK_WORKER + workers - 1);
  }
  assert_int_equal(parts[0], parts[1]);
}

static void a_profile_has_the_parts_of_all_batches(void **state) {
  (void)state;
  const tn_transform_use uses[] = {{.transform = &shift_transform}, {.transform = &reverse_transform}};
  for (int32_t workers = 0; workers <= 3; workers += 3)
    for (int32_t streaming = 0; streaming <= 1; streaming++) {
      numbers source = {.count = 8};
      tn_loader_options options = options_for(&source);
      if (streaming) options.source = &numbers_stream;
      options.transforms = uses;
      options.n_transforms = streaming ? 1 : 2;
      options.workers = workers;
      tn_loader *loader = make(&options);
      tn_timeline *timeline = tn_timeline_new(&env);
      room r;
      size_t n;
      int64_t samples, lost;
      tn_timeline_open(timeline, true);
      for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(tn_loader_start(loader, epoch, 0), TN_OK);
        tn_loader_profile(loader, epoch == 0 ? timeline : NULL);
        for (int b = 0; b < 2; b++) assert_int_equal(next(loader, &r, &samples), TN_OK);
        const tn_span *spans = tn_timeline_spans(timeline, &n, &lost);
        check_profile(spans, n, workers, streaming ? 0 : 1);
      }
      tn_loader_destroy(loader);
      tn_timeline_free(timeline);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(batches_arrive_in_order_with_ids_and_weights, start),
      cmocka_unit_test_setup(the_short_last_batch_is_padded_with_weight_zero, start),
      cmocka_unit_test_setup(weights_and_ids_may_be_absent, start),
      cmocka_unit_test_setup(loaders_share_an_open_source, start),
      cmocka_unit_test_setup(another_source_is_opened_beside_the_first, start),
      cmocka_unit_test_setup(order_and_augmentation_do_not_depend_on_workers, start),
      cmocka_unit_test_setup(every_epoch_visits_every_sample_in_another_order, start),
      cmocka_unit_test_setup(another_seed_gives_another_order_and_other_augmentation, start),
      cmocka_unit_test_setup(restarting_in_the_middle_gives_the_same_batches, start),
      cmocka_unit_test_setup(a_restart_forgets_what_was_pending, start),
      cmocka_unit_test_setup(training_epochs_of_an_endless_source_are_all_fresh, start),
      cmocka_unit_test_setup(an_endless_source_may_say_how_long_an_epoch_is, start),
      cmocka_unit_test_setup(an_epoch_longer_than_a_finite_source_is_refused, start),
      cmocka_unit_test_setup(a_shortened_epoch_has_samples_of_every_class, start),
      cmocka_unit_test_setup(a_size_that_follows_the_sample_is_asked_for_again, start),
      cmocka_unit_test_setup(validation_is_the_same_in_every_epoch, start),
      cmocka_unit_test_setup(a_streaming_source_keeps_its_order_with_any_number_of_workers, start),
      cmocka_unit_test_setup(shards_and_micro_batches_read_together_what_one_batch_reads, start),
      cmocka_unit_test_setup(each_shard_reads_its_own_samples_and_once, start),
      cmocka_unit_test_setup(a_shard_starts_in_the_middle_of_an_epoch, start),
      cmocka_unit_test_setup(shards_of_an_endless_source_divide_its_epoch, start),
      cmocka_unit_test_setup(a_stream_that_ends_early_is_an_error, start),
      cmocka_unit_test_setup(varying_fields_pass_through_until_a_transform_fixes_them, start),
      cmocka_unit_test_setup(transforms_of_the_batch_come_last_and_see_all_of_it, start),
      cmocka_unit_test_setup(a_profile_has_the_parts_of_all_batches, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
