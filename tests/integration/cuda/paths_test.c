/* Every op of `tenon inspect` has kernels of the backend cuda in each dtype that the conformance suite draws,
 * or a row with the reason in the table of docs/guide/gpu.md, "Ops that fall back", and not both. Uses of the
 * op are compiled for a described device, without a device. GUIDE, DEVICE, PLUGIN: the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/compile/pipeline.h"
#include "core/conformance/cases/schema_case.h"
#include "core/conformance/reference/reference.h"
#include "tests/conformance/fixture.h"

/* Two draws have large shapes, two have operands that die. */
enum { DRAWS = 4, MOST_ROWS = 64, STREAM_SHAPES = 1 };

static fixture f;
static tn_device *device;

/* ---- the table ---- */

typedef struct row {
  char op[64], dtypes[64], reason[256];
} row;

static row rows[MOST_ROWS];
static int n_rows;

/* "| `op` | f64, i64 | the reason |"; other lines are no rows. */
static int read_row(const char *line, row *r) {
  return sscanf(line, "| `%63[^`]` | %63[^|]| %255[^|]|", r->op, r->dtypes, r->reason) == 3;
}

static void read_table(void) {
  char line[1024];
  int inside = 0;
  FILE *file = fopen(GUIDE, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "## ", 3) == 0) inside = strcmp(line, "## Ops that fall back\n") == 0;
    if (inside && n_rows < MOST_ROWS && read_row(line, &rows[n_rows])) n_rows++;
  }
  fclose(file);
  assert_in_range(n_rows, 1, MOST_ROWS - 1);
}

static int is_listed(const char *op, int32_t dtype) {
  char each[80], dtypes[80];
  snprintf(each, sizeof each, " %s,", tn_dtype_name(dtype));
  for (int i = 0; i < n_rows; i++) {
    if (strcmp(rows[i].op, op) != 0) continue;
    int n = (int)strlen(rows[i].dtypes) - 1; /* without the blank before the next column */
    snprintf(dtypes, sizeof dtypes, " %.*s,", n, rows[i].dtypes);
    if (strcmp(dtypes, " all,") == 0 || strstr(dtypes, each) != NULL) return 1;
  }
  return 0;
}

/* ---- compiling a use ---- */

static tn_graph *draw_use(const tn_case *c, int32_t dtype, int64_t draw) {
  tn_builder *builder;
  tn_val results[TN_REFERENCE_RESULTS];
  char name[16];
  tn_draw d = {.rng = tn_rng_at((uint64_t)draw, STREAM_SHAPES),
               .dtype = dtype,
               .draw = draw,
               .large = draw < 2,
               .dying = draw % 2 == 1};
  assert_int_equal(tn_graph_create(&f.env, f.ops, &d.graph), TN_OK);
  assert_int_equal(tn_builder_create(d.graph, &builder), TN_OK);
  d.b = tn_builder_handle(builder);
  tn_val first = c->emit(&d, c);
  if (tn_build_status(d.b) != TN_OK)
    print_error("%s of %s: %s\n", c->op, tn_dtype_name(dtype), tn_error_text(&f.env));
  assert_int_equal(tn_build_status(d.b), TN_OK);
  int32_t n = tn_draw_results(&d, first, results);
  for (int32_t i = 0; i < n; i++) {
    snprintf(name, sizeof name, "y.%d", (int)i);
    assert_int_equal(tn_graph_output(d.graph, name, results[i]), TN_OK);
  }
  tn_builder_destroy(builder);
  return d.graph;
}

/* The launches of collectives belong to no backend. */
static int is_of_cuda(const tn_program *program) {
  for (int32_t i = 0; i < program->n_steps; i++)
    if (strcmp(program->steps[i].group->kernel->family, "cuda") != 0) return 0;
  return 1;
}

