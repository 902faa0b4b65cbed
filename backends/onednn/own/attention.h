/* backends/onednn/own/attention.h: inner loops of attention over tiles of TN_ATTENTION_TILE queries and as
 * many keys, in f32. A tile of scores has rows of TN_ATTENTION_TILE numbers. */
#ifndef TN_ONEDNN_ATTENTION_H
#define TN_ONEDNN_ATTENTION_H

#include "own/loops.h"

enum { TN_ATTENTION_TILE = 64, TN_ATTENTION_WIDTH = 128 /* of a head, at most */ };

/* Row i of a tile sees its keys up to the first `sees[i]`. */
typedef struct tn_attention_tile {
  float *scores;
  int64_t rows;
  const int32_t *sees;
  float scale;
} tn_attention_tile;

typedef struct tn_attention_loops {
  /* Scores become exp(scale s - m) with m the largest so far, 0 for keys that are not seen. `largest` and
   * `sum` are updated, and `fade` is what earlier sums are to be multiplied with (Milakov and Gimelshein,
   * "Online normalizer calculation for softmax", 2018). */
  void (*soften)(const tn_attention_tile *t, float *largest, float *sum, float *fade);
  /* Scores become probabilities, exp(scale s - lse). */
  void (*recall)(const tn_attention_tile *t, const float *lse);
  /* d = p (d - delta) scale: of probabilities and of the gradient with respect to them */
  void (*differ)(const tn_attention_tile *p, float *d, const float *delta);
  /* y = fade y + more; fade NULL: y + more. n rows of `width`, dense. */
  void (*gather)(float *y, const float *more, const float *fade, int64_t n, int64_t width);
  /* y / sum, and lse = largest + ln(sum) */
  void (*finish)(float *y, float *lse, const float *largest, const float *sum, int64_t n, int64_t width);
  /* delta = sum of x y for each of n rows */
  void (*dot)(const float *x, const float *y, float *delta, int64_t n, int64_t width);
  /* n rows of `width` to `width` rows of TN_ATTENTION_TILE, the rest of which is zeros */
  void (*turn)(const float *from, float *to, int64_t n, int64_t width);
} tn_attention_loops;
TN_LOOPS_DECLARE(tn_attention_loops, tn_loops_attention);

#endif
