/* plugins/losses/word_errors.c: the metric word_error_rate: the least number of words that are replaced,
 * taken out and put in to make the target of the prediction (Levenshtein, 1966), as a part of the words of
 * the target. */
#include "plugins/losses/losses.h"

#include <math.h>

typedef struct word_options {
  int64_t blank, space, ignore;
} word_options;

static const tn_option word_rows[] = {
    TN_OPT(word_options, blank, TN_OPT_INT, "0", ">= -1",
           "as of ctc: the class that stands for no element, and classes that repeat count once; -1: each "
           "step is an "
           "element"),
    TN_OPT(word_options, space, TN_OPT_INT, "-1", ">= -1",
           "the class between words; -1: every element is a word"),
    TN_OPT(word_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"), TN_OPT_END};

/* A row has the options and sizes, the best class of each step, and the target. */
enum { WORD_BLANK, WORD_SPACE, WORD_MOST_STEPS, WORD_STEPS, WORD_LENGTH, WORD_HEAD };

/* ---- a row of each sample ---- */

static tn_status words_check(tn_build *b, const word_options *o) {
  const tn_type *scores = tn_val_type(b, tn_build_in(b, 0)), *target = tn_val_type(b, tn_build_in(b, 1));
  if (scores->rank != 3 || target->rank != 2 || tn_dtype_is_float(target->dtype))
    return tn_fail(
        b, TN_EINVAL, NULL,
        "scores of rank %d and targets of rank %d (%s), expected scores (N, steps, classes) and class "
        "numbers (N, length)",
        (int)scores->rank, (int)target->rank, tn_dtype_name(target->dtype));
  if (tn_build_n_in(b) == 3)
    return tn_fail(
        b, TN_EINVAL, NULL,
        "3 inputs, expected 2, or 4: scores, target, steps of each sequence, length of each target");
  if (o->blank < 0 && scores->dims[1] != target->dims[1])
    return tn_fail(b, TN_EINVAL, "blank", "%lld steps and %lld targets, expected as many, as blank = -1 says",
                   (long long)scores->dims[1], (long long)target->dims[1]);
  return TN_OK;
}

static tn_val words_column(tn_build *b, int64_t n, double value) {
  const tn_type type = {TN_F32, 2, {n, 1}};
  return tn_full(b, &type, value);
}

/* Input i, a number for each sample; `most` where it is absent. */
static tn_val words_length(tn_build *b, int32_t i, int64_t n, int64_t most) {
  const int64_t column[] = {n, 1};
  if (i >= tn_build_n_in(b)) return words_column(b, n, (double)most);
  return tn_reshape(b, tn_to_dtype(b, tn_build_in(b, i), TN_F32), 2, column);
}

static tn_status build_word_error_rate(tn_build *b, const void *given) {
  const word_options *o = given;
  TN_TRY(words_check(b, o));
  tn_val scores = tn_build_in(b, 0), target = tn_build_in(b, 1);
  int64_t n = tn_val_dim(b, scores, 0), steps = tn_val_dim(b, scores, 1);
  tn_val best = tn_argmax(b, scores, 2), counted = targets_counted(b, target, o->ignore);
  tn_val meant = tn_where(b, counted, target, loss_number_like(b, target, -1));
  if (o->blank < 0) best = tn_where(b, counted, best, loss_number_like(b, best, -1));
  tn_val parts[] = {words_column(b, n, (double)o->blank),
                    words_column(b, n, (double)o->space),
                    words_column(b, n, (double)steps),
                    words_length(b, 2, n, steps),
                    words_length(b, 3, n, tn_val_dim(b, target, 1)),
                    tn_to_dtype(b, best, TN_F32),
                    tn_to_dtype(b, meant, TN_F32)};
  tn_build_yield(b, 0, tn_concat(b, sizeof parts / sizeof *parts, parts, 1));
  return TN_OK;
}

/* ---- words ---- */

typedef struct word {
  const float *at;
  int64_t n;
} word;

static int word_equal(word a, word b) {
  int64_t i = 0;
  while (i < a.n && a.n == b.n && a.at[i] == b.at[i]) i++;
  return a.n == b.n && i == a.n;
}

/* Elements in place of the steps, in order; classes below 0 are ignored. Returns their number. */
static int64_t words_elements(const float *steps, int64_t n, float blank, float *to) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    int repeats = blank >= 0 && (steps[i] == blank || (i > 0 && steps[i] == steps[i - 1]));
    if (!repeats && steps[i] >= 0) to[count++] = steps[i];
  }
  return count;
}

