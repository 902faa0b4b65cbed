/* backends/sim/race/shadow.c: the accesses to a block: ranges of bytes in order, each with its last write and
 * the reads since. An access splits ranges at its ends, and a write merges the ranges that it covers, so a
 * block has about as many ranges as tensors. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/race/shadow.h"

enum { READS = 6 };

typedef struct range {
  uint64_t start; /* it ends where the next one starts */
  tn_sim_access write;
  tn_sim_access reads[READS];
} range;

struct tn_sim_shadow {
  range *v;
  size_t n, capacity;
  uint64_t bytes;
};

/* From the C library, like the block: it stands for device memory, not for memory of the host's allocator. */
tn_sim_shadow *tn_sim_shadow_create(uint64_t bytes) {
  tn_sim_shadow *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  *s = (tn_sim_shadow){.v = calloc(16, sizeof *s->v), .n = 1, .capacity = 16, .bytes = bytes};
  if (s->v != NULL) return s;
  free(s);
  return NULL;
}

void tn_sim_shadow_destroy(tn_sim_shadow *s) {
  if (s == NULL) return;
  free(s->v);
  free(s);
}

/* Index of the range that contains the byte. */
static size_t shadow_find(const tn_sim_shadow *s, uint64_t at) {
  size_t low = 0, high = s->n;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (s->v[middle].start > at)
      high = middle;
    else
      low = middle;
  }
  return low;
}

static bool shadow_reserve(tn_sim_shadow *s, size_t n) {
  if (n <= s->capacity) return true;
  range *v = realloc(s->v, 2 * n * sizeof *v);
  if (v == NULL) return false;
  s->v = v;
  s->capacity = 2 * n;
  return true;
}

/* Splits a range at `at` and returns the index of the range that starts there. There is room for one more. */
static size_t shadow_split(tn_sim_shadow *s, uint64_t at) {
  if (at >= s->bytes) return s->n;
  size_t i = shadow_find(s, at);
  if (s->v[i].start == at) return i;
  memmove(s->v + i + 1, s->v + i, (s->n - i) * sizeof *s->v);
  s->v[i + 1].start = at;
  s->n++;
  return i + 1;
}

static bool shadow_is_before(const tn_sim_access *access, const tn_sim_clock *clock) {
  return access->when == 0 || clock->at[access->clock_index] >= access->when;
}

/* A conflicting access of the range that is not ordered before the clock. */
static const tn_sim_access *shadow_conflict(const range *r, bool write, const tn_sim_clock *clock) {
  if (!shadow_is_before(&r->write, clock)) return &r->write;
  for (int32_t i = 0; write && i < READS; i++)
    if (!shadow_is_before(&r->reads[i], clock)) return &r->reads[i];
  return NULL;
}

/* A read replaces an older one of the same stream, or one that is ordered before it; else the first one. */
static void shadow_add_read(range *r, const tn_sim_access *access, const tn_sim_clock *clock) {
  int32_t entry = 0;
  for (int32_t i = READS - 1; i >= 0; i--)
    if (r->reads[i].when == 0 || (shadow_is_before(&r->reads[i], clock) && r->reads[entry].when != 0))
      entry = i;
  for (int32_t i = 0; i < READS; i++)
    if (r->reads[i].when != 0 && r->reads[i].clock_index == access->clock_index) entry = i;
  r->reads[entry] = *access;
}

static void shadow_set_write(tn_sim_shadow *s, size_t first, size_t end, const tn_sim_access *access) {
  memset(s->v[first].reads, 0, sizeof s->v[first].reads);
  s->v[first].write = *access;
  memmove(s->v + first + 1, s->v + end, (s->n - end) * sizeof *s->v);
  s->n -= end - first - 1;
}

bool tn_sim_shadow_access(tn_sim_shadow *s, uint64_t offset, uint64_t bytes, bool write,
                          const tn_sim_clock *clock, const tn_sim_access *access, tn_sim_access *conflict) {
  *conflict = (tn_sim_access){0};
  if (!shadow_reserve(s, s->n + 2)) return false;
  size_t first = shadow_split(s, offset), end = shadow_split(s, offset + bytes);
  for (size_t i = first; i < end; i++) {
    const tn_sim_access *other = shadow_conflict(&s->v[i], write, clock);
    if (other == NULL) continue;
    *conflict = *other;
    return true;
  }
  if (write) return shadow_set_write(s, first, end, access), true;
  for (size_t i = first; i < end; i++) shadow_add_read(&s->v[i], access, clock);
  return true;
}

bool tn_sim_shadow_settled(const tn_sim_shadow *s, const tn_sim_clock *clock, tn_sim_access *open) {
  for (size_t i = 0; i < s->n; i++) {
    const tn_sim_access *other = shadow_conflict(&s->v[i], true, clock);
    if (other == NULL) continue;
    *open = *other;
    return false;
  }
  return true;
}
