/* core/graph/op/domain.c: reads the domains of operands: "x > 0; index [0, table.0)". */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/op/schema.h"

static tn_status domain_fail(const void *handle, const tn_op_def *def, const char *entry,
                             const char *expected) {
  return tn_failf(handle, TN_EABI, "op %s: domain \"%s\": '%s': expected %s", def->op->item.name,
                  def->op->domain, entry, expected);
}

static int32_t domain_find_operand(const tn_op_def *def, const char *name, size_t n) {
  for (int32_t i = 0; i < def->n_operands; i++)
    if (strlen(def->operands[i].name) == n && memcmp(def->operands[i].name, name, n) == 0) return i;
  return -1;
}

/* "[0, table.0)": the upper bound is a dimension. */
static bool domain_read_dimension(const tn_op_def *def, const char *text, tn_operand_def *operand) {
  char low[64];
  const char *comma = strchr(text, ','), *dot = strchr(comma != NULL ? comma : text, '.');
  if (comma == NULL || dot == NULL || (size_t)(comma - text) >= sizeof low - 8) return false;
  const char *name = comma + 1;
  while (*name == ' ') name++;
  char *end;
  operand->below = domain_find_operand(def, name, (size_t)(dot - name));
  operand->axis = (int32_t)strtol(dot + 1, &end, 10);
  if (operand->below < 0 || end == dot + 1 || (strcmp(end, ")") != 0 && strcmp(end, "]") != 0)) return false;
  memcpy(low, text, (size_t)(comma - text));
  memcpy(low + (comma - text), ", inf)", sizeof ", inf)");
  bool read = tn_range_read(low, &operand->domain);
  operand->domain.high_open = *end == ')';
  return read;
}

static tn_status domain_read_entry(const void *handle, const tn_op_def *def, tn_operand_def *operands,
                                   const char *entry) {
  size_t n = 0;
  while (isalnum((unsigned char)entry[n]) || entry[n] == '_') n++;
  int32_t i = domain_find_operand(def, entry, n);
  if (i < 0) return domain_fail(handle, def, entry, "the name of an operand and a range, as in \"x > 0\"");
  const char *range = entry + n;
  while (*range == ' ') range++;
  operands[i].has_domain = true;
  if (tn_range_read(range, &operands[i].domain) || domain_read_dimension(def, range, &operands[i]))
    return TN_OK;
  return domain_fail(handle, def, entry, "a range such as > 0, [0, 1) or [0, x.0) behind the name");
}

tn_status tn_op_def_read_domain(const void *handle, tn_arena *arena, tn_op_def *def) {
  if (def->op->domain == NULL) return TN_OK;
  tn_operand_def *operands = tn_arena_copy(arena, def->operands, (size_t)def->n_operands * sizeof *operands);
  char *rest = tn_arena_strdup(arena, def->op->domain);
  if (operands == NULL || rest == NULL) return TN_ENOMEM;
  for (char *entry; (entry = strsep(&rest, ";")) != NULL;)
    TN_TRY(domain_read_entry(handle, def, operands, tn_text_trim(entry)));
  def->operands = operands;
  return TN_OK;
}
