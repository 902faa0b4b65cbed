#include "tests/fakecuda/kernels/warp.h"

#include <stdio.h>

static const char *const warp_names[] = {
    [FAKE_WARP_SYNC] = "__syncwarp",
    [FAKE_WARP_BALLOT] = "__ballot_sync",
    [FAKE_WARP_SHUFFLE] = "__shfl_sync",
    [FAKE_WARP_SHUFFLE_UP] = "__shfl_up_sync",
    [FAKE_WARP_SHUFFLE_DOWN] = "__shfl_down_sync",
    [FAKE_WARP_SHUFFLE_XOR] = "__shfl_xor_sync",
    [FAKE_WARP_MATCH_ANY] = "__match_any_sync",
    [FAKE_WARP_REDUCE_ADD] = "__reduce_add_sync",
    [FAKE_WARP_REDUCE_MIN] = "__reduce_min_sync",
    [FAKE_WARP_REDUCE_MAX] = "__reduce_max_sync",
    [FAKE_WARP_REDUCE_MIN_SIGNED] = "__reduce_min_sync",
    [FAKE_WARP_REDUCE_MAX_SIGNED] = "__reduce_max_sync",
    [FAKE_WARP_REDUCE_AND] = "__reduce_and_sync",
    [FAKE_WARP_REDUCE_OR] = "__reduce_or_sync",
    [FAKE_WARP_REDUCE_XOR] = "__reduce_xor_sync",
};

static fake_warp *warp_call(const fake_block *block, int32_t base, int32_t lane) {
  return block->threads[base + lane].warp;
}

/* The lane that a shuffle reads from: its own where the source lies outside the segment of `width` lanes. */
static int32_t warp_source(const fake_warp *call, int32_t lane) {
  int32_t width = (int32_t)call->width, first = lane & ~(width - 1), last = first + width - 1;
  int64_t source = lane;
  if (call->verb == FAKE_WARP_SHUFFLE) source = first | (int32_t)(call->lane & (call->width - 1));
  if (call->verb == FAKE_WARP_SHUFFLE_UP) source = (int64_t)lane - call->lane;
  if (call->verb == FAKE_WARP_SHUFFLE_DOWN) source = (int64_t)lane + call->lane;
  if (call->verb == FAKE_WARP_SHUFFLE_XOR) source = (int64_t)lane ^ call->lane;
  if (source > last || (call->verb == FAKE_WARP_SHUFFLE_UP && source < first)) return lane;
  return (int32_t)source;
}

static uint32_t warp_combine(int verb, uint32_t a, uint32_t b) {
  switch (verb) {
  case FAKE_WARP_REDUCE_ADD: return a + b;
  case FAKE_WARP_REDUCE_MIN: return a < b ? a : b;
  case FAKE_WARP_REDUCE_MAX: return a > b ? a : b;
  case FAKE_WARP_REDUCE_MIN_SIGNED: return (int32_t)a < (int32_t)b ? a : b;
  case FAKE_WARP_REDUCE_MAX_SIGNED: return (int32_t)a > (int32_t)b ? a : b;
  case FAKE_WARP_REDUCE_AND: return a & b;
  case FAKE_WARP_REDUCE_OR: return a | b;
  default: return a ^ b;
  }
}

static unsigned long long warp_reduce(const fake_block *block, int32_t base, const fake_warp *call) {
  uint32_t sum = 0;
  bool first = true;
  for (int32_t lane = 0; lane < FAKE_WARP; lane++) {
    if (!(call->mask >> lane & 1)) continue;
    uint32_t value = (uint32_t)warp_call(block, base, lane)->value;
    sum = first ? value : warp_combine(call->verb, sum, value);
    first = false;
  }
  return sum;
}

/* The lanes of the mask whose value is not 0, or is equal to the value of `call`. */
static unsigned long long warp_vote(const fake_block *block, int32_t base, const fake_warp *call) {
  uint32_t found = 0;
  for (int32_t lane = 0; lane < FAKE_WARP; lane++) {
    if (!(call->mask >> lane & 1)) continue;
    unsigned long long value = warp_call(block, base, lane)->value;
    bool yes = call->verb == FAKE_WARP_BALLOT ? value != 0 : value == call->value;
    found |= (uint32_t)yes << lane;
  }
  return found;
}

