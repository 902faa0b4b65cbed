/* core/exec/state_io.c: state of a run, between device and host. */
#include <string.h>

#include "core/exec/bound.h"

/* A piece of a region. */
typedef struct extent {
  int32_t region;
  size_t offset, bytes;
} extent;

static tn_status find_region(tn_executor *e, const char *name, extent *found) {
  for (int32_t r = 0; r < e->n_regions; r++) {
    const tn_region *region = &e->map->regions.v[r];
    if (!tn_text_equal(region->name, name)) continue;
    *found = (extent){r, 0, (size_t)region->count * tn_dtype_size(region->dtype)};
    return TN_OK;
  }
  return tn_failf(e->env, TN_EINVAL, "there is no region '@%s' of state", name);
}

static tn_status find_extent(tn_executor *e, const char *path, extent *found) {
  if (path[0] == '@') return find_region(e, path + 1, found);
  const tn_placement *p = tn_state_map_find(e->map, path);
  if (p == NULL) return tn_failf(e->env, TN_EINVAL, "there is no state '%s'", path);
  *found = (extent){p->region, (size_t)p->offset * tn_dtype_size(p->type.dtype), tn_type_bytes(&p->type)};
  return TN_OK;
}

/* The address of a state whose size the caller claims to be `bytes`; NULL if it is empty. */
static tn_status find_state(tn_executor *e, const char *path, size_t bytes, void **address) {
  extent found = {0};
  *address = NULL;
  TN_TRY(find_extent(e, path, &found));
  if (found.bytes != bytes)
    return tn_failf(e->env, TN_EINVAL, "state '%s' has %zu bytes, not %zu", path, found.bytes, bytes);
  if (bytes > 0) *address = (char *)e->regions[found.region] + found.offset;
  return TN_OK;
}

static tn_status copy_and_wait(tn_executor *e, int32_t role, int32_t direction, void *to, const void *from,
                               size_t bytes) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  /* Every run of a program ends on the copy-out stream, so what is copied there is the latest. */
  bool behind = !e->near && role == TN_STREAM_COPY_OUT;
  if (!behind) TN_TRY(backend->stream_wait(e->device->streams[TN_STREAM_COMPUTE], env));
  if (e->near) return memcpy(to, from, bytes), TN_OK;
  TN_TRY(backend->copy(e->device->streams[role], env, direction, to, from, (uint64_t)bytes));
  return backend->stream_wait(e->device->streams[role], env);
}

tn_status tn_executor_read(tn_executor *e, const char *path, void *to, size_t bytes) {
  void *address;
  TN_TRY(find_state(e, path, bytes, &address));
  if (address == NULL) return TN_OK;
  tn_status status = copy_and_wait(e, TN_STREAM_COPY_OUT, TN_COPY_TO_HOST, to, address, bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_write(tn_executor *e, const char *path, const void *from, size_t bytes) {
  void *address;
  TN_TRY(find_state(e, path, bytes, &address));
  if (address == NULL) return TN_OK;
  e->state_version++;
  tn_status status = copy_and_wait(e, TN_STREAM_COPY_IN, TN_COPY_TO_DEVICE, address, from, bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
