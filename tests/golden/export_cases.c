/* tests/golden/export_cases.c: the cases of a file of goldens as files of ONNX, for compare_exported.py.
 *
 *     export_cases FILE.safetensors FOLDER OPSET
 *
 * Writes FOLDER/CASE.onnx, with '@' for '/', and prints "CASE: reason" for each that cannot be expressed. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../conformance/fixture.h"
#include "core/export/onnx/onnx.h"
#include "golden_file.h"

/* No size of a case is a multiple of it. */
enum { NO_BATCH = 1000003 };

static tn_status read_nothing(void *context, const char *path, void *to, size_t bytes) {
  (void)to, (void)bytes;
  return tn_failf(context, TN_EINTERNAL, "a case has a state '%s'", path);
}

static void case_path(const char *folder, const char *name, char path[512]) {
  snprintf(path, 512, "%s/%s.onnx", folder, name);
  for (char *c = path + strlen(folder) + 1; *c != '\0'; c++)
    if (*c == '/') *c = '@';
}

static tn_status write_case(fixture *f, const golden_case *c, const char *folder, int32_t opset) {
  char path[512];
  tn_graph *graph = NULL;
  tn_onnx_exported made;
  TN_TRY(tn_graph_parse(&f->env, f->ops, c->graph, c->name, &graph));
  case_path(folder, c->name, path);
  const tn_onnx_export_request request = {.env = &f->env,
                                          .graph = graph,
                                          .batch = NO_BATCH,
                                          .path = path,
                                          .opset = opset,
                                          .precision = TN_F32,
                                          .read = read_nothing,
                                          .context = &f->env};
  return tn_onnx_export(&request, &made);
}

/* The lines of a reason as one. */
static void print_reason(const char *name, const char *reason) {
  printf("%s: ", name);
  for (const char *c = reason; *c != '\0'; c++) putchar(*c == '\n' ? ' ' : *c);
  printf("\n");
}

int main(int argc, char **argv) {
  fixture f;
  tn_safetensors *file;
  const char *cursor = NULL;
  golden_case c;
  if (argc != 4) return fprintf(stderr, "usage: export_cases FILE.safetensors FOLDER OPSET\n"), 2;
  if (fixture_open(&f) != TN_OK || tn_safetensors_open(&f.env, argv[1], &file) != TN_OK)
    return fprintf(stderr, "%s\n", tn_error_text(&f.env)), 1;
  while (golden_next(file, &cursor, &c)) {
    tn_error_clear(&f.env);
    tn_status status = write_case(&f, &c, argv[2], atoi(argv[3]));
    if (status == TN_EUNSUPPORTED) print_reason(c.name, tn_error_text(&f.env));
    if (status != TN_OK && status != TN_EUNSUPPORTED)
      return fprintf(stderr, "%s: %s\n%s", c.name, tn_error_text(&f.env), c.graph), 1;
  }
  tn_safetensors_close(file);
  fixture_close(&f);
  return 0;
}
