/* core/distributed/place/slurm_nodes.c: the compressed lists in Slurm's variables: SLURM_STEP_NODELIST
 * and SLURM_STEP_TASKS_PER_NODE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/distributed/place/place.h"

/* "node[003-007,12]x" is node003x, ...; brackets may follow each other, as in "rack[1-2]n[0-3]". The first
 * name takes the first number of each. */
bool tn_slurm_first_node(const char *list, char *name, size_t size) {
  size_t n = 0;
  for (const char *c = list; *c != '\0' && *c != ','; c++) {
    if (*c == '[') {
      size_t digits = strspn(++c, "0123456789");
      const char *end = strchr(c, ']');
      if (digits == 0 || end == NULL || n + digits >= size) return false;
      memcpy(name + n, c, digits);
      n += digits;
      c = end;
    } else if (n + 1 < size && *c != ']') {
      name[n++] = *c;
    } else {
      return false;
    }
  }
  if (size > 0) name[n] = '\0';
  return n > 0;
}

/* The number at *text, moved behind it, or -1. */
static long slurm_number(const char **text) {
  char *end = NULL;
  if (**text < '0' || **text > '9') return -1;
  long value = strtol(*text, &end, 10);
  *text = end;
  return value <= INT32_MAX ? value : -1;
}

int32_t tn_slurm_tasks_of_node(const char *list, int32_t node) {
  long before = 0;
  while (*list != '\0') {
    long tasks = slurm_number(&list), nodes = 1;
    if (tasks < 1) return -1;
    if (strncmp(list, "(x", 2) == 0) {
      list += 2;
      nodes = slurm_number(&list);
      if (nodes < 1 || *list++ != ')') return -1;
    }
    before += nodes;
    if (node < before) return (int32_t)tasks;
    if (*list == ',') list++;
  }
  return -1;
}
