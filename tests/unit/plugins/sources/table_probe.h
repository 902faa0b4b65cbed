/* tests/unit/plugins/sources/table_probe.h: tables that a test writes, in a folder of its own, and their
 * rows. */
#pragma once

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source table_source;

/* The folder of the test: setup and teardown of a group. */
extern char *table_folder;
int table_start(void **state);
int table_stop(void **state);

/* Writes a table and opens it; `more` is a list of options, ended by NULL. */
tn_status table_open_part(probe *p, int32_t split, const char *text, const char *inputs, const char *targets,
                          const char *const *more);
/* The training part, which has to open. */
void table_open(probe *p, const char *text, const char *inputs, const char *targets);
/* An element of a field of f32, and a field of one i32. */
float table_number_at(probe *p, int64_t row, int field, int64_t element);
int32_t table_class_at(probe *p, int64_t row, int field);
