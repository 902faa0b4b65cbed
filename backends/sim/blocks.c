/* backends/sim/blocks.c: device addresses, and the table of memory blocks.
 *
 * A device address is the host address with a mark in its upper 16 bits. No pointer of a process has these
 * bits set (x86-64: they must repeat bit 47; AArch64: bit 55 must be 0), so the host faults when it
 * dereferences one. */
#include <string.h>

#include "backends/sim/race/shadow.h"

enum { MARK = 0x5D80, MARK_SHIFT = TN_SIM_ADDRESS_BITS, DEVICE_MASK = 0x3F };

static const uint64_t real_mask = (UINT64_C(1) << MARK_SHIFT) - 1;

bool tn_sim_is_far(const void *address) {
  return ((uint64_t)(uintptr_t)address >> MARK_SHIFT & ~(uint64_t)DEVICE_MASK) == MARK;
}

void *tn_sim_real(const void *address) {
  uint64_t bits = (uint64_t)(uintptr_t)address;
  return (void *)(uintptr_t)(tn_sim_is_far(address) ? bits & real_mask : bits);
}

void *tn_sim_far_address(const tn_sim_device *device, void *real) {
  uint64_t mark = (uint64_t)(MARK | (device->index & DEVICE_MASK));
  return (void *)(uintptr_t)((uint64_t)(uintptr_t)real | mark << MARK_SHIFT);
}

/* ---- the table, sorted by address ---- */

/* Index of the first block that begins after the address. */
static int32_t blocks_find_behind(const tn_sim_device *d, const char *real) {
  int32_t low = 0, high = d->n_blocks;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (d->blocks[middle].real > real)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

tn_sim_block *tn_sim_block_find(tn_sim_device *device, const void *address, uint64_t bytes) {
  const char *real = tn_sim_real(address);
  bool far = tn_sim_is_far(address);
  if (far && tn_sim_far_address(device, tn_sim_real(address)) != address) return NULL;
  int32_t i = blocks_find_behind(device, real) - 1;
  if (i < 0) return NULL;
  tn_sim_block *block = &device->blocks[i];
  uint64_t offset = (uint64_t)(real - block->real);
  if ((block->kind == TN_MEMORY_DEVICE) != far || offset > block->bytes) return NULL;
  return bytes <= block->bytes - offset ? block : NULL;
}

static tn_status blocks_grow(tn_env *env, tn_sim_device *d) {
  if (d->n_blocks < d->blocks_capacity) return TN_OK;
  int32_t capacity = d->blocks_capacity > 0 ? 2 * d->blocks_capacity : 64;
  tn_sim_block *blocks = tn_new(env, sizeof *blocks * (size_t)capacity);
  if (blocks == NULL) return TN_ENOMEM;
  if (d->n_blocks > 0) memcpy(blocks, d->blocks, sizeof *blocks * (size_t)d->n_blocks);
  tn_delete(env, d->blocks);
  d->blocks = blocks;
  d->blocks_capacity = capacity;
  return TN_OK;
}

tn_status tn_sim_block_add(tn_env *env, tn_sim_device *d, const tn_sim_block *block) {
  TN_TRY(blocks_grow(env, d));
  int32_t at = blocks_find_behind(d, block->real);
  memmove(d->blocks + at + 1, d->blocks + at, sizeof *d->blocks * (size_t)(d->n_blocks - at));
  d->blocks[at] = *block;
  d->n_blocks++;
  return TN_OK;
}
