/* tests/unit/run/rig.h: an env with Tenon's ops, from which tests of runs parse graphs as text, and
 * print the graphs of the stage under test. */
#pragma once

/* cmocka.h needs these before itself */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/graph/graph.h"

typedef struct rig {
  tn_env env;
  tn_error_record record;
  tn_registry *registry;
  struct tn_op_table *ops;
  _Atomic(int64_t) blocks; /* blocks in use */
} rig;

/* The rig of the running test; set-up and tear-down for cmocka_unit_test_setup_teardown. The tear-down fails
 * if memory leaks. */
extern rig R;
int rig_open(void **state);
int rig_close(void **state);

tn_graph *rig_parse(const char *text);
void rig_expect_ok(tn_status status);
void rig_expect_error(tn_status status, tn_status want, const char *text);
/* The graph is valid and prints as `text`. */
void rig_expect_text(const tn_graph *graph, const char *text);
