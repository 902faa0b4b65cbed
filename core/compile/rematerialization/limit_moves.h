/* core/compile/rematerialization/limit_moves.h: the moves of the search under memory_limit: each changes how
 * one idle value gets to backward, so that it takes no memory at the peak. */
#pragma once

#include "core/compile/rematerialization/offload_times.h"
#include "core/compile/rematerialization/plan_summary.h"

enum {
  TN_MOVE_DISCARD = 0, /* a value that is kept, or that waits for its copy to the host: it is made again */
  TN_MOVE_OFFLOAD = 1, /* a value that is kept, or made again by the peak: it is copied to the host */
  TN_MOVE_OFFLOAD_AWAITED = 2, /* as well, and compute waits for the copy to the host */
  TN_MOVE_OFFLOAD_LATE = 3,    /* as well, and it comes back when it is read */
  TN_MOVE_OFFLOAD_WAITING = 4, /* as well, and both */
  TN_MOVE_AWAIT = 5,      /* an offloaded value that waits for its copy to the host: compute waits for it */
  TN_MOVE_FETCH_LATE = 6, /* an offloaded value whose copy has come back: it comes back when it is read */
  TN_MOVES = 7
};

typedef struct tn_limit_move {
  int32_t index; /* of the idle value; -1: none */
  int32_t kind;
  tn_value_choice before; /* of a move that was made */
} tn_limit_move;

/* Of a kind of move and an idle value. */
enum { TN_MOVE_OPEN = 0, TN_MOVE_MADE = 1, TN_MOVE_REJECTED = 2 };

typedef struct tn_limit_moves {
  tn_forward_backward fb;
  tn_rematerialization rematerialization;
  bool offload;           /* values may be offloaded */
  tn_offload_times times; /* with offload */
  tn_plan_summary current;
  uint8_t *state[TN_MOVES]; /* per idle value: TN_MOVE_... */
} tn_limit_moves;

static inline tn_value_choice *tn_limit_choice(const tn_limit_moves *l, const tn_limit_move *move) {
  return &l->rematerialization.choice[l->fb.idle.v[move->index].value];
}

/* The move that frees the most bytes at the peak of `current` for each second that it adds. borders: values
 * on the borders of blocks may be made again, and compute may wait for copies. Index -1: no move frees any.
 */
tn_limit_move tn_limit_best_move(tn_limit_moves *moves, bool borders);
/* Changes the choice of the value. */
void tn_limit_make_move(const tn_limit_moves *moves, const tn_limit_move *move);
