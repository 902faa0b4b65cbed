/* core/exec/state_io.c: state of a run, between device and host. The host's end is row-major, however a state
 * lies on the device. */
#include <string.h>

#include "core/exec/bound_program.h"
#include "tenon/plugin/storage.h"

/* A piece of a region; state: the one that does not lie row-major there, NULL. */
typedef struct extent {
  int32_t region;
  size_t offset, bytes;
  const tn_placement *state;
} extent;

static tn_status find_region(tn_executor *e, const char *name, extent *found) {
  for (int32_t r = 0; r < e->n_regions; r++) {
    const tn_region *region = &e->map->regions.v[r];
    if (!tn_text_equal(region->name, name)) continue;
    *found = (extent){.region = r, .bytes = (size_t)region->count * tn_dtype_size(region->dtype)};
    return TN_OK;
  }
  return tn_failf(e->env, TN_EINVAL, "there is no region '@%s' of state", name);
}

static tn_status find_extent(tn_executor *e, const char *path, extent *found) {
  if (path[0] == '@') return find_region(e, path + 1, found);
  const tn_placement *p = tn_state_map_find(e->map, path);
  if (p == NULL) return tn_failf(e->env, TN_EINVAL, "there is no state '%s'", path);
  bool laid = p->layout.set && !tn_layout_is_row_major(&p->layout, p->type.rank);
  *found = (extent){p->region, (size_t)p->offset * tn_dtype_size(p->type.dtype), tn_type_bytes(&p->type),
                    laid ? p : NULL};
  return TN_OK;
}

/* The extent of a state whose size the caller claims to be `bytes`, and its address; NULL if it is empty. */
static tn_status find_state(tn_executor *e, const char *path, size_t bytes, extent *found, void **address) {
  *address = NULL;
  TN_TRY(find_extent(e, path, found));
  if (found->bytes != bytes)
    return tn_failf(e->env, TN_EINVAL, "state '%s' has %zu bytes, not %zu", path, found->bytes, bytes);
  if (bytes > 0) *address = (char *)e->regions[found->region] + found->offset;
  return TN_OK;
}

/* ---- layouts ---- */

/* Copies elements between where they lie, one behind the other, and every `step` elements of a row-major
 * tensor. */
static void copy_row(void *row, void *plain, int64_t n, int64_t step, size_t size, bool lay) {
  for (int64_t k = 0; k < n; k++) {
    char *there = (char *)row + (size_t)k * size, *here = (char *)plain + (size_t)(k * step) * size;
    memcpy(lay ? there : here, lay ? here : there, size);
  }
}

/* Copies a state between its storage and row-major memory; lay: into the storage. It has no padding. */
static void turn(const tn_placement *state, void *stored, void *plain, bool lay) {
  const tn_type *type = &state->type;
  tn_storage storage = tn_storage_of(type, &state->layout);
  const tn_storage_axis *inner = &storage.axis[storage.n - 1];
  size_t size = tn_dtype_size(type->dtype);
  int64_t stride[TN_MAX_RANK], at[TN_MAX_RANK], count = 1;
  for (int32_t i = type->rank; i-- > 0; count *= type->dims[i]) stride[i] = count;
  for (int64_t row = 0; row < storage.count / inner->extent; row++) {
    int64_t held = tn_storage_row(&storage, type, row, at), first = 0;
    for (int32_t i = 0; i < type->rank; i++) first += at[i] * stride[i];
    copy_row((char *)stored + (size_t)(row * inner->extent) * size, (char *)plain + (size_t)first * size,
             held, stride[inner->dim] * inner->scale, size, lay);
  }
}

/* ---- copies ---- */

static tn_status copy_and_wait(tn_executor *e, int32_t role, int32_t direction, void *to, const void *from,
                               size_t bytes) {
  const tn_backend *backend = e->device->backend;
  tn_env *env = &e->device->env;
  /* Every run of a program ends on the copy-out stream, so what is copied there is the latest. */
  bool behind = !e->near && role == TN_STREAM_COPY_OUT;
  if (!behind) TN_TRY(backend->stream_wait(env, e->device->streams[TN_STREAM_COMPUTE]));
  if (e->near) return memcpy(to, from, bytes), TN_OK;
  TN_TRY(backend->copy(env, e->device->streams[role], direction, to, from, (uint64_t)bytes));
  return backend->stream_wait(env, e->device->streams[role]);
}

/* Memory for a state as it lies on the device; NULL where it lies row-major and needs none. */
static tn_status take_image(tn_executor *e, const extent *found, void **image) {
  *image = NULL;
  if (found->state == NULL) return TN_OK;
  *image = tn_alloc(e->env, found->bytes);
  return *image != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_executor_read(tn_executor *e, const char *path, void *to, size_t bytes) {
  void *address, *image;
  extent found;
  TN_TRY(find_state(e, path, bytes, &found, &address));
  if (address == NULL) return TN_OK;
  TN_TRY(take_image(e, &found, &image));
  tn_status status =
      copy_and_wait(e, TN_STREAM_COPY_OUT, TN_COPY_TO_HOST, image != NULL ? image : to, address, bytes);
  if (status == TN_OK && image != NULL) turn(found.state, image, to, false);
  tn_release(e->env, image);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_write(tn_executor *e, const char *path, const void *from, size_t bytes) {
  void *address, *image;
  extent found;
  TN_TRY(find_state(e, path, bytes, &found, &address));
  if (address == NULL) return TN_OK;
  TN_TRY(take_image(e, &found, &image));
  e->state_version++;
  if (image != NULL) turn(found.state, image, (void *)(uintptr_t)from, true);
  tn_status status =
      copy_and_wait(e, TN_STREAM_COPY_IN, TN_COPY_TO_DEVICE, address, image != NULL ? image : from, bytes);
  tn_release(e->env, image);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}
