#include "backends/onednn/simd/lanes.h"
#include "backends/onednn/kernels/transpose.h"

/* Exchanges, for halves, quarters and so on of a square, the parts beside its diagonal. */
LANE_INLINE void turn_square(lane_u32 *row) {
#pragma GCC unroll 4
  for (int32_t s = 1; s < LANES; s *= 2) {
    lane_i32 upper = (LANE_NUMBERS & s) != 0;
    lane_i32 first = lane_pick_i32(upper, LANE_NUMBERS - s + LANES, LANE_NUMBERS);
    lane_i32 second = lane_pick_i32(upper, LANE_NUMBERS + LANES, LANE_NUMBERS + s);
#pragma GCC unroll 16
    for (int32_t i = 0; i < LANES; i++) {
      if (i & s) continue;
      lane_u32 a = row[i], b = row[i + s];
      row[i] = __builtin_shuffle(a, b, first);
      row[i + s] = __builtin_shuffle(a, b, second);
    }
  }
}

LANE_INLINE void square(int32_t bytes, const uint8_t *from, int64_t from_stride, uint8_t *to,
                        int64_t to_stride) {
  lane_u32 row[LANES];
  lane_u16 half;
#pragma GCC unroll 16
  for (int32_t i = 0; i < LANES; i++) {
    if (bytes == 4) {
      memcpy(&row[i], from + i * from_stride * 4, sizeof row[i]);
      continue;
    }
    memcpy(&half, from + i * from_stride * 2, sizeof half);
    row[i] = __builtin_convertvector(half, lane_u32);
  }
  turn_square(row);
#pragma GCC unroll 16
  for (int32_t i = 0; i < LANES; i++) {
    if (bytes == 4) {
      memcpy(to + i * to_stride * 4, &row[i], sizeof row[i]);
      continue;
    }
    half = __builtin_convertvector(row[i], lane_u16);
    memcpy(to + i * to_stride * 2, &half, sizeof half);
  }
}

LANE_INLINE void rest(int32_t bytes, const uint8_t *from, int64_t from_stride, uint8_t *to, int64_t to_stride,
                      int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++)
      memcpy(to + (c * to_stride + r) * bytes, from + (r * from_stride + c) * bytes, (size_t)bytes);
}

LANE_INLINE void turn(int32_t bytes, const void *from, int64_t from_stride, void *to, int64_t to_stride,
                      int64_t rows, int64_t columns) {
  const uint8_t *x = from;
  uint8_t *y = to;
  int64_t r = 0, c = 0;
  for (; r + LANES <= rows; r += LANES) {
    for (c = 0; c + LANES <= columns; c += LANES)
      square(bytes, x + (r * from_stride + c) * bytes, from_stride, y + (c * to_stride + r) * bytes,
             to_stride);
    rest(bytes, x + (r * from_stride + c) * bytes, from_stride, y + (c * to_stride + r) * bytes, to_stride,
         LANES, columns - c);
  }
  rest(bytes, x + r * from_stride * bytes, from_stride, y + r * bytes, to_stride, rows - r, columns);
}

static void TN_LOOP(turn_2)(const void *from, int64_t from_stride, void *to, int64_t to_stride, int64_t rows,
                            int64_t columns) {
  turn(2, from, from_stride, to, to_stride, rows, columns);
}
static void TN_LOOP(turn_4)(const void *from, int64_t from_stride, void *to, int64_t to_stride, int64_t rows,
                            int64_t columns) {
  turn(4, from, from_stride, to, to_stride, rows, columns);
}

const tn_turn_loops TN_LOOP(tn_loops_turn) = {LANES, TN_LOOP(turn_2), TN_LOOP(turn_4)};
