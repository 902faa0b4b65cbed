/* backends/sim/race/shadow.c: who has touched which bytes of a block: ranges in order, each with its last
 * write and the reads since. A range is split where an access begins or ends, and a write makes one range of
 * all that it covers, so there are about as many as there are tensors. */
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

/* Like the block itself this is the device's memory, not the host's; so it comes from the C library. */
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

/* The number of the range that holds the byte. */
static size_t find(const tn_sim_shadow *s, uint64_t at) {
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

static bool reserve(tn_sim_shadow *s, size_t n) {
  if (n <= s->capacity) return true;
  range *v = realloc(s->v, 2 * n * sizeof *v);
  if (v == NULL) return false;
  s->v = v;
  s->capacity = 2 * n;
  return true;
}

/* Makes a range start at `at`, for which there is room; returns its number. */
static size_t split(tn_sim_shadow *s, uint64_t at) {
  if (at >= s->bytes) return s->n;
  size_t i = find(s, at);
  if (s->v[i].start == at) return i;
  memmove(s->v + i + 1, s->v + i, (s->n - i) * sizeof *s->v);
  s->v[i + 1].start = at;
  s->n++;
  return i + 1;
}

static bool before(const tn_sim_access *access, const tn_sim_clock *clock) {
  return access->when == 0 || clock->at[access->who] >= access->when;
}

/* An access of the range that the clock does not know of and that must not happen beside this one. */
static const tn_sim_access *conflict_with(const range *r, bool write, const tn_sim_clock *clock) {
  if (!before(&r->write, clock)) return &r->write;
  for (int32_t i = 0; write && i < READS; i++)
    if (!before(&r->reads[i], clock)) return &r->reads[i];
  return NULL;
}

/* A read takes the place of an older one of the same stream or of one that it follows; where there is none,
 * of the first: that one is forgotten. */
static void add_read(range *r, const tn_sim_access *access, const tn_sim_clock *clock) {
  int32_t place = 0;
  for (int32_t i = READS - 1; i >= 0; i--)
    if (r->reads[i].when == 0 || (before(&r->reads[i], clock) && r->reads[place].when != 0)) place = i;
  for (int32_t i = 0; i < READS; i++)
    if (r->reads[i].when != 0 && r->reads[i].who == access->who) place = i;
  r->reads[place] = *access;
}

static void set_write(tn_sim_shadow *s, size_t first, size_t end, const tn_sim_access *access) {
  memset(s->v[first].reads, 0, sizeof s->v[first].reads);
  s->v[first].write = *access;
  memmove(s->v + first + 1, s->v + end, (s->n - end) * sizeof *s->v);
  s->n -= end - first - 1;
}

bool tn_sim_shadow_access(tn_sim_shadow *s, uint64_t offset, uint64_t bytes, bool write,
                          const tn_sim_clock *clock, const tn_sim_access *access, tn_sim_access *conflict) {
  *conflict = (tn_sim_access){0};
  if (!reserve(s, s->n + 2)) return false;
  size_t first = split(s, offset), end = split(s, offset + bytes);
  for (size_t i = first; i < end; i++) {
    const tn_sim_access *other = conflict_with(&s->v[i], write, clock);
    if (other == NULL) continue;
    *conflict = *other;
    return true;
  }
  if (write) return set_write(s, first, end, access), true;
  for (size_t i = first; i < end; i++) add_read(&s->v[i], access, clock);
  return true;
}

bool tn_sim_shadow_settled(const tn_sim_shadow *s, const tn_sim_clock *clock, tn_sim_access *open) {
  for (size_t i = 0; i < s->n; i++) {
    const tn_sim_access *other = conflict_with(&s->v[i], true, clock);
    if (other == NULL) continue;
    *open = *other;
    return false;
  }
  return true;
}
