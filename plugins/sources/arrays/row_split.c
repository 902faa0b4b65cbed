/* plugins/sources/arrays/row_split.c: see row_split.h. No table of rows is kept: they may be many. */
#include "plugins/sources/arrays/row_split.h"

#include "tenon/random.h"

/* The draw is the same in every run. */
static const uint64_t ROW_SPLIT_KEY = 0x726f777300000001u;

row_split row_split_whole(int64_t rows) { return (row_split){.count = rows}; }

int32_t row_split_part(int64_t rows, double part, int32_t at, int32_t valid, row_split *split) {
  int64_t held = (int64_t)((double)rows * part + 0.5);
  if (held < 1 || held >= rows) return 0;
  *split = (row_split){.count = valid ? held : rows - held, .rows = rows, .held = held, .valid = valid};
  if (at == ROW_SPLIT_DRAWN) return 1;
  split->held = 0;
  split->first = valid ? rows - held : 0;
  return 1;
}

/* The first row of stretch k of `held`, without a product that overflows. */
static int64_t row_split_stretch(const row_split *s, int64_t k) {
  return k * (s->rows / s->held) + k * (s->rows % s->held) / s->held;
}

static int64_t row_split_drawn(const row_split *s, int64_t k) {
  int64_t first = row_split_stretch(s, k), n = row_split_stretch(s, k + 1) - first;
  return first + (int64_t)(tn_hash_mix(ROW_SPLIT_KEY, (uint64_t)k) % (uint64_t)n);
}

/* The last stretch in front of which at most `index` rows are for training: bisection. */
static int64_t row_split_find(const row_split *s, int64_t index) {
  int64_t low = 0, high = s->held;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (row_split_stretch(s, middle) - middle <= index)
      low = middle;
    else
      high = middle;
  }
  return low;
}

int64_t row_split_at(const row_split *s, int64_t index) {
  if (s->held == 0) return s->first + index;
  if (s->valid) return row_split_drawn(s, index);
  int64_t k = row_split_find(s, index), row = index + k;
  return row < row_split_drawn(s, k) ? row : row + 1;
}
