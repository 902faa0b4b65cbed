/* core/exec/regions.c: the regions of state, and the arena. Memory that collectives use may be that of the
 * communicator, and a region may lie in memory of the host. */
#include <string.h>

#include "core/compile/kernels/collective_kernel.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"

static int64_t executor_region_bytes(const tn_executor *e, int32_t r) {
  return (int64_t)tn_region_own_bytes(&e->map->regions.v[r]);
}

/* The rank's part of the region around it. */
static void place_inner_region(tn_executor *e, int32_t r) {
  const tn_region *region = &e->map->regions.v[r];
  if (region->inside < 0 || region->count == 0) return;
  e->regions[r] = (char *)e->regions[region->inside] + (size_t)e->map->rank * tn_region_bytes(region);
}

/* ---- memory of collectives, which the communicator may allocate ---- */

/* A region inside another one is memory of that one. */
static bool lies_in(const tn_executor *e, const tn_operand *operand, int32_t base, int32_t region) {
  const tn_location *l = &operand->location;
  if (l->base != base || base != TN_BASE_REGION) return l->base == base;
  return l->region == region || e->map->regions.v[l->region].inside == region;
}

/* Whether a collective reads or writes the arena, or a region. */
static bool collectives_use(const tn_executor *e, tn_program *const *programs, int32_t n, int32_t base,
                            int32_t region) {
  for (int32_t p = 0; p < n; p++)
    for (int32_t s = 0; s < tn_program_all_steps(programs[p]); s++) {
      const tn_step *step = &programs[p]->steps[s];
      if (tn_kernel_is_collective(step->group->kernel) &&
          (lies_in(e, step->in, base, region) || lies_in(e, step->out, base, region)))
        return true;
    }
  return false;
}

static tn_status allocate_shared(tn_executor *e, bool shared, int64_t bytes, void **address) {
  *address = NULL;
  tn_status status = shared ? tn_comm_memory(e->device, bytes, address) : TN_OK;
  if (status != TN_OK) return tn_executor_fail(e, status);
  return *address != NULL ? TN_OK : tn_executor_allocate(e, TN_MEMORY_DEVICE, bytes, address);
}

static void free_shared(tn_executor *e, void *address, int64_t bytes) {
  if (!tn_comm_memory_free(e->device, address, bytes)) tn_executor_free(e, TN_MEMORY_DEVICE, address, bytes);
}

/* ---- regions ---- */

/* A rehearsal reads no values, and memory without accesses costs address space alone; so does a new file. */
static tn_status create_host_region(tn_executor *e, int32_t r) {
  const tn_region *region = &e->map->regions.v[r];
  bool weights = region->streamed || region->source;
  int64_t bytes = (int64_t)tn_region_bytes(region);
  tn_status status = tn_device_offload_memory(e->device, bytes, &e->regions[r]);
  if (status != TN_OK) {
    tn_wrap(&e->device->env, status, "%lld bytes of host memory for '%s' (%s)", (long long)bytes,
            region->name, weights ? "weights: [run] offload" : "[optimizer] place");
    return tn_executor_fail(e, status);
  }
  bool zeros = e->device->rehearsed != NULL || tn_device_offloads_to_file(e->device);
  if (e->regions[r] != NULL && !zeros) memset(e->regions[r], 0, (size_t)bytes);
  return TN_OK;
}

static void free_region(tn_executor *e, int32_t r) {
  const tn_region *region = &e->map->regions.v[r];
  if (region->inside >= 0 || region->mapped != NULL) return;
  if (tn_region_is_far(region))
    tn_device_offload_memory_free(e->device, e->regions[r], (int64_t)tn_region_bytes(region));
  else
    free_shared(e, e->regions[r], executor_region_bytes(e, r));
}

static tn_status create_region(tn_executor *e, tn_program *const *programs, int32_t n, int32_t r) {
  const tn_region *region = &e->map->regions.v[r];
  int64_t bytes = executor_region_bytes(e, r);
  if (region->inside >= 0) return TN_OK;
  if (tn_region_is_far(region)) return create_host_region(e, r);
  if ((e->regions[r] = region->mapped) != NULL) return TN_OK;
  TN_TRY(allocate_shared(e, collectives_use(e, programs, n, TN_BASE_REGION, r), bytes, &e->regions[r]));
  return tn_executor_zero(e, e->regions[r], bytes);
}

tn_status tn_executor_create_regions(tn_executor *e, tn_program *const *programs, int32_t n) {
  e->regions = tn_alloc(e->env, tn_size_mul(e->map->regions.n, sizeof(void *)));
  if (e->regions == NULL) return TN_ENOMEM;
  e->n_regions = (int32_t)e->map->regions.n;
  for (int32_t r = 0; r < e->n_regions; r++) TN_TRY(create_region(e, programs, n, r));
  for (int32_t r = 0; r < e->n_regions; r++) place_inner_region(e, r);
  return TN_OK;
}

tn_status tn_executor_create_arena(tn_executor *e, tn_program *const *programs, int32_t n) {
  return allocate_shared(e, collectives_use(e, programs, n, TN_BASE_ARENA, -1), e->arena_bytes, &e->arena);
}

void tn_executor_free_regions(tn_executor *e) {
  free_shared(e, e->arena, e->arena_bytes);
  for (int32_t r = 0; r < e->n_regions; r++) free_region(e, r);
}
