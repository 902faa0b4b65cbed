/* core/exec/state_io.c: copies state between device and host. For the caller a state is row-major; in its
 * region it has the layout of its placement. A state in a region that is divided among ranks is copied by the
 * function that was attached for them. */
#include <string.h>

#include "core/exec/bound_program.h"
#include "core/exec/collective.h"
#include "core/exec/stored_copy.h"

/* A part of a region. */
typedef struct extent {
  int32_t region;
  size_t offset, bytes;
  const tn_placement *blocked; /* the state, if its layout is not row-major; else NULL */
  const tn_placement *divided; /* the state, if its region is divided among ranks; else NULL */
  bool host;                   /* the region is in memory of the host */
} extent;

static tn_status find_region_extent(tn_executor *e, const char *name, extent *found) {
  for (int32_t r = 0; r < e->n_regions; r++) {
    const tn_region *region = &e->map->regions.v[r];
    if (!tn_text_equal(region->name, name)) continue;
    *found = (extent){.region = r, .bytes = tn_region_bytes(region), .host = tn_region_is_far(region)};
    return TN_OK;
  }
  return tn_failf(e->env, TN_EINVAL, "there is no state region '@%s'", name);
}

static tn_status find_state_extent(tn_executor *e, const char *path, extent *found) {
  if (path[0] == '@') return find_region_extent(e, path + 1, found);
  const tn_placement *p = tn_state_map_find(e->map, path);
  if (p == NULL) return tn_failf(e->env, TN_EINVAL, "there is no state '%s'", path);
  bool blocked = p->layout.set && !tn_layout_is_row_major(&p->layout, p->type.rank);
  *found = (extent){
      p->region,          (size_t)p->offset * tn_dtype_size(p->type.dtype), tn_type_bytes(&p->type),
      blocked ? p : NULL, tn_state_map_shards(e->map, p) > 1 ? p : NULL,    tn_state_map_is_far(e->map, p)};
  return TN_OK;
}

static tn_status check_divided(tn_executor *e, const extent *found) {
  if (found->divided == NULL || e->divided != NULL) return TN_OK;
  return tn_failf(e->env, TN_EUNSUPPORTED,
                  "state '%s' is divided among %d ranks, and the others are not there to read or write it",
                  found->divided->path, (int)tn_state_map_shards(e->map, found->divided));
}

/* The extent and address of a state, after a check that the caller expects its size; address NULL: empty. */
static tn_status locate_state(tn_executor *e, const char *path, size_t bytes, extent *found, void **address) {
  *address = NULL;
  TN_TRY(find_state_extent(e, path, found));
  if (found->bytes != bytes)
    return tn_failf(e->env, TN_EINVAL, "state '%s' has %zu bytes, not %zu", path, found->bytes, bytes);
  TN_TRY(check_divided(e, found));
  if (bytes > 0) *address = (char *)e->regions[found->region] + (found->divided ? 0 : found->offset);
  return TN_OK;
}

/* ---- copies ---- */

/* host: the state is in memory of the host. */
static tn_status copy_and_wait(tn_executor *e, bool host, int32_t role, void *to, const void *from,
                               size_t bytes) {
  int32_t direction = role == TN_STREAM_COPY_OUT ? TN_COPY_TO_HOST : TN_COPY_TO_DEVICE;
  host = host || e->host_addressable;
  TN_TRY(tn_device_check_process(e->device));
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  /* A run ends on the copy-out stream, so a copy enqueued there follows it. */
  bool follows_run = !host && role == TN_STREAM_COPY_OUT;
  if (!follows_run) TN_TRY(tn_device_wait_stream(e->device, e->device->streams[TN_STREAM_COMPUTE]));
  if (host) return memcpy(to, from, bytes), TN_OK;
  TN_TRY(backend->copy(env, e->device->streams[role], direction, to, from, (uint64_t)bytes));
  return tn_device_wait_stream(e->device, e->device->streams[role]);
}

/* Host memory for a state in its layout on the device; NULL for a row-major state. */
static tn_status allocate_image(tn_executor *e, const extent *found, void **image) {
  *image = NULL;
  if (found->blocked == NULL) return TN_OK;
  *image = tn_alloc(e->env, found->bytes);
  return *image != NULL ? TN_OK : TN_ENOMEM;
}

/* A state, in its layout, from the device or from all ranks. */
static tn_status read_extent(tn_executor *e, const extent *found, void *to, const void *address) {
  if (found->divided != NULL) return e->divided->read(e->divided->context, found->divided, to);
  tn_status status = copy_and_wait(e, found->host, TN_STREAM_COPY_OUT, to, address, found->bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

static tn_status write_extent(tn_executor *e, const extent *found, void *address, const void *from) {
  if (found->divided != NULL) return e->divided->write(e->divided->context, found->divided, from);
  tn_status status = copy_and_wait(e, found->host, TN_STREAM_COPY_IN, address, from, found->bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_read(tn_executor *e, const char *path, void *to, size_t bytes) {
  void *address, *image;
  extent found;
  TN_TRY(locate_state(e, path, bytes, &found, &address));
  if (address == NULL) return TN_OK;
  TN_TRY(allocate_image(e, &found, &image));
  tn_status status = read_extent(e, &found, image != NULL ? image : to, address);
  if (status == TN_OK && image != NULL)
    tn_stored_copy(&found.blocked->type, &found.blocked->layout, image, to, false);
  tn_release(e->env, image);
  return status;
}

tn_status tn_executor_write(tn_executor *e, const char *path, const void *from, size_t bytes) {
  void *address, *image;
  extent found;
  TN_TRY(locate_state(e, path, bytes, &found, &address));
  if (address == NULL) return TN_OK;
  TN_TRY(allocate_image(e, &found, &image));
  e->state_version++;
  if (image != NULL)
    tn_stored_copy(&found.blocked->type, &found.blocked->layout, image, (void *)(uintptr_t)from, true);
  tn_status status = write_extent(e, &found, address, image != NULL ? image : from);
  tn_release(e->env, image);
  return status;
}

tn_status tn_executor_broadcast_region(tn_executor *e, int32_t region) {
  const tn_region *r = &e->map->regions.v[region];
  e->state_version++;
  tn_status status = tn_comm_broadcast(e->device, r->name, r->dtype, r->count, e->regions[region]);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

/* ---- regions that are divided among ranks ---- */

void tn_executor_attach_divided(tn_executor *e, const tn_divided_states *divided) { e->divided = divided; }

tn_status tn_executor_read_region(tn_executor *e, int32_t region, size_t offset, void *to, size_t bytes) {
  const void *address = (const char *)e->regions[region] + offset;
  tn_status status =
      copy_and_wait(e, tn_region_is_far(&e->map->regions.v[region]), TN_STREAM_COPY_OUT, to, address, bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_write_region(tn_executor *e, int32_t region, size_t offset, const void *from,
                                   size_t bytes) {
  void *address = (char *)e->regions[region] + offset;
  e->state_version++;
  tn_status status =
      copy_and_wait(e, tn_region_is_far(&e->map->regions.v[region]), TN_STREAM_COPY_IN, address, from, bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
