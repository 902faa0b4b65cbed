#include "tests/fakecuda/kernels/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff, CANARY = 0xa5, LAUNCH_BUFFER = 4096 };

static bool launch_check(const fake_function *function, const fake_launch *launch, char why[FAKE_TEXT]) {
  fake_dim grid = launch->grid, block = launch->block;
  uint64_t threads = (uint64_t)block.x * block.y * block.z;
  const char *name = function->name;
  if (!threads || !grid.x || !grid.y || !grid.z)
    snprintf(why, FAKE_TEXT, "kernel '%s': grid (%u, %u, %u), block (%u, %u, %u): a size is 0", name, grid.x,
             grid.y, grid.z, block.x, block.y, block.z);
  else if (grid.x > INT32_MAX || grid.y > UINT16_MAX || grid.z > UINT16_MAX)
    snprintf(why, FAKE_TEXT, "kernel '%s': grid (%u, %u, %u), expected at most (2147483647, 65535, 65535)",
             name, grid.x, grid.y, grid.z);
  else if (threads > FAKE_MAX_THREADS || block.x > FAKE_MAX_THREADS || block.y > FAKE_MAX_THREADS ||
           block.z > 64)
    snprintf(why, FAKE_TEXT,
             "kernel '%s': block (%u, %u, %u), expected at most 1024 threads and (1024, 1024, 64)", name,
             block.x, block.y, block.z);
  else if (threads > fake_function_max_threads(function))
    snprintf(why, FAKE_TEXT,
             "kernel '%s': blocks of %" PRIu64 " threads, its __launch_bounds__ says at most %u", name,
             threads, fake_function_max_threads(function));
  else if (launch->shared_bytes > FAKE_DYNAMIC_BYTES)
    snprintf(why, FAKE_TEXT, "kernel '%s': %u bytes of dynamic shared memory, expected at most %d", name,
             launch->shared_bytes, FAKE_DYNAMIC_BYTES);
  else
    return true;
  return false;
}

static uint64_t launch_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static uint64_t launch_gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The order of the blocks: each number below `total` once. Seed 0 gives the order of the numbers. */
typedef struct launch_order {
  uint64_t next, step, total;
} launch_order;

static launch_order launch_begin_order(uint64_t seed, uint64_t total) {
  if (!seed || total < 2) return (launch_order){0, 1, total};
  launch_order order = {launch_mix(seed) % total, launch_mix(seed + 1) % total, total};
  while (launch_gcd(order.step ? order.step : total, total) != 1) order.step = (order.step + 1) % total;
  return order;
}

static uint64_t launch_next(launch_order *order) {
  uint64_t block = order->next;
  order->next =
      block >= order->total - order->step ? block - (order->total - order->step) : block + order->step;
  return block;
}

static void launch_poison(const fake_module *module, char *storage, char *dynamic, uint32_t shared_bytes) {
  for (int32_t i = 0; i < module->n_poisoned; i++)
    memset(storage + module->poisoned[i].offset, POISON, module->poisoned[i].bytes);
  if (!dynamic) return;
  memset(dynamic, POISON, shared_bytes);
  memset(dynamic + shared_bytes, CANARY, FAKE_CANARY_BYTES);
}

static bool launch_wrote_past(const char *dynamic, uint32_t shared_bytes) {
  for (int32_t i = 0; dynamic && i < FAKE_CANARY_BYTES; i++)
    if ((unsigned char)dynamic[shared_bytes + (uint32_t)i] != CANARY) return true;
  return false;
}

static int launch_blocks(const fake_function *function, const fake_launch *launch, fake_block *block) {
  fake_here *here;
  char *dynamic;
  const fake_module *module = function->module;
  module->image->locate(&here, &dynamic);
  char *storage = (char *)here - module->tls_to_here;
  fake_dim grid = launch->grid;
  *here = (fake_here){.block_dim = {launch->block.x, launch->block.y, launch->block.z},
                      .grid_dim = {grid.x, grid.y, grid.z},
                      .state = block};
  block->here = here;
  fake_block_prepare(block, launch->block);
  uint64_t total = (uint64_t)grid.x * grid.y * grid.z;
  launch_order order = launch_begin_order(launch->seed, total);
  for (uint64_t i = 0; i < total; i++) {
    uint64_t number = launch_next(&order), row = number / grid.x;
    here->block =
        (fake_index){(unsigned)(number % grid.x), (unsigned)(row % grid.y), (unsigned)(row / grid.y)};
    launch_poison(module, storage, dynamic, launch->shared_bytes);
    if (fake_block_run(block) != 0) return -1;
    if (launch_wrote_past(dynamic, launch->shared_bytes)) {
      fake_block_fail(block, "a thread wrote past the %u bytes of dynamic shared memory",
                      launch->shared_bytes);
      return -1;
    }
  }
  return 0;
}

int fake_function_run(const fake_function *function, const fake_launch *launch, const void *buffer,
                      char why[FAKE_TEXT]) {
  if (!launch_check(function, launch, why)) return -1;
  fake_block *block = fake_block_get();
  size_t bytes = fake_function_buffer_bytes(function), room = bytes + 64;
  _Alignas(64) char local[LAUNCH_BUFFER];
  char *copy = bytes <= sizeof local ? local : aligned_alloc(64, room / 64 * 64);
  if (!block || !copy) {
    snprintf(why, FAKE_TEXT, "kernel '%s': no memory for a launch", function->name);
    if (copy != local) free(copy);
    return -1;
  }
  if (bytes) memcpy(copy, buffer, bytes);
  block->kernel = function->kernel;
  block->name = function->name;
  block->buffer = copy;
  block->random = launch->seed ? launch_mix(launch->seed + 2) | 1 : 0;
  block->n_threads = (int32_t)(launch->block.x * launch->block.y * launch->block.z);
  block->why = why;
  int result = launch_blocks(function, launch, block);
  if (copy != local) free(copy);
  return result;
}
