/* core/compile/output/plan_json.c: a program as plan.json keeps it, to be compared and replayed. */
#include "core/compile/output/plan_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/json_list.h"
#include "core/compile/output/print.h"
#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/recorded_choices.h"

/* "f32[8, 64]{1, 0} region 2+4096": type, layout unless it is row-major, location. */
static json_t *record_operand(const tn_operand *o) {
  char type[TN_TYPE_TEXT], text[TN_TYPE_TEXT + 256];
  int n = snprintf(text, sizeof text, "%s", tn_type_format(&o->type, type));
  bool row_major = o->layout.n_blocks == 0;
  for (int32_t i = 0; i < o->type.rank; i++) row_major = row_major && o->layout.order[i] == i;
  for (int32_t i = 0; !row_major && i < o->type.rank; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i > 0 ? ", " : "{", o->layout.order[i]);
  for (int32_t i = 0; i < o->layout.n_blocks; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "; %d:%d", o->layout.block[i].dim,
                  o->layout.block[i].size);
  n += snprintf(text + n, sizeof text - (size_t)n, "%s %s", row_major ? "" : "}",
                tn_base_name(o->location.base));
  if (o->location.base == TN_BASE_REGION)
    n += snprintf(text + n, sizeof text - (size_t)n, " %" PRId32, o->location.region);
  snprintf(text + n, sizeof text - (size_t)n, "+%" PRId64, o->location.offset);
  return json_string(text);
}

static json_t *record_operands(const tn_operand *operands, int32_t n) {
  json_t *list = json_array();
  for (int32_t i = 0; i < n; i++) {
    bool absent = operands[i].location.base == TN_BASE_NONE;
    tn_json_list_add(&list, absent ? json_null() : record_operand(&operands[i]));
  }
  return list;
}

static bool add_op_names(const tn_program *p, const tn_group *g, tn_text *text) {
  for (int32_t i = 0; i < g->n_nodes; i++)
    tn_text_addf(text, "%s%s", i > 0 ? "+" : "", p->cover->graph->nodes.v[g->nodes[i]].op->item.name);
  return !text->failed;
}

static json_t *record_launch(const tn_program *p, const tn_step *step) {
  const tn_group *g = step->group;
  const char *layer = p->cover->graph->nodes.v[g->nodes[0]].layer;
  tn_text ops = tn_text_new(p->env);
  char key[17];
  json_t *launch = NULL;
  snprintf(key, sizeof key, "%016" PRIx64, tn_recorded_key(p->cover->graph, g->nodes, g->n_nodes));
  if (add_op_names(p, g, &ops))
    launch = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:o, s:I, s:f}", "op", ops.v, "layer",
                       layer != NULL ? layer : "", "kernel", g->entry->item->name, "plugin",
                       g->entry->plugin != NULL ? g->entry->plugin : "", "version",
                       g->entry->version != NULL ? g->entry->version : "", "variant", g->choice.name, "id",
                       (int)g->choice.id, "key", key, "reads", record_operands(step->in, step->n_in),
                       "writes", record_operands(step->out, step->n_out), "workspace",
                       (json_int_t)step->workspace_offset, "cost_s", g->choice.cost_s);
  tn_text_free(&ops);
  return launch;
}

static tn_status record_no_memory(const tn_program *p) {
  return tn_failf(p->env, TN_ENOMEM, "out of memory while recording program %s", p->name);
}

/* "image: f32[8, 1, 28, 28]". NULL: out of memory. */
static json_t *record_inputs(const tn_program *p) {
  json_t *list = json_array();
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const tn_binding *input = &p->inputs[i];
    tn_json_list_add(&list, json_sprintf("%s: %s", input->name, tn_type_format(&input->type, type)));
  }
  return list;
}

/* The programs of the bodies of loops. */
static tn_status record_bodies(const tn_program *p, json_t *record) {
  const tn_loop_bodies *loops = p->cover->loops;
  if (loops == NULL || loops->list.n == 0) return TN_OK;
  json_t *list = json_array();
  tn_status status = json_object_set_new(record, "bodies", list) == 0 ? TN_OK : record_no_memory(p);
  for (size_t i = 0; status == TN_OK && i < loops->list.n; i++) {
    json_t *one = NULL;
    status = tn_program_record(loops->list.v[i]->program, &one);
    if (status == TN_OK && json_array_append_new(list, one) != 0) status = record_no_memory(p);
  }
  return status;
}

tn_status tn_program_record(const tn_program *p, json_t **record) {
  char hash[17];
  json_t *launches = json_array();
  snprintf(hash, sizeof hash, "%016" PRIx64, p->hash);
  for (int32_t i = 0; i < tn_program_all_steps(p); i++)
    tn_json_list_add(&launches, record_launch(p, &p->steps[i]));
  *record = launches == NULL
                ? NULL
                : json_pack("{s:s, s:s, s:I, s:o, s:o}", "name", p->name, "hash", hash, "arena_bytes",
                            (json_int_t)p->arena_bytes, "inputs", record_inputs(p), "launches", launches);
  tn_status status = *record != NULL ? record_bodies(p, *record) : record_no_memory(p);
  if (status == TN_OK) return TN_OK;
  json_decref(*record);
  *record = NULL;
  return status;
}

static tn_status record_catalog_kernel(const tn_program *p, const tn_entry *entry, json_t *list) {
  json_t *one = json_pack("{s:s, s:s, s:s}", "kernel", entry->item->name, "plugin",
                          entry->plugin != NULL ? entry->plugin : "", "version",
                          entry->version != NULL ? entry->version : "");
  return json_array_append_new(list, one) == 0 ? TN_OK : record_no_memory(p);
}

static tn_status record_catalog(const tn_program *p, const tn_catalog *catalog, json_t *list) {
  for (size_t i = 0; i < catalog->fixed.n; i++)
    TN_TRY(record_catalog_kernel(p, catalog->fixed.v[i].entry, list));
  for (size_t i = 0; i < catalog->epilogues.n; i++)
    TN_TRY(record_catalog_kernel(p, catalog->epilogues.v[i].entry, list));
  for (size_t i = 0; i < catalog->prologues.n; i++)
    TN_TRY(record_catalog_kernel(p, catalog->prologues.v[i].entry, list));
  for (size_t i = 0; i < catalog->regions.n; i++)
    TN_TRY(record_catalog_kernel(p, catalog->regions.v[i].entry, list));
  return TN_OK;
}

tn_status tn_program_record_kernels(const tn_program *p, json_t **kernels) {
  json_t *list = json_array();
  tn_status status = list != NULL ? record_catalog(p, p->cover->catalog, list) : record_no_memory(p);
  if (status == TN_OK && p->cover->fallback != NULL) status = record_catalog(p, p->cover->fallback, list);
  if (status != TN_OK) {
    json_decref(list);
    list = NULL;
  }
  *kernels = list;
  return status;
}
