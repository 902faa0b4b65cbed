#include "tools/cli/plain_result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/context.h"

static json_t *plain_copy(const json_t *from);

static json_t *plain_string(const char *from) {
  char *text = strdup(from);
  if (text == NULL) return NULL;
  tn_text_make_plain(text);
  json_t *string = json_string(text);
  free(text);
  return string;
}

static json_t *plain_array(const json_t *from) {
  json_t *array = json_array(), *one;
  size_t i;
  json_array_foreach(from, i, one) json_array_append_new(array, plain_copy(one));
  return array;
}

static json_t *plain_object(const json_t *from) {
  json_t *object = json_object(), *one;
  const char *name;
  json_object_foreach((json_t *)(uintptr_t)from, name, one) {
    char *key = strdup(name);
    if (key != NULL) tn_text_make_plain(key);
    if (key != NULL) json_object_set_new(object, key, plain_copy(one));
    free(key);
  }
  return object;
}

static json_t *plain_copy(const json_t *from) {
  if (json_is_string(from)) return plain_string(json_string_value(from));
  if (json_is_array(from)) return plain_array(from);
  if (json_is_object(from)) return plain_object(from);
  return json_incref((json_t *)(uintptr_t)from);
}

json_t *cli_load_plain(const char *text) {
  json_t *json = json_loads(text, 0, NULL), *plain = json != NULL ? plain_copy(json) : NULL;
  json_decref(json);
  return plain;
}

json_t *cli_json_text(const char *text) {
  json_t *string = json_string(text);
  return string != NULL ? string : plain_string(text);
}
