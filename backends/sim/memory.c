/* backends/sim/memory.c: device memory and staging memory: allocation, and the checks when it is given back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/race/shadow.h"

enum { ALIGNMENT = 64 };

/* Of a rehearsal nothing but the host touches memory: what it does not touch costs address space alone. */
static char *memory_map(const tn_sim_device *d, uint64_t bytes) {
  size_t whole = ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (bytes >> TN_SIM_ADDRESS_BITS != 0) return NULL;
  if (!tn_sim_rehearses(d)) return aligned_alloc(ALIGNMENT, whole);
  void *map = mmap(NULL, whole > 0 ? whole : ALIGNMENT, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return map != MAP_FAILED ? map : NULL;
}

static void memory_unmap(const tn_sim_device *d, char *real, uint64_t bytes) {
  if (tn_sim_rehearses(d) && real != NULL)
    munmap(real, bytes > 0 ? bytes : ALIGNMENT);
  else
    free(real);
}

static void memory_free_block(const tn_sim_device *d, tn_sim_block *block) {
  tn_sim_shadow_destroy(block->shadow);
  free(block->copied);
  memory_unmap(d, block->real, block->bytes);
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
  TN_TRY(memory_check_limit(env, d, kind, bytes));
  tn_sim_block block = {.bytes = bytes, .kind = kind};
  block.real = memory_map(d, bytes);
  bool check = d->backend->options.check != 0;
  if (check && block.real != NULL) block.shadow = tn_sim_shadow_create(bytes);
  bool keeps = check && block.real != NULL && kind == TN_MEMORY_STAGING;
  if (keeps) block.copied = malloc((size_t)bytes + 1);
  if (block.real == NULL || (check && block.shadow == NULL) || (keeps && block.copied == NULL)) {
    memory_free_block(d, &block);
    return tn_fail(env, TN_ENOMEM, NULL, "sim: no memory for a block of %llu bytes",
                   (unsigned long long)bytes);
  }
  if (!tn_sim_rehearses(d))
    memset(block.real, 0xFF, bytes); /* NaN in every float type: contents are undefined */
  if (keeps) memset(block.copied, 0xFF, bytes);
  pthread_mutex_lock(&d->lock);
  tn_status status = tn_sim_block_add(env, d, &block);
  if (status == TN_OK && kind == TN_MEMORY_DEVICE) d->bytes += bytes;
  pthread_mutex_unlock(&d->lock);
  if (status == TN_OK)
    *address = kind == TN_MEMORY_DEVICE ? tn_sim_far_address(d, block.real) : block.real;
  else
    memory_free_block(d, &block);
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
    memory_free_block(d, block);
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
  for (int32_t i = 0; i < device->n_blocks; i++) memory_free_block(device, &device->blocks[i]);
  tn_delete(&device->env, device->blocks);
}

tn_status tn_sim_memory_info(tn_env *env, void *device, int64_t *free_bytes, int64_t *all_bytes) {
  tn_sim_device *d = device;
  *all_bytes = *free_bytes = d->backend->options.memory;
  if (*all_bytes == 0)
    return tn_fail(env, TN_EUNSUPPORTED, "memory", "the device has the memory of the host");
  pthread_mutex_lock(&d->lock);
  *free_bytes -= (int64_t)d->bytes;
  pthread_mutex_unlock(&d->lock);
  return TN_OK;
}
