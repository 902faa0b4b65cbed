/* core/base/system/processors.c: lists of processors: parsing, printing, affinity, order by physical core. */
#include "core/base/system/processors.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TN_MOST_PROCESSORS <= (int)CPU_SETSIZE, "every number fits into a set");

/* Accepts digits only; strtol alone would also accept blanks and signs. */
static bool processors_read_number(const char **text, int64_t *number) {
  size_t digits = strspn(*text, "0123456789");
  if (digits == 0 || digits > 6) return false;
  *number = strtol(*text, NULL, 10);
  *text += digits;
  return *number < TN_MOST_PROCESSORS;
}

/* "3" or "3-5". */
static bool processors_read_range(const char **text, tn_processors *p) {
  int64_t first, last;
  if (!processors_read_number(text, &first)) return false;
  last = first;
  if (**text == '-') {
    ++*text;
    if (!processors_read_number(text, &last)) return false;
  }
  if (last < first || last - first >= TN_MOST_PROCESSORS - p->n) return false;
  for (int64_t number = first; number <= last; number++) p->v[p->n++] = number;
  return true;
}

bool tn_processors_parse(tn_processors *p, const char *text) {
  p->n = 0;
  for (;;) {
    text += strspn(text, " \t");
    if (!processors_read_range(&text, p)) return false;
    text += strspn(text, " \t\n");
    if (*text == '\0') return true;
    if (*text++ != ',') return false;
  }
}

void tn_processors_print(tn_text *text, const tn_processors *p) {
  for (int32_t i = 0; i < p->n;) {
    int32_t last = i;
    while (last + 1 < p->n && p->v[last + 1] == p->v[last] + 1) last++;
    tn_text_addf(text, "%s%lld", i > 0 ? "," : "", (long long)p->v[i]);
    if (last > i) tn_text_addf(text, "-%lld", (long long)p->v[last]);
    i = last + 1;
  }
}

bool tn_processors_allowed(tn_processors *p) {
  cpu_set_t set;
  p->n = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
  for (int32_t i = 0; i < TN_MOST_PROCESSORS; i++)
    if (CPU_ISSET(i, &set)) p->v[p->n++] = i;
  return p->n > 0;
}

/* ---- cores ---- */

static bool processors_read_siblings(const char *folder, int64_t processor, tn_processors *siblings) {
  char path[512], line[4096];
  int n =
      snprintf(path, sizeof path, "%s/cpu%lld/topology/thread_siblings_list", folder, (long long)processor);
  FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
  if (f == NULL) return false;
  bool read = fgets(line, sizeof line, f) != NULL && tn_processors_parse(siblings, line);
  fclose(f);
  return read;
}

/* The number of processors in the list before position i that share a physical core with it. */
static int32_t processors_rank_in_core(const char *folder, const tn_processors *p, int32_t i) {
  tn_processors siblings;
  int32_t rank = 0;
  if (!processors_read_siblings(folder, p->v[i], &siblings)) return 0;
  for (int32_t before = 0; before < i; before++)
    for (int32_t k = 0; k < siblings.n; k++) rank += siblings.v[k] == p->v[before];
  return rank;
}

void tn_processors_spread(tn_processors *p, const char *folder) {
  int32_t ranks[TN_MOST_PROCESSORS], most = 0, n = 0;
  tn_processors spread;
  if (folder == NULL) folder = "/sys/devices/system/cpu";
  for (int32_t i = 0; i < p->n; i++) {
    ranks[i] = processors_rank_in_core(folder, p, i);
    if (ranks[i] > most) most = ranks[i];
  }
  for (int32_t rank = 0; rank <= most; rank++)
    for (int32_t i = 0; i < p->n; i++)
      if (ranks[i] == rank) spread.v[n++] = p->v[i];
  memcpy(p->v, spread.v, (size_t)n * sizeof *p->v);
}
