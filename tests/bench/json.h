/* tests/bench/json.h: reads members of results by name. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static inline double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* "" if there is no such string. */
static inline const char *text(const json_t *object, const char *key) {
  const char *found = json_string_value(json_object_get(object, key));
  return found ? found : "";
}

static inline bool is(const json_t *object, const char *key, const char *value) {
  return strcmp(text(object, key), value) == 0;
}

/* An element of [min, median, max] under a key; which: 0, 1, 2. */
static inline double of_spread(const json_t *object, const char *key, size_t which) {
  return json_number_value(json_array_get(json_object_get(object, key), which));
}
