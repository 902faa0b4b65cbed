/* backends/sim/memory.c: blocks of device memory and of staging memory.
 *
 * A device address is the host address with a mark in its upper 16 bits. No pointer of a process has these
 * bits set (x86-64: they must repeat bit 47; AArch64: bit 55 must be 0), so the host faults when it
 * dereferences one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/race/shadow.h"

enum { ALIGNMENT = 64, MARK = 0x5D80, MARK_SHIFT = 48, DEVICE_MASK = 0x3F };

static const uint64_t real_mask = (UINT64_C(1) << MARK_SHIFT) - 1;

bool tn_sim_is_far(const void *address) {
  return ((uint64_t)(uintptr_t)address >> MARK_SHIFT & ~(uint64_t)DEVICE_MASK) == MARK;
}

void *tn_sim_real(const void *address) {
  uint64_t bits = (uint64_t)(uintptr_t)address;
  return (void *)(uintptr_t)(tn_sim_is_far(address) ? bits & real_mask : bits);
}

static void *memory_far_address(const tn_sim_device *device, void *real) {
  uint64_t mark = (uint64_t)(MARK | (device->index & DEVICE_MASK));
  return (void *)(uintptr_t)((uint64_t)(uintptr_t)real | mark << MARK_SHIFT);
}

/* ---- the table, sorted by address ---- */

/* Index of the first block that begins after the address. */
static int32_t memory_find_behind(const tn_sim_device *d, const char *real) {
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
  if (far && memory_far_address(device, tn_sim_real(address)) != address) return NULL;
  int32_t i = memory_find_behind(device, real) - 1;
  if (i < 0) return NULL;
  tn_sim_block *block = &device->blocks[i];
  uint64_t offset = (uint64_t)(real - block->real);
  if ((block->kind == TN_MEMORY_DEVICE) != far || offset > block->bytes) return NULL;
  return bytes <= block->bytes - offset ? block : NULL;
}

static tn_status memory_grow_table(tn_env *env, tn_sim_device *d) {
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

static tn_status memory_add_block(tn_env *env, tn_sim_device *d, const tn_sim_block *block) {
  tn_status status = memory_grow_table(env, d);
  if (status != TN_OK) return status;
  int32_t at = memory_find_behind(d, block->real);
  memmove(d->blocks + at + 1, d->blocks + at, sizeof *d->blocks * (size_t)(d->n_blocks - at));
  d->blocks[at] = *block;
  d->n_blocks++;
  return TN_OK;
}

static void memory_free_block(tn_sim_block *block) {
  tn_sim_shadow_destroy(block->shadow);
  free(block->real);
}

/* memory_delete cannot fail, so an error makes all streams of the device fail. */
static void memory_fail_streams(tn_sim_device *d, const char *text) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) tn_sim_failure_set(&d->streams[i].failure, TN_EDEVICE, text);
  tn_env_log(&d->env, TN_LOG_ERROR, "%s", text);
}

/* Reports a block that work accesses for which the host has not waited. All work is done when this is called.
 */
static void memory_check_settled(tn_sim_device *d, const tn_sim_block *block) {
  tn_sim_access open;
  char text[512];
  if (block->shadow == NULL || tn_sim_shadow_settled(block->shadow, &d->host, &open)) return;
  snprintf(text, sizeof text,
           "sim: a block of %llu bytes was given back before the host had waited for '%s', which %s it",
           (unsigned long long)block->bytes, open.name, open.write ? "writes" : "reads");
  memory_fail_streams(d, text);
}

/* The block of this kind, address and size; NULL: there is no such block. */
static tn_sim_block *memory_find_block(tn_sim_device *d, int32_t kind, const void *address, uint64_t bytes) {
  char text[256];
  tn_sim_block *block = tn_sim_block_find(d, address, 0);
  bool whole = block != NULL && block->real == (const char *)tn_sim_real(address);
  if (whole && block->kind == kind && block->bytes == bytes) return block;
  snprintf(text, sizeof text,
           "sim: a block of %llu bytes of %s memory at %p was given back that is not in use",
           (unsigned long long)bytes, kind == TN_MEMORY_STAGING ? "staging" : "device", address);
  memory_fail_streams(d, text);
  return NULL;
}

/* ---- callbacks ---- */

static tn_status memory_check_limit(tn_env *env, tn_sim_device *d, int32_t kind, uint64_t bytes) {
  uint64_t limit = (uint64_t)d->backend->options.memory;
  if (tn_sim_fault(d, TN_SIM_FAIL_ALLOCATION))
    return tn_fail(env, TN_ENOMEM, NULL, "sim: allocation %lld, of %llu bytes, was made to fail",
                   (long long)d->backend->faults.at[TN_SIM_FAIL_ALLOCATION], (unsigned long long)bytes);
  if (kind != TN_MEMORY_DEVICE || limit == 0 || (d->bytes <= limit && bytes <= limit - d->bytes))
    return TN_OK;
  return tn_fail(env, TN_ENOMEM, "memory",
                 "sim: device %d has %llu bytes of memory, %llu of them in use; %llu more do not fit",
                 d->index, (unsigned long long)limit, (unsigned long long)d->bytes,
                 (unsigned long long)bytes);
}

tn_status tn_sim_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  tn_sim_device *d = device;
  *address = NULL;
  tn_status status = memory_check_limit(env, d, kind, bytes);
  if (status != TN_OK) return status;
  tn_sim_block block = {.bytes = bytes, .kind = kind};
  if (bytes <= real_mask)
    block.real = aligned_alloc(ALIGNMENT, ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  bool check = d->backend->options.check != 0;
  if (check && block.real != NULL) block.shadow = tn_sim_shadow_create(bytes);
  if (block.real == NULL || (check && block.shadow == NULL)) {
    memory_free_block(&block);
    return tn_fail(env, TN_ENOMEM, NULL, "sim: no memory for a block of %llu bytes",
                   (unsigned long long)bytes);
  }
  memset(block.real, 0xFF, bytes); /* NaN in every float type: contents are undefined */
  pthread_mutex_lock(&d->lock);
  status = memory_add_block(env, d, &block);
  if (status == TN_OK && kind == TN_MEMORY_DEVICE) d->bytes += bytes;
  pthread_mutex_unlock(&d->lock);
  if (status == TN_OK)
    *address = kind == TN_MEMORY_DEVICE ? memory_far_address(d, block.real) : block.real;
  else
    memory_free_block(&block);
  return status;
}

void tn_sim_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  tn_sim_device *d = device;
  (void)env;
  tn_sim_finish(d);
  pthread_mutex_lock(&d->lock);
  tn_sim_block *block = memory_find_block(d, kind, address, bytes);
  if (block != NULL) {
    memory_check_settled(d, block);
    memory_free_block(block);
    d->n_blocks--;
    memmove(block, block + 1, sizeof *block * (size_t)(d->blocks + d->n_blocks - block));
    if (kind == TN_MEMORY_DEVICE) d->bytes -= bytes;
  }
  pthread_mutex_unlock(&d->lock);
}

void tn_sim_memory_close(tn_sim_device *device) {
  if (device->n_blocks > 0)
    tn_env_log(&device->env, TN_LOG_ERROR, "sim: device %d is closed while %d blocks of memory are in use",
               device->index, device->n_blocks);
  for (int32_t i = 0; i < device->n_blocks; i++) memory_free_block(&device->blocks[i]);
  tn_delete(&device->env, device->blocks);
}
