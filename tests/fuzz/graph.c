/* Graph text: a graph that parses is valid, and prints as text that parses to the same graph. */
#include "tests/fuzz/ops.h"

static void read_back(fuzz *f, struct tn_op_table *ops, const tn_graph *graph) {
  tn_text once = tn_text_new(f), twice = tn_text_new(f);
  tn_graph *again = NULL;
  tn_status status = tn_graph_print(graph, &once);
  if (status == TN_OK && once.v) {
    status = tn_graph_parse(&f->env, ops, once.v, "printed", &again);
    fuzz_expect(status == TN_OK || status == TN_ENOMEM, tn_error_text(f));
  }
  if (status == TN_OK && again) status = tn_graph_print(again, &twice);
  if (status == TN_OK && again)
    fuzz_expect(tn_text_equal(once.v, twice.v), "printed text parses to something else");
  tn_graph_destroy(again);
  tn_text_free(&once);
  tn_text_free(&twice);
}

static tn_status parse(fuzz *f, struct tn_op_table *ops, const char *text) {
  tn_graph *graph = NULL;
  tn_status status = tn_graph_parse(&f->env, ops, text, "fuzz", &graph);
  if (status != TN_OK) return status;
  tn_status verified = tn_graph_verify(graph);
  fuzz_judge(f, verified);
  if (verified == TN_OK) read_back(f, ops, graph);
  tn_graph_destroy(graph);
  return TN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static fuzz_ops ops;
  static const tn_plugin *const none[] = {NULL};
  fuzz f;
  char *text = fuzz_text(bytes, size);
  fuzz_ops_make(&ops, none);
  fuzz_open(&f);
  fuzz_judge(&f, parse(&f, ops.table, text));
  fuzz_close(&f);
  free(text);
  return 0;
}
