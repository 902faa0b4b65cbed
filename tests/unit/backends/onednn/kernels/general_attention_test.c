/* Attention with masks and windows over several tiles, against sums over all pairs in f64. */
#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_onednn_general_attention;

typedef struct shape {
  int64_t batch, heads, queries, keys, width, value_width;
  int32_t causal, window;
  int32_t mask_dtype; /* -1: no mask */
  int64_t mask[4];    /* its dims; from the first one above 0 on */
} shape;

/* ---- by definition, in f64 ---- */

static const shape *now; /* of the match that is checked */
static const tn_attention_attributes *options;

static int64_t place(int64_t tokens, int64_t width, int64_t head, int64_t token, int64_t column) {
  int64_t b = head / now->heads, h = head % now->heads;
  if (options->heads == 0) return (head * tokens + token) * width + column;
  return ((b * tokens + token) * now->heads + h) * width + column;
}

static double get(const tn_view *x, int64_t tokens, int64_t width, int64_t head, int64_t token,
                  int64_t column) {
  return rig_get(&x->type, x->data, place(tokens, width, head, token, column));
}

/* The number that is added to a score; minus infinity: the key is hidden. */
static double bias(const tn_view *mask, int64_t head, int64_t i, int64_t j) {
  const tn_type space = RIG_TYPE(TN_F32, now->batch, now->heads, now->queries, now->keys);
  const int64_t at[4] = {head / now->heads, head % now->heads, i, j};
  int64_t own = i + now->keys - now->queries;
  if (now->causal && j > own) return -INFINITY;
  if (now->window > 0 && (own - j >= now->window || j - own >= now->window)) return -INFINITY;
  if (mask->data == NULL) return 0;
  double m = rig_get(&mask->type, mask->data, rig_broadcast_at(&mask->type, &space, at));
  if (mask->type.dtype == TN_BOOL) return m != 0 ? 0 : -INFINITY;
  return m > -1e30 ? m : -INFINITY;
}

static void attend(const tn_launch *l, int64_t head, int64_t i) {
  const shape *s = now;
  double *score = calloc((size_t)s->keys, sizeof *score), largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < s->keys; j++) {
    for (int64_t c = 0; c < s->width; c++)
      score[j] += options->scale * get(&l->in[0], s->queries, s->width, head, i, c) *
                  get(&l->in[1], s->keys, s->width, head, j, c);
    score[j] += bias(&l->in[3], head, i, j);
    largest = fmax(largest, score[j]);
  }
  for (int64_t j = 0; j < s->keys; j++) sum += score[j] = largest > -INFINITY ? exp(score[j] - largest) : 0;
  for (int64_t c = 0; c < s->value_width; c++) {
    double y = 0;
    for (int64_t j = 0; j < s->keys && sum > 0; j++)
      y += score[j] / sum * get(&l->in[2], s->keys, s->value_width, head, j, c);
    rig_put(&l->out[0].type, l->out[0].data, place(s->queries, s->value_width, head, i, c), y);
  }
  free(score);
}

static tn_status general_naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status general_naive_launch(tn_launch *l) {
  for (int64_t head = 0; head < now->batch * now->heads; head++)
    for (int64_t i = 0; i < now->queries; i++) attend(l, head, i);
  return TN_OK;
}

static const tn_kernel naive = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "attention as it is defined"),
    .family = "cpu",
    .pattern = "y = general_attention(q, k, v, mask?)",
    .query = general_naive_query,
    .launch = general_naive_launch};

/* ---- cases ---- */

static tn_type tokens_of(const shape *s, int32_t dtype, bool together, int64_t tokens, int64_t width) {
  return together ? RIG_TYPE(dtype, s->batch, tokens, s->heads * width)
                  : RIG_TYPE(dtype, s->batch, s->heads, tokens, width);
}

static tn_type mask_type(const shape *s) {
  int32_t first = 0;
  while (first < 3 && s->mask[first] == 0) first++;
  return rig_type(s->mask_dtype, 4 - first, s->mask + first);
}

