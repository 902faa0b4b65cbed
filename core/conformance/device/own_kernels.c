/* core/conformance/device/own_kernels.c: launches the device's own kernels for copy and full, which every
 * device has, and finds the one that fails. */
#include "core/conformance/device/own_kernels.h"

#include "core/compile/kernels/pattern.h"
#include "core/conformance/trial/on_device.h"
#include "core/tensor/tensor.h"
#include "tenon/ops.h"

enum { COUNT = 1000, RUNS = 4 };

/* ---- a program ---- */

/* y = copy(x), z = full(7) */
static tn_status emit_own_ops(tn_graph *graph, tn_builder *builder) {
  const tn_type row = {TN_F32, 1, {COUNT}};
  tn_build *b = tn_builder_handle(builder);
  tn_val x = tn_graph_input(graph, "x", &row);
  if (x == 0) return TN_ENOMEM;
  tn_val y = tn_copy(b, x), z = tn_full(b, &row, 7);
  TN_TRY(tn_build_status(b));
  TN_TRY(tn_graph_output(graph, "y", y));
  return tn_graph_output(graph, "z", z);
}

static tn_status compile_own_ops(tn_device_fixture *f, tn_on_device **program) {
  const tn_device_use *use = f->device->use;
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  TN_TRY(tn_graph_create(f->env, use->ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  if (status == TN_OK) {
    status = emit_own_ops(graph, builder);
    tn_builder_destroy(builder);
  }
  if (status == TN_OK) return tn_on_device_create(f->env, use->context->registry, f->device, graph, program);
  tn_graph_destroy(graph);
  return status;
}

static tn_status expect_output(tn_device_fixture *f, tn_on_device *program, const char *output, double first,
                               double step, const char *wrong) {
  tn_type type;
  double *values = tn_on_device_output(program, output, &type);
  if (values == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < COUNT; i++) tn_device_fixture_expect(f, values[i] == first + step * i, wrong);
  tn_release(f->env, values);
  return TN_OK;
}

static tn_status run_own_ops(tn_device_fixture *f, tn_on_device *program, int32_t run) {
  double x[COUNT];
  for (int32_t i = 0; i < COUNT; i++) x[i] = run + i;
  tn_on_device_input(program, "x", x);
  TN_TRY(tn_on_device_run(program));
  TN_TRY(expect_output(f, program, "y", run, 1,
                       run == 0 ? "a launch of copy does not see its operand or its result"
                                : "a later run of a launch, or its replay, gives another result"));
  return expect_output(f, program, "z", 7, 0, "a launch of full does not write its result");
}

tn_status tn_own_kernels_launch(tn_device_fixture *f) {
  tn_on_device *program = NULL;
  TN_TRY(compile_own_ops(f, &program));
  tn_status status = TN_OK;
  for (int32_t run = 0; run < RUNS && status == TN_OK; run++) status = run_own_ops(f, program, run);
  tn_on_device_destroy(program);
  return status;
}

/* ---- the failing kernel ---- */

static bool fails_on_purpose(tn_device_fixture *f, tn_arena *arena, const tn_kernel *kernel) {
  const tn_pattern *pattern = NULL;
  if (tn_pattern_parse(f->env, arena, kernel->pattern, &pattern) != TN_OK) tn_error_clear(f->env);
  return pattern != NULL && pattern->n_nodes == 1 && tn_text_equal(pattern->nodes[0].op, "device_failure");
}

tn_status tn_own_kernels_find_failing(tn_device_fixture *f, const tn_kernel **kernel) {
  const tn_target *target = &f->device->target;
  tn_arena arena = tn_arena_new(f->env);
  tn_status status = TN_OK;
  *kernel = NULL;
  for (int32_t i = 0; i < target->n_own && status == TN_OK; i++) {
    const tn_entry *entries = NULL;
    int32_t n = 0;
    status =
        tn_registry_kernels(f->device->use->context->registry, f->env, target->families[i], &entries, &n);
    for (int32_t k = 0; k < n && *kernel == NULL; k++)
      if (fails_on_purpose(f, &arena, (const tn_kernel *)entries[k].item))
        *kernel = (const tn_kernel *)entries[k].item;
  }
  tn_arena_free(&arena);
  return status;
}