static void warp_finish_lane(const fake_block *block, int32_t base, int32_t lane) {
  fake_warp *call = warp_call(block, base, lane);
  if (call->verb == FAKE_WARP_SYNC) return;
  if (call->verb >= FAKE_WARP_REDUCE_ADD) {
    call->result = warp_reduce(block, base, call);
  } else if (call->verb == FAKE_WARP_BALLOT || call->verb == FAKE_WARP_MATCH_ANY) {
    call->result = warp_vote(block, base, call);
  } else {
    int32_t source = warp_source(call, lane);
    call->result = call->mask >> source & 1 ? warp_call(block, base, source)->value : ~0ull;
  }
}

/* All lanes of the mask wait at the same operation with the same mask. */
static bool warp_complete(const fake_block *block, int32_t base, const fake_warp *call) {
  if ((block->waiting[base / FAKE_WARP] & call->mask) != call->mask) return false;
  for (int32_t lane = 0; lane < FAKE_WARP; lane++) {
    if (!(call->mask >> lane & 1)) continue;
    const fake_warp *other = warp_call(block, base, lane);
    if (other->mask != call->mask || other->verb != call->verb) return false;
  }
  return true;
}

static bool warp_check_call(fake_block *block, const fake_warp *call, int32_t base, int32_t self) {
  const char *name = warp_names[call->verb];
  if (!(call->mask >> self & 1)) {
    fake_block_fail(block, "%s (%s:%d): lane %d calls it with mask 0x%08x, which does not name the lane",
                    name, call->file, call->line, self, call->mask);
    return false;
  }
  if (call->width < 1 || call->width > FAKE_WARP || (call->width & (call->width - 1))) {
    fake_block_fail(block, "%s (%s:%d): width %u, expected a power of two up to 32", name, call->file,
                    call->line, call->width);
    return false;
  }
  for (int32_t lane = 0; lane < FAKE_WARP; lane++) {
    if (!(call->mask >> lane & 1)) continue;
    bool inside = base + lane < block->n_threads;
    if (inside && block->threads[base + lane].state != FAKE_EXITED) continue;
    fake_block_fail(block, "%s (%s:%d): thread %d waits for lane %d of mask 0x%08x, which %s", name,
                    call->file, call->line, base + self, lane, call->mask,
                    inside ? "has exited" : "lies outside the block");
    return false;
  }
  return true;
}

uint32_t fake_warp_arrive(fake_block *block, fake_warp *call) {
  int32_t self = block->current % FAKE_WARP, base = block->current - self;
  if (!warp_check_call(block, call, base, self)) return 0;
  block->threads[block->current].state = FAKE_AT_WARP;
  block->threads[block->current].warp = call;
  block->waiting[base / FAKE_WARP] |= 1u << self;
  if (!warp_complete(block, base, call)) return 0;
  for (int32_t lane = 0; lane < FAKE_WARP; lane++)
    if (call->mask >> lane & 1) warp_finish_lane(block, base, lane);
  block->waiting[base / FAKE_WARP] &= ~call->mask;
  return call->mask;
}

void fake_warp_exit(fake_block *block) {
  int32_t self = block->current % FAKE_WARP, base = block->current - self;
  uint32_t waiting = block->waiting[base / FAKE_WARP];
  for (int32_t lane = 0; waiting && lane < FAKE_WARP; lane++) {
    const fake_warp *call = waiting >> lane & 1 ? warp_call(block, base, lane) : NULL;
    if (!call || !(call->mask >> self & 1)) continue;
    fake_block_fail(block, "%s (%s:%d): thread %d waits for lane %d of mask 0x%08x, which has exited",
                    warp_names[call->verb], call->file, call->line, base + lane, self, call->mask);
    return;
  }
}

void fake_warp_describe(const fake_block *block, int32_t thread, char *text, size_t bytes) {
  int32_t self = thread % FAKE_WARP, base = thread - self;
  const fake_warp *call = block->threads[thread].warp;
  uint32_t missing = 0;
  for (int32_t lane = 0; lane < FAKE_WARP; lane++) {
    if (!(call->mask >> lane & 1)) continue;
    const fake_thread *other = &block->threads[base + lane];
    bool there =
        other->state == FAKE_AT_WARP && other->warp->mask == call->mask && other->warp->verb == call->verb;
    if (!there) missing |= 1u << lane;
  }
  snprintf(text, bytes, "thread %d waits at %s (%s:%d), mask 0x%08x, for lanes 0x%08x, which do not arrive",
           thread, warp_names[call->verb], call->file, call->line, call->mask, missing);
}
