#include "tests/unit/compile/fixture.h"

#include "core/compile/select/select.h"

#include "core/ops/ops.h"
#include "core/plugin/handles.h"

/* The context pointer is the fixture, so several fixtures can be open at once. */
static void *counted(void *context, void *block, size_t bytes) {
  fixture *f = context;
  if (bytes == 0) {
    if (block != NULL) f->blocks--;
    free(block);
    return NULL;
  }
  if (f->left == 0) return NULL;
  if (f->left > 0) f->left--;
  void *grown = realloc(block, bytes);
  if (block == NULL && grown != NULL) f->blocks++;
  return grown;
}

static void add_kernels(fixture *f, const tn_item *const *kernels) {
  tn_plugin plugin = {sizeof plugin, TN_ABI_MAJOR, TN_ABI_MINOR,  0,      "made",
                      "1",           "MIT",        TN_BUILD_TEXT, kernels};
  assert_int_equal(tn_registry_add(f->registry, &f->env, &plugin, ""), TN_OK);
}

void fixture_open(fixture *f, const tn_item *const *kernels) {
  static const char *const families[] = {"t"};
  memset(f, 0, sizeof *f);
  f->left = -1;
  tn_error_record_init_root(&f->env, &f->record, &tn_host_api);
  f->record.allocator = (tn_allocator){f, counted};
  assert_int_equal(tn_registry_create(&f->env, "", &f->registry), TN_OK);
  assert_int_equal(tn_registry_add(f->registry, &f->env, tn_core_ops(), ""), TN_OK);
  add_kernels(f, kernels);
  assert_int_equal(tn_op_table_create(&f->env, f->registry, &f->ops), TN_OK);
  assert_int_equal(tn_state_map_create(&f->env, &f->map), TN_OK);
  f->target.properties.struct_size = sizeof f->target.properties;
  f->target.properties.threads = 1;
  tn_properties_complete(&f->target.properties);
  fixture_families(f, families, 1);
}

void fixture_families(fixture *f, const char *const *families, int32_t n) {
  f->target.families = families;
  f->target.n_families = n;
}

void fixture_close(fixture *f) {
  f->left = -1;
  tn_state_map_destroy(f->map);
  tn_op_table_destroy(f->ops);
  tn_registry_destroy(f->registry);
  assert_int_equal(f->blocks, 0);
}

static void expect_ok(fixture *f, tn_status status) {
  if (status != TN_OK) fail_msg("%s", tn_error_text(&f->env));
}

tn_graph *fixture_graph(fixture *f, const char *text) {
  tn_graph *graph = NULL;
  expect_ok(f, tn_graph_parse(&f->env, f->ops, text, "test", &graph));
  return graph;
}

tn_cover *fixture_cover(fixture *f, const char *text) {
  tn_graph *graph = fixture_graph(f, text);
  tn_assignment assignment;
  tn_cover *cover = NULL;
  if (tn_pass_assign(&f->env, f->registry, &f->target, graph, &assignment) != TN_OK ||
      tn_pass_select(&assignment, &cover) != TN_OK)
    fail_msg("%s", tn_error_text(&f->env));
  tn_graph_destroy(graph);
  return cover;
}

static tn_status add_states(fixture *f, const tn_graph *graph) {
  return tn_state_map_add_rest(f->map, graph);
}

static tn_program *compile_graph(fixture *f, const char *text, const tn_compile_options *options) {
  tn_graph *graph = fixture_graph(f, text);
  tn_program *program = NULL;
  expect_ok(f, add_states(f, graph));
  expect_ok(f, tn_compile(&f->env, "p", f->registry, &f->target, graph, f->map, options, &program));
  tn_graph_destroy(graph);
  return program;
}

tn_program *fixture_program(fixture *f, const char *text) { return compile_graph(f, text, NULL); }

tn_program *fixture_repeated_program(fixture *f, const char *text) {
  const tn_compile_options options = {.keep_constants = true};
  return compile_graph(f, text, &options);
}

char *fixture_text(fixture *f, const char *text, pass after) {
  tn_text dump = tn_text_new(&f->env);
  const tn_compile_options options = {
      .dump_after = tn_compile_passes[after], .dump = &dump, .keep_constants = after == KEPT};
  tn_program_destroy(compile_graph(f, text, &options));
  char *all = tn_text_take(&dump);
  /* without the first line, which names the pass */
  char *body = strchr(all, '\n') + 1;
  memmove(all, body, strlen(body) + 1);
  return all;
}

const char *fixture_failure(fixture *f, const char *text, tn_status status) {
  tn_graph *graph = fixture_graph(f, text);
  tn_program *program = NULL;
  tn_status found = add_states(f, graph);
  if (found == TN_OK)
    found = tn_compile(&f->env, "p", f->registry, &f->target, graph, f->map, NULL, &program);
  assert_null(program);
  tn_graph_destroy(graph);
  assert_int_equal(found, status);
  return tn_error_text(&f->env);
}

const char *fixture_reason(const tn_group *g, const char *kernel) {
  for (int32_t i = 0; i < g->n_rejected; i++)
    if (strcmp(g->rejected[i].kernel, kernel) == 0) return g->rejected[i].reason;
  return NULL;
}
