#include "core/step/graphs/sample_outputs.h"

#include "core/model/model.h"
#include "tenon/ops.h"

/* Scores of so few classes may be a picture, and are small. */
enum { FEW_CLASSES = 3 };

/* Whether a target has a class number for each place of these scores: it has their dimensions from `first`
 * on, without that of the classes. */
static bool sample_has_classes(const tn_signature *signature, const tn_type *scores, int32_t first) {
  for (int32_t i = 0; i < signature->n_targets; i++) {
    const tn_type *target = &signature->targets[i].type;
    bool fits = !tn_dtype_is_float(target->dtype) && target->rank == scores->rank - 2;
    for (int32_t d = 0; fits && d < target->rank; d++)
      fits = target->dims[d] < 0 || target->dims[d] == scores->dims[first + d];
    if (fits) return true;
  }
  return false;
}

/* Outputs beside the main one, the first or the one called "output", are scores of the target of their name.
 * The corners of `boxes` are no scores. */
static bool sample_may_be_scores(const tn_signature *signature, const tn_graph *graph, size_t i) {
  const char *name = graph->outputs.v[i].name;
  bool scores = i == 0 || tn_text_equal(name, "output");
  for (int32_t k = 0; k < signature->n_targets; k++)
    scores = scores || tn_text_equal(name, signature->targets[k].name);
  return scores && !tn_text_equal(name, "boxes");
}

/* The axis of the classes; -1: the value stays. */
static int64_t sample_class_axis(const tn_signature *signature, const tn_type *type) {
  int32_t last = type->rank - 1;
  if (!tn_dtype_is_float(type->dtype) || type->rank < 3) return -1;
  if (type->dims[last] > 1 && sample_has_classes(signature, type, 1)) return last;
  return type->rank == 4 && type->dims[1] > FEW_CLASSES && sample_has_classes(signature, type, 2) ? 1 : -1;
}

tn_status tn_sample_outputs(tn_run *run, tn_graph *graph) {
  tn_signature signature = {.n_targets = 0};
  tn_builder *builder = NULL;
  TN_TRY(tn_signature_read(&run->env, &run->arena, &run->ini, &signature));
  TN_TRY(tn_builder_create(graph, &builder));
  tn_build *b = tn_builder_handle(builder);
  for (size_t i = 0; i < graph->outputs.n; i++) {
    tn_goutput *output = &graph->outputs.v[i];
    int64_t axis = sample_class_axis(&signature, tn_graph_type(graph, output->value));
    if (axis >= 0 && sample_may_be_scores(&signature, graph, i))
      output->value = tn_argmax(b, output->value, axis);
  }
  tn_status status = tn_build_status(b);
  tn_builder_destroy(builder);
  return status;
}
