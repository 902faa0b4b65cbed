/* Formulas: the first line is the formula of an op, the second its gradient. One that parses is emitted, and
 * the graph that it makes is valid. */
#include "core/graph/build/emit_formula.h"
#include "core/graph/op/schema.h"
#include "tests/fuzz/ops.h"

typedef struct formula_options {
  double beta;
  int32_t kind;
} formula_options;

static const tn_option rows[] = {TN_OPT(formula_options, beta, TN_OPT_FLOAT, "0.5", NULL, "a factor"),
                                 TN_OPT(formula_options, kind, TN_OPT_ENUM, "b", "a|b", "which branch"),
                                 TN_OPT_END};
static const formula_options options = {0.5, 1};

/* The gradient reads the operands, the result and its gradient; all of them are inputs here. */
static tn_status emit(const tn_op_def *def, tn_build *b, int32_t dtype) {
  const tn_type types[] = {{dtype, 2, {2, 3}}, {dtype, 1, {3}}, {TN_BOOL, 0, {0}}, {dtype, 2, {2, 3}}};
  static const char *const names[] = {"x", "z", "c", "dy"};
  bool want[] = {true, true, false};
  tn_val in[4], y = 0, made[3] = {0};
  for (int32_t i = 0; i < 4; i++) in[i] = tn_graph_input(tn_builder_graph(b), names[i], &types[i]);
  tn_status status = tn_decompose(b, def, &options, in, 3, 1, &y);
  if (status == TN_OK) status = tn_graph_verify(tn_builder_graph(b));
  if (status != TN_OK || def->gradient.text == NULL) return status;
  tn_build_frame frame = {.in = in,
                          .n_in = 3,
                          .out = &y,
                          .dout = &in[3],
                          .n_out = 1,
                          .yielded = made,
                          .n_yield = 3,
                          .want = want,
                          .prefix = "",
                          .where = ""};
  tn_builder_push(b, &frame);
  status = tn_formula_emit_gradient(b, &def->gradient, &options);
  tn_builder_pop(b);
  return status == TN_OK ? tn_graph_verify(tn_builder_graph(b)) : status;
}

static tn_status build(fuzz *f, struct tn_op_table *ops, const tn_op_def *def, int32_t dtype) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  tn_status status = tn_graph_create(&f->env, ops, &graph);
  if (status == TN_OK) status = tn_builder_create(graph, &builder);
  if (status == TN_OK) status = emit(def, tn_builder_handle(builder), dtype);
  if (status != TN_OK && builder != NULL) tn_error_move(&f->env, tn_builder_handle(builder));
  tn_builder_destroy(builder);
  tn_graph_destroy(graph);
  return status;
}

static void parse(fuzz *f, struct tn_op_table *ops, char *text) {
  char *line = strchr(text, '\n');
  if (line != NULL) *line++ = '\0';
  tn_op op = {.item = TN_ITEM(tn_op, TN_OP, "fuzzed", "of formulas", formula_options, rows),
              .schema = "(x:T, z:T, c:bool) -> (y:T)",
              .op_class = TN_CLASS_POINTWISE,
              .formula = text,
              .gradient = line};
  const tn_op_def *def = NULL;
  tn_arena arena = tn_arena_new(&f->env);
  tn_status status = tn_op_def_create(&f->env, &arena, &op, &def);
  fuzz_judge(f, status);
  if (status == TN_OK) {
    fuzz_judge(f, build(f, ops, def, TN_F32));
    fuzz_judge(f, build(f, ops, def, TN_F16));
    fuzz_judge(f, build(f, ops, def, TN_I32));
  }
  tn_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static fuzz_ops ops;
  static const tn_plugin *const none[] = {NULL};
  fuzz f;
  char *text = fuzz_text(bytes, size);
  fuzz_ops_make(&ops, none);
  fuzz_open(&f);
  parse(&f, ops.table, text);
  fuzz_close(&f);
  free(text);
  return 0;
}
