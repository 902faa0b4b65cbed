/* core/base/json_list.h: a JSON array that is lost as a whole where memory runs out. */
#pragma once

#include <jansson.h>

/* Appends a new value, which the list owns from here on. Without memory for the value (`one` is NULL) or for
 * its place, the list is released and *list becomes NULL; further calls then release their value. */
static inline void tn_json_list_add(json_t **list, json_t *one) {
  if (json_array_append_new(*list, one) == 0) return;
  json_decref(*list);
  *list = NULL;
}