static int64_t words_split(const float *elements, int64_t n, float space, word *words) {
  int64_t count = 0;
  for (int64_t i = 0, end; i < n; i = end + 1) {
    for (end = i; end < n && space >= 0 && elements[end] != space;) end++;
    if (space < 0) words[count++] = (word){elements + i, 1};
    if (end > i) words[count++] = (word){elements + i, end - i};
  }
  return count;
}

/* The least number of changes that make b of a. `row` has room for m + 1. */
static int64_t words_distance(const word *a, int64_t n, const word *b, int64_t m, int64_t *row) {
  for (int64_t k = 0; k <= m; k++) row[k] = k;
  for (int64_t i = 0; i < n; i++) {
    int64_t diagonal = row[0]++;
    for (int64_t k = 0; k < m; k++) {
      int64_t least = diagonal + !word_equal(a[i], b[k]);
      diagonal = row[k + 1];
      if (row[k + 1] + 1 < least) least = row[k + 1] + 1;
      if (row[k] + 1 < least) least = row[k] + 1;
      row[k + 1] = least;
    }
  }
  return row[m];
}

typedef struct word_room {
  float *found, *meant;
  word *words; /* of the prediction, then of the target */
  int64_t *row;
} word_room;

static int64_t words_within(float length, int64_t most) {
  return length < 0 ? 0 : (double)length < (double)most ? (int64_t)length : most;
}

/* Adds the changes and the words of one sample. */
static void words_add(const float *row, int64_t numbers, word_room *r, double *changes, double *words) {
  int64_t most = (int64_t)row[WORD_MOST_STEPS], longest = numbers - WORD_HEAD - most;
  int64_t steps = words_within(row[WORD_STEPS], most), length = words_within(row[WORD_LENGTH], longest);
  const float *path = row + WORD_HEAD, *target = path + most;
  int64_t n = words_elements(path, steps, row[WORD_BLANK], r->found),
          m = words_elements(target, length, -1, r->meant);
  n = words_split(r->found, n, row[WORD_SPACE], r->words);
  word *meant = r->words + n;
  m = words_split(r->meant, m, row[WORD_SPACE], meant);
  *changes += (double)words_distance(r->words, n, meant, m, r->row);
  *words += (double)m;
}

static tn_status word_error_rate_of_rows(const void *handle, const float *rows, int64_t n, const tn_type *row,
                                         double *value) {
  int64_t numbers = row->dims[0];
  double changes = 0, words = 0;
  size_t room = (size_t)numbers + 1;
  word_room r = {tn_new(handle, room * sizeof(float)), tn_new(handle, room * sizeof(float)),
                 tn_new(handle, 2 * room * sizeof(word)), tn_new(handle, room * sizeof(int64_t))};
  tn_status status =
      r.found != NULL && r.meant != NULL && r.words != NULL && r.row != NULL ? TN_OK : TN_ENOMEM;
  for (int64_t i = 0; status == TN_OK && i < n; i++)
    words_add(rows + i * (numbers + 1), numbers, &r, &changes, &words);
  *value = words > 0 ? changes / words : (double)NAN;
  tn_delete(handle, r.found);
  tn_delete(handle, r.meant);
  tn_delete(handle, r.words);
  tn_delete(handle, r.row);
  return status;
}

const tn_layer_kind metric_word_error_rate = {
    .item = TN_ITEM(
        tn_layer_kind, TN_LAYER, "word_error_rate",
        "changes that make the target of the most probable classes, as a part of the target's words, over a "
        "whole validation; training has none; better when small",
        word_options, word_rows),
    .role = TN_LAYER_METRIC,
    .min_in = 2,
    .max_in = 4,
    .types = "scores (N, steps, classes) and targets (N, length), with the numbers of steps and the lengths "
             "(N) as of "
             "ctc; with blank = -1 scores (N, length, classes) and targets (N, length)",
    .example =
        "inputs = x: f32[20, 8]\ntargets = text: i32[6]\nlayers = fc: linear(10)\nloss = ctc\nmetrics = "
        "word_error_rate",
    .build = build_word_error_rate,
    .falls = 1,
    .of_rows = word_error_rate_of_rows};
