/* core/onnx/blocks/choose.c: see blocks.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- lines that a group takes ---- */

/* Lines of a block beside those of its layers: a blank one, [block NAME], args or inputs, and `layers`. */
enum { CHOOSE_HEADING = 4, CHOOSE_LEAST_COST = 2 };

static bool choose_repeats(const blocks *b, const block_group *g) {
  return g->kind >= 0 && b->kinds.v[g->kind].count > 1 && g->cost >= CHOOSE_LEAST_COST;
}

/* Whether a group goes on where another one ends, as layer1.1 after layer1.0: one line may have both. */
static bool choose_follows(const block_group *g, const block_group *before) {
  size_t n = strlen(g->path), old = strlen(before->path);
  while (n > 0 && isdigit((unsigned char)g->path[n - 1])) n--;
  while (old > 0 && isdigit((unsigned char)before->path[old - 1])) old--;
  return n == old && n < strlen(g->path) && memcmp(g->path, before->path, n) == 0 && before->end == g->first;
}

/* Groups inside come behind the group, in order; `last` has the last one of each group so far. */
static tn_status choose_find_costs(blocks *b) {
  int32_t n = (int32_t)b->groups.n, *next = tn_arena_alloc(b->arena, (size_t)n * sizeof *next + 1);
  if (next == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    b->groups.v[i].cost += b->groups.v[i].end - b->groups.v[i].first, next[i] = -1;
  for (int32_t i = n; i-- > 0;) {
    block_group *g = &b->groups.v[i];
    if (g->parent < 0) continue;
    block_group *parent = &b->groups.v[g->parent];
    int32_t sibling = next[g->parent]; /* the one behind this */
    int32_t cost = choose_repeats(b, g) ? 1 : g->cost;
    parent->cost += cost - (g->end - g->first);
    bool both = sibling >= 0 && choose_repeats(b, g) && choose_repeats(b, &b->groups.v[sibling]);
    if (both && choose_follows(&b->groups.v[sibling], g)) parent->cost--;
    next[g->parent] = i;
  }
  return TN_OK;
}

/* ---- kinds ---- */

/* Whether a group is written: all blocks around it are written by the groups around it. */
static bool choose_is_written(const blocks *b, const block_group *g) {
  for (int32_t i = g->parent; i >= 0; i = b->groups.v[i].parent) {
    int32_t kind = b->groups.v[i].kind;
    if (kind >= 0 && b->kinds.v[kind].chosen && b->kinds.v[kind].group != i) return false;
  }
  return true;
}

/* The first group that is written gives the block its lines. *uses: the lines that use it. */
static int32_t choose_count(const blocks *b, block_kind *kind, int32_t *uses) {
  int32_t count = 0, before = -1;
  *uses = 0;
  for (int32_t i = kind->head; i >= 0; i = b->groups.v[i].next) {
    if (!choose_is_written(b, &b->groups.v[i])) continue;
    if (count++ == 0) kind->group = i;
    *uses += before < 0 || !choose_follows(&b->groups.v[i], &b->groups.v[before]);
    before = i;
  }
  return count;
}

typedef struct choose_entry {
  int32_t kind, lines;
} choose_entry;

static int choose_compare(const void *x, const void *y) {
  const choose_entry *a = x, *b = y;
  if (a->lines != b->lines) return a->lines < b->lines ? 1 : -1;
  return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static tn_status choose_kind(blocks *b, int32_t number) {
  block_kind *kind = &b->kinds.v[number];
  if (kind->count < 2) return TN_OK;
  const block_group *g = &b->groups.v[kind->group];
  int32_t uses, count = choose_count(b, kind, &uses);
  bool few = false;
  if (g->cost < CHOOSE_LEAST_COST || (count - 1) * g->cost < uses + CHOOSE_HEADING) return TN_OK;
  TN_TRY(block_find_flows(b, kind, &few));
  if (few) TN_TRY(block_find_args(b, kind, &few));
  kind->chosen = few;
  return TN_OK;
}

/* Large ones first: inside of a block that is chosen, its first group alone counts. */
tn_status block_choose(blocks *b) {
  choose_entry *entries = tn_arena_alloc(b->arena, b->kinds.n * sizeof *entries + 1);
  if (entries == NULL) return TN_ENOMEM;
  TN_TRY(choose_find_costs(b));
  for (size_t i = 0; i < b->kinds.n; i++) {
    const block_group *g = &b->groups.v[b->kinds.v[i].group];
    entries[i] = (choose_entry){(int32_t)i, g->end - g->first};
  }
  qsort(entries, b->kinds.n, sizeof *entries, choose_compare);
  for (size_t i = 0; i < b->kinds.n; i++) TN_TRY(choose_kind(b, entries[i].kind));
  return TN_OK;
}