/* A fifth of the keys are hidden, and all keys of some rows. */
static void *drawn_mask(const tn_type *type, tn_rng *rng) {
  uint8_t *data = rig_drawn(type, rng);
  int64_t keys = type->dims[type->rank - 1];
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    bool hidden = tn_rng_below(rng, 5) == 0 || (keys > 1 && i / keys % 7 == 3);
    if (type->dtype == TN_BOOL)
      data[i] = !hidden;
    else if (hidden)
      rig_put(type, data, i, i % 2 ? -INFINITY : -1e30);
  }
  return data;
}

static void check(const shape *s, int32_t dtype, bool together, tn_rng *rng) {
  tn_attention_attributes a = {
      .causal = s->causal, .window = s->window, .scale = 0.2, .heads = together ? s->heads : 0};
  tn_type q = tokens_of(s, dtype, together, s->queries, s->width),
          k = tokens_of(s, dtype, together, s->keys, s->width),
          v = tokens_of(s, dtype, together, s->keys, s->value_width),
          y = tokens_of(s, dtype, together, s->queries, s->value_width), mask = mask_type(s);
  void *data[4] = {rig_drawn(&q, rng), rig_drawn(&k, rng), rig_drawn(&v, rng),
                   s->mask_dtype >= 0 ? drawn_mask(&mask, rng) : NULL};
  rig_match m;
  now = s;
  options = &a;
  rig_start(&m);
  int32_t in[4] = {rig_in(&m, &q), rig_in(&m, &k), rig_in(&m, &v),
                   rig_in(&m, s->mask_dtype >= 0 ? &mask : NULL)};
  rig_out(&m, rig_node(&m, "general_attention", &a, in, 4, &y, 1));
  ways_check(&tn_kernel_onednn_general_attention, &naive, &m, data, 1e-5, 1);
  for (int32_t i = 0; i < 4; i++) free(data[i]);
}

static const shape shapes[] = {
    {2, 3, 49, 49, 32, 32, 0, 0, TN_F32, {2, 3, 49, 49}},
    {2, 2, 70, 70, 16, 8, 0, 0, TN_F32, {0, 2, 70, 70}},
    {2, 2, 20, 130, 8, 17, 0, 0, TN_BOOL, {2, 1, 1, 130}},
    {1, 2, 140, 140, 16, 16, 1, 0, TN_F32, {1, 2, 140, 140}},
    {1, 1, 200, 200, 8, 8, 1, 48, -1, {0}},
    {1, 1, 150, 150, 8, 8, 0, 10, -1, {0}},
    {1, 2, 40, 90, 24, 24, 1, 7, TN_BOOL, {0, 0, 40, 90}},
    {2, 1, 66, 66, 5, 3, 0, 0, TN_F32, {2, 1, 66, 1}},
    {1, 1, 3, 5, 1, 1, 0, 1, TN_BOOL, {0, 0, 0, 5}},
    {1, 1, 1, 200, 16, 16, 0, 0, TN_F32, {0, 0, 1, 200}},
    {1, 1, 90, 70, 128, 100, 0, 0, -1, {0}},
};

static void masks_and_windows_hide_keys(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(73, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int32_t k = 0; k < 4; k++) check(&shapes[i], k < 2 ? TN_F32 : TN_BF16, k % 2, &rng);
}

static void other_changes_of_scores_are_refused(void **state) {
  (void)state;
  tn_type q = RIG_TYPE(TN_F32, 1, 2, 4, 8), mask = RIG_TYPE(TN_BF16, 4, 4);
  const tn_attention_attributes all[] = {{.softcap = 2}, {.alibi = 1}, {.scale = 1}};
  static const char *const words[] = {"size or distance", "size or distance", "mask is bf16"};
  for (int32_t c = 0; c < 3; c++) {
    rig_match m;
    rig_start(&m);
    int32_t in[4] = {rig_in(&m, &q), rig_in(&m, &q), rig_in(&m, &q), rig_in(&m, c == 2 ? &mask : NULL)};
    rig_out(&m, rig_node(&m, "general_attention", &all[c], in, 4, &q, 1));
    rig_answer answer = rig_query(&tn_kernel_onednn_general_attention, &m);
    assert_int_equal(answer.status, TN_EUNSUPPORTED);
    if (strstr(answer.text, words[c]) == NULL) fail_msg("%s", answer.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(masks_and_windows_hide_keys),
                                     cmocka_unit_test(other_changes_of_scores_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
