/* tests/unit/ops/graph_text.h: small graphs from text, for tests of ops. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "tests/conformance/fixture.h"

/* Parses inputs "a: f32[2, 3]; b: f32[3]" (NULL: none) and one statement. */
static inline tn_status graph_of(fixture *f, const char *inputs, const char *statement, tn_graph **graph) {
  char text[2048];
  size_t n = 0;
  text[0] = '\0';
  while (inputs != NULL && *inputs != '\0') {
    size_t name = strcspn(inputs, ":"), all = strcspn(inputs, ";");
    n += (size_t)snprintf(text + n, sizeof text - n, "%.*s = input(name=%.*s)\n", (int)all, inputs, (int)name,
                          inputs);
    inputs += all + strspn(inputs + all, "; ");
  }
  snprintf(text + n, sizeof text - n, "%s\n", statement);
  *graph = NULL;
  return tn_graph_parse(&f->env, f->ops, text, "test", graph);
}

static inline int open_fixture(void **state) {
  static fixture f;
  *state = &f;
  return fixture_open(&f) == TN_OK ? 0 : -1;
}
static inline int close_fixture(void **state) {
  fixture_close(*state);
  return 0;
}