static int has_path(const tn_case *c, int32_t dtype, int64_t draw) {
  tn_state_map *map;
  tn_program *program = NULL;
  tn_graph *graph = draw_use(c, dtype, draw);
  assert_int_equal(tn_state_map_create(&f.env, &map), TN_OK);
  tn_status status = tn_compile(&f.env, "case", f.registry, &device->target, graph, map, NULL, &program);
  if (status != TN_OK && status != TN_EUNSUPPORTED) fail_msg("%s: %s", c->op, tn_error_text(&f.env));
  int found = status == TN_OK && is_of_cuda(program);
  tn_graph_destroy(graph);
  tn_program_destroy(program);
  tn_state_map_destroy(map);
  tn_error_clear(&f.env);
  return found;
}

static void check_dtype(const tn_case *c, int32_t dtype) {
  int path = 1, listed = is_listed(c->op, dtype);
  for (int64_t draw = 0; draw < DRAWS && path; draw++) path = has_path(c, dtype, draw);
  if (!path && !listed)
    fail_msg("%s/%s has no kernel of cuda, and no row in %s, 'Ops that fall back'", c->op,
             tn_dtype_name(dtype), GUIDE);
  if (path && listed) fail_msg("%s/%s has a row in %s, and kernels", c->op, tn_dtype_name(dtype), GUIDE);
}

/* ---- tests ---- */

static const tn_op_def *op_of(const char *name) {
  const tn_op_def *def = NULL;
  if (tn_op_table_find(f.ops, &f.env, name, &def) != TN_OK) fail_msg("%s: %s", GUIDE, tn_error_text(&f.env));
  return def;
}

static void every_op_has_a_path_or_a_row(void **state) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  (void)state;
  assert_int_equal(tn_registry_list(f.registry, &f.env, TN_OP, &entries, &n), TN_OK);
  assert_true(n > 80);
  for (int32_t i = 0; i < n; i++) {
    const char *op = entries[i].item->name;
    if (strcmp(op, "loop") == 0) continue; /* the host launches the kernels of its body */
    const tn_case of_schema = {op, tn_schema_emit, TN_FILL_ANY, TN_CASE_NUMBERS}, *c = tn_case_find(op);
    const tn_op_def *def = op_of(op);
    for (int32_t dtype = TN_I32; dtype <= TN_F64; dtype++)
      if (tn_schema_accepts(def, dtype) &&
          (c == NULL || tn_dtype_is_float(dtype) || c->dtypes == TN_CASE_NUMBERS))
        check_dtype(c != NULL ? c : &of_schema, dtype);
  }
}

static void every_row_names_an_op_once_and_gives_a_reason(void **state) {
  (void)state;
  for (int i = 0; i < n_rows; i++) {
    op_of(rows[i].op);
    assert_true(strlen(rows[i].reason) > 10);
    for (int k = 0; k < i; k++) assert_string_not_equal(rows[k].op, rows[i].op);
  }
}

/* The description of a device, without the families that it accepts. */
static const char *write_device(void) {
  static char path[] = "/tmp/tenon-paths-XXXXXX";
  json_t *json = json_load_file(DEVICE, 0, NULL);
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(json_object_del(json, "accepts"), 0);
  assert_int_equal(json_dump_file(json, path, 0), 0);
  json_decref(json);
  return path;
}

static int start(void **state) {
  const tn_device_request request = {.fallback = TN_FALLBACK_NONE};
  (void)state;
  read_table();
  if (fixture_open(&f) != TN_OK || tn_registry_load(f.registry, &f.env, PLUGIN) != TN_OK)
    fail_msg("%s", tn_error_text(&f.env));
  const char *path = write_device();
  tn_status status = tn_device_from_file(&f.env, f.registry, &request, path, &device);
  remove(path);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&f.env));
  return 0;
}

static int end(void **state) {
  (void)state;
  tn_device_destroy(device);
  fixture_close(&f);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_op_has_a_path_or_a_row),
                                     cmocka_unit_test(every_row_names_an_op_once_and_gives_a_reason)};
  return cmocka_run_group_tests(tests, start, end);
}
