/* tools/cli/nearest.c: the name that a mistyped word most likely stands for. */
#include "tools/cli/nearest.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 };

static int nearest_least(int a, int b) { return a < b ? a : b; }

/* The number of letters to insert, remove, replace or swap with a neighbour. */
static int nearest_distance(const char *a, const char *b) {
  int na = (int)strlen(a), nb = (int)strlen(b), d[LONGEST + 1][LONGEST + 1];
  if (na > LONGEST || nb > LONGEST) return LONGEST;
  for (int i = 0; i <= na; i++) {
    for (int j = 0; j <= nb; j++) {
      d[i][j] = i == 0 ? j : i;
      if (i == 0 || j == 0) continue;
      d[i][j] = nearest_least(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                              nearest_least(d[i - 1][j], d[i][j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = nearest_least(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[na][nb];
}

const char *nearest_word(const char *word, const char *const *names, int n) {
  const char *best = NULL;
  int least = 1 + (int)strlen(word) / 4;
  for (int i = 0; i < n; i++) {
    int distance = nearest_distance(word, names[i]);
    if (distance > least || (best && distance == least)) continue;
    best = names[i];
    least = distance;
  }
  return best;
}
