/* core/onnx/blocks/chains.c: see blocks.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

static const char **chain_place(const block_context *c, const block_item *item, int32_t k) {
  return &c->local[block_value(c->b, block_result_of(c, item, k)) - c->b->lines[c->first].first_value];
}

static const char *chain_name(const block_context *c, const block_item *item) {
  return block_results_of(c, item) > 0 ? *chain_place(c, item, 0) : "";
}

/* The number at the end of a name, of up to six digits, and the length in front of it; -1: none. */
static int64_t chain_number(const char *name, size_t *stem) {
  size_t n = strlen(name), at = n;
  while (at > 0 && isdigit((unsigned char)name[at - 1])) at--;
  *stem = at;
  bool padded = n - at > 1 && name[at] == '0';
  return n == at || n - at > 6 || padded ? -1 : strtoll(name + at, NULL, 10);
}

static bool chain_same(block_ref x, block_ref y) { return x.line == y.line && x.result == y.result; }

/* The line behind the last one of an item. */
static int32_t chain_end(const block_context *c, const block_item *item) {
  return item->group >= 0 ? c->b->groups.v[item->group].end : item->line + 1;
}

/* Whether results but the first go to the next item alone, whose line gives them no names. */
static bool chain_hides(const block_context *c, const block_item *before, const block_item *item) {
  for (int32_t k = 1; k < block_results_of(c, before); k++)
    if (c->b->last_use[block_value(c->b, block_result_of(c, before, k))] >= chain_end(c, item)) return false;
  return true;
}

/* Whether an item reads the results of the one before, and otherwise what the first one reads. */
static bool chain_flows(const block_context *c, const block_item *first, const block_item *before,
                        const block_item *item) {
  block_ref own[BLOCK_MOST_INPUTS], start[BLOCK_MOST_INPUTS];
  int32_t n = block_operands_of(c, item, own), from = block_operands_of(c, first, start);
  int32_t results = block_results_of(c, before);
  if (n < 1 || from < n || (n > 1 && item->group < 0) || (from > 1 && first->group < 0 && n > 1))
    return false;
  for (int32_t i = 0; i < n; i++)
    if (!chain_same(own[i], i < results ? block_result_of(c, before, i) : start[i])) return false;
  /* An activation of a value that is read later stands beside it. */
  bool later = c->b->last_use[block_value(c->b, block_result_of(c, before, 0))] >= chain_end(c, item);
  return chain_hides(c, before, item) && (!later || block_has_weights(c, item));
}

static bool chain_is_layer(const block_context *c, const block_item *item) {
  return item->group >= 0 ||
         (!c->b->lines[item->line].line->computes && c->b->lines[item->line].line->n_names == 1 &&
          c->b->lines[item->line].line->n_operands > 0);
}

/* How many items from `at` on have names that count up from that of the first, each on the one before. */
static int32_t chain_count(const block_context *c, size_t at, size_t stem, int64_t number, bool alike) {
  const block_item *first = &c->items.v[at];
  const char *name = chain_name(c, first);
  int32_t n = 1;
  for (; at + (size_t)n < c->items.n; n++) {
    const block_item *item = first + n, *before = item - 1;
    size_t own;
    const char *next = chain_name(c, item);
    bool counts = chain_number(next, &own) == number + n && own == stem && memcmp(next, name, stem) == 0;
    if (!counts || !chain_is_layer(c, item) || !chain_flows(c, first, before, item)) break;
    if (alike && (item->group < 0 || c->b->groups.v[item->group].kind != c->b->groups.v[first->group].kind))
      break;
  }
  return n;
}

static tn_status chain_take(block_context *c, size_t at, int32_t n, const char *names, const char *value) {
  if (names == NULL) return TN_ENOMEM;
  block_item *first = &c->items.v[at];
  for (int32_t i = 1; i < n; i++) first[i].chained = 0;
  first->chained = n;
  first->names = names;
  first->value = value;
  return TN_OK;
}

/* "layer1" for layer1.0, layer1.1 and so on. */
static tn_status chain_of_list(block_context *c, size_t at, size_t stem, int32_t *n) {
  const char *name = chain_name(c, &c->items.v[at]);
  *n = chain_count(c, at, stem, 0, false);
  const char *all = tn_arena_printf(c->b->arena, "%.*s", (int)stem - 1, name);
  if (all == NULL) return TN_ENOMEM;
  if (*n < 2 || tn_name_index_find(&c->used, all) != TN_NAME_INDEX_NONE) {
    *n = 1;
    return TN_OK;
  }
  TN_TRY(tn_name_index_add(&c->used, all));
  *chain_place(c, &c->items.v[at] + *n - 1, 0) = all;
  return chain_take(c, at, *n, all, NULL);
}

/* "encoder_layer_{i}" for encoder_layer_0, encoder_layer_1 and so on. */
static tn_status chain_of_words(block_context *c, size_t at, size_t stem, int64_t number, int32_t *n) {
  const char *name = chain_name(c, &c->items.v[at]);
  *n = chain_count(c, at, stem, number, true);
  if (*n < 2) return TN_OK;
  const char *all = number > 0
                        ? tn_arena_printf(c->b->arena, "%.*s{i+%lld}", (int)stem, name, (long long)number)
                        : tn_arena_printf(c->b->arena, "%.*s{i}", (int)stem, name);
  return chain_take(c, at, *n, all, chain_name(c, &c->items.v[at] + *n - 1));
}

tn_status block_find_chains(block_context *c) {
  int32_t n;
  for (size_t at = 0; at < c->items.n; at += (size_t)n) {
    const block_item *item = &c->items.v[at];
    const char *name = chain_name(c, item);
    size_t stem = 0;
    int64_t number = chain_is_layer(c, item) ? chain_number(name, &stem) : -1;
    bool list = stem > 1 && name[stem - 1] == '.', word = stem > 0 && !list && item->group >= 0;
    n = 1;
    if (number == 0 && list) TN_TRY(chain_of_list(c, at, stem, &n));
    if (number >= 0 && word && block_has_weights(c, item)) TN_TRY(chain_of_words(c, at, stem, number, &n));
  }
  return TN_OK;
}
