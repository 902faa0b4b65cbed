/* core/compile/output/offload_report.c: the report on the offloaded values of a program. */
#include "core/base/json_list.h"
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/layout/layout.h"
#include "core/compile/output/overlap.h"

/* The fetch of what a step has offloaded; -1: the program has none. */
static int32_t find_fetch_step(const tn_program *p, int32_t offload) {
  for (int32_t i = offload + 1; i < p->n_steps; i++)
    if (tn_kernel_transfer(p->steps[i].group->kernel) == TN_TRANSFER_FETCH &&
        p->steps[i].group->in[0] == p->steps[offload].group->out[0])
      return i;
  return -1;
}

/* "conv2d of layer1.0.conv1": the step that makes the value. */
static const char *maker_name(const tn_program *p, int32_t offload) {
  for (int32_t i = offload; i-- > 0;)
    for (int32_t k = 0; k < p->steps[i].n_out; k++)
      if (p->steps[i].group->out[k] == p->steps[offload].group->in[0]) return p->steps[i].name;
  return p->steps[offload].name;
}

static json_t *describe_offload(const tn_program *p, int32_t offload, const tn_step_times *times) {
  const tn_operand *value = &p->steps[offload].in[0];
  int32_t fetch = find_fetch_step(p, offload);
  const tn_step_times none = {0}, *out = &times[offload], *in = fetch >= 0 ? &times[fetch] : &none;
  return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "name", maker_name(p, offload), "bytes",
                   (json_int_t)tn_layout_bytes(&value->type, &value->layout), "offload_begin_ms",
                   out->begin_s * 1e3, "offload_end_ms", out->end_s * 1e3, "fetch_begin_ms",
                   in->begin_s * 1e3, "fetch_end_ms", in->end_s * 1e3, "exposed_ms",
                   (out->exposed_s + in->exposed_s) * 1e3);
}

static json_t *describe_offloads(const tn_program *p, const tn_step_times *times) {
  json_t *list = json_array();
  for (int32_t i = 0; i < p->n_steps; i++)
    if (tn_kernel_transfer(p->steps[i].group->kernel) == TN_TRANSFER_OFFLOAD && !p->steps[i].group->placed)
      tn_json_list_add(&list, describe_offload(p, i, times));
  return list;
}

/* Weights that come from memory of the host in each run. */
static bool offload_report_is_streamed(const tn_step *step) {
  return tn_kernel_transfer(step->group->kernel) == TN_TRANSFER_FETCH && !step->group->placed &&
         step->in[0].location.base == TN_BASE_REGION;
}

static json_t *describe_streamed(const tn_program *p, const tn_step_times *times) {
  int64_t bytes = 0;
  int32_t copies = 0;
  double copy_s = 0, exposed_s = 0;
  for (int32_t i = 0; i < p->n_steps; i++) {
    const tn_step *step = &p->steps[i];
    if (!offload_report_is_streamed(step)) continue;
    copies++;
    bytes += tn_layout_bytes(&step->in[0].type, &step->in[0].layout);
    copy_s += times[i].end_s - times[i].begin_s;
    exposed_s += times[i].exposed_s;
  }
  return json_pack("{s:i, s:I, s:f, s:f}", "copies", (int)copies, "bytes", (json_int_t)bytes, "copy_ms",
                   copy_s * 1e3, "exposed_ms", exposed_s * 1e3);
}

tn_status tn_offload_report(const tn_program *p, json_t **report) {
  tn_step_times *times = tn_alloc(p->env, tn_size_mul((size_t)p->n_steps + 1, sizeof *times));
  *report = NULL;
  if (times == NULL) return TN_ENOMEM;
  tn_overlap o = tn_overlap_predict(p, times);
  json_t *list = describe_offloads(p, times), *streamed = describe_streamed(p, times);
  double unlimited_s = o.step_s - o.copy_exposed_s - o.host_exposed_s - p->cover->rematerialized_s;
  tn_release(p->env, times);
  if (list != NULL && streamed != NULL)
    *report = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "copy_ms", o.copy_s * 1e3, "exposed_ms",
                        o.copy_exposed_s * 1e3, "host_ms", o.host_s * 1e3, "host_exposed_ms",
                        o.host_exposed_s * 1e3, "unlimited_ms", unlimited_s * 1e3, "step_ms", o.step_s * 1e3,
                        "values", list, "streamed", streamed);
  return *report != NULL
             ? TN_OK
             : tn_failf(p->env, TN_ENOMEM, "out of memory while reporting on program %s", p->name);
}
