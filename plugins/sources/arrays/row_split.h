/* plugins/sources/arrays/row_split.h: which rows are for training, and which for validation. */
#pragma once

#include <stdint.h>

enum { ROW_SPLIT_DRAWN = 0, ROW_SPLIT_END = 1 };

/* The rows of a part, in their order. */
typedef struct row_split {
  int64_t count;      /* rows of the part */
  int64_t rows, held; /* all rows; those for validation. held 0: the part is [first, first + count) */
  int64_t first;
  int32_t valid;
} row_split;

row_split row_split_whole(int64_t rows);
/* The rows for validation, if `valid`, or the others. Where they are drawn, the rows are divided into
 * stretches of equal size, and one of each is for validation. 0: one of the parts is empty. */
int32_t row_split_part(int64_t rows, double part, int32_t at, int32_t valid, row_split *split);
/* The row of sample `index`. */
int64_t row_split_at(const row_split *split, int64_t index);
