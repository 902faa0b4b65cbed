/* core/conformance/device/launch.c: launches on the device: kernels that it takes from another family, ops
 * on an application's tensors, and a kernel that fails. */
#include <string.h>

#include "core/conformance/device/device.h"
#include "core/tensor/tensor.h"

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(float), CALLS = 12, FAILS_AT = 2 };

static const char *const name = "add of conformance";

static void write_floats(char *block, float first) {
  float *at = (float *)(void *)block;
  for (int32_t i = 0; i < COUNT; i++) at[i] = first + (float)i;
}

static bool holds_floats(const char *block, float first, float step) {
  const float *at = (const float *)(const void *)block;
  for (int32_t i = 0; i < COUNT; i++)
    if (at[i] != first + step * (float)i) return false;
  return true;
}

/* ---- kernels of a family that is accepted ---- */

static tn_status fold(tn_launch *l) {
  memcpy(l->folded, l->in[0].data, BYTES);
  return TN_OK;
}

/* y = x + folded, by way of the workspace. */
static tn_status add(tn_launch *l) {
  const float *x = l->in[0].data, *folded = l->folded;
  float *between = l->workspace, *y = l->out[0].data;
  if (l->in[1].data != NULL)
    return tn_fail(l, TN_EINTERNAL, NULL, "an absent operand, whose data is NULL, got an address");
  memcpy(between, x, BYTES);
  for (int32_t i = 0; i < COUNT; i++) y[i] = between[i] + folded[i];
  return TN_OK;
}

static tn_status fail(tn_launch *l) { return tn_fail(l, TN_EDEVICE, NULL, "broken on purpose"); }

/* Rows of numbers, of which the second is absent. All launches have them, and they stay as they are while any
 * of these is under way. */
static void write_views(tn_machine *m) {
  tn_type row = {TN_F32, 1, {COUNT}};
  m->views[0] = (tn_view){row, tn_layout_row_major(1), m->far[0]};
  m->views[1] = (tn_view){row, tn_layout_row_major(1), NULL};
  m->views[2] = (tn_view){row, tn_layout_row_major(1), m->far[1]};
}

static void write_launch(tn_machine *m, tn_launch_host *l) {
  l->pub = (tn_launch){.env = *m->env,
                       .struct_size = sizeof(tn_launch),
                       .n_in = 2,
                       .n_out = 1,
                       .in = m->views,
                       .out = m->views + 2,
                       .workspace = m->far[2],
                       .workspace_bytes = BYTES,
                       .stream = m->device->streams[TN_STREAM_COMPUTE],
                       .name = name,
                       .folded = m->far[3],
                       .folded_bytes = BYTES};
}

static tn_status enqueue(tn_machine *m, int32_t i, tn_status (*body)(tn_launch *l)) {
  tn_launch *l = &m->launches[i].pub;
  write_launch(m, &m->launches[i]);
  return m->backend->enqueue != NULL ? m->backend->enqueue(m->env, l->stream, body, l) : body(l);
}

static tn_status put_row(tn_machine *m, float first) {
  write_floats(m->near[0], first);
  return tn_machine_move(m, TN_COPY_TO_DEVICE, m->far[0], m->near[0], BYTES);
}

static tn_status expect_row(tn_machine *m, float first, const char *wrong) {
  TN_TRY(tn_machine_move(m, TN_COPY_TO_HOST, m->near[1], m->far[1], BYTES));
  tn_machine_expect(m, holds_floats(m->near[1], first, 2), wrong);
  return TN_OK;
}

/* The captured launch reads what lies in its memory when it is run. */
static tn_status capture_launch(tn_machine *m) {
  const tn_backend *b = m->backend;
  void *compute = m->device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  TN_TRY(b->capture_begin(m->env, m->device->device, compute));
  tn_status enqueued = enqueue(m, 2, add);
  tn_status status = b->capture_end(m->env, m->device->device, compute, &capture);
  if (enqueued != TN_OK) status = enqueued;
  for (int32_t seed = 5; seed < 8 && status == TN_OK; seed++) {
    status = put_row(m, (float)seed);
    if (status == TN_OK) status = b->capture_launch(m->env, capture, compute);
    if (status == TN_OK)
      status = expect_row(m, (float)(seed + 3), "a captured launch does not do what it did before");
  }
  if (capture != NULL) b->capture_delete(m->env, capture);
  return status;
}

tn_status tn_machine_try_launch(tn_machine *m) {
  if (m->backend->accepts == NULL) return TN_OK;
  write_views(m);
  TN_TRY(put_row(m, 3));
  TN_TRY(enqueue(m, 0, fold));
  TN_TRY(enqueue(m, 1, add));
  TN_TRY(expect_row(m, 6, "a launch does not see its operands, its workspace and its folded memory"));
  bool captures = m->backend->capture_begin != NULL && m->backend->enqueue != NULL;
  return captures ? capture_launch(m) : TN_OK;
}

/* ---- ops on tensors ---- */

static tn_status call(tn_machine *m, int32_t i, tn_tensor **x, tn_tensor **y) {
  tn_type row = {TN_F32, 1, {COUNT}};
  write_floats(m->near[0], (float)i);
  TN_TRY(tn_tensor_new(m->device, &row, x));
  TN_TRY(tn_tensor_write(*x, m->near[0], BYTES));
  return tn_apply(m->device, "copy", x, 1, y, 1);
}

/* Each on memory of its own, which a program that was captured for another call's would not find. */
tn_status tn_machine_try_calls(tn_machine *m) {
  tn_tensor *x[CALLS] = {NULL}, *y[CALLS] = {NULL};
  tn_status status = TN_OK;
  for (int32_t i = 0; i < CALLS && status == TN_OK; i++) status = call(m, i, &x[i], &y[i]);
  for (int32_t i = 0; i < CALLS && status == TN_OK; i++) {
    status = tn_tensor_read(y[i], m->near[1], BYTES);
    tn_machine_expect(m, holds_floats(m->near[1], (float)i, 1),
                      "ops on tensors of an application do not find the memory of each call");
  }
  for (int32_t i = 0; i < CALLS; i++) {
    tn_tensor_delete(x[i]);
    tn_tensor_delete(y[i]);
  }
  tn_device_trim(m->device);
  return status == TN_EUNSUPPORTED ? TN_OK : status; /* it has no kernel for it */
}

/* ---- failures ---- */

/* What is enqueued behind may be refused already. */
static void enqueue_failing(tn_machine *m, bool recorded[2]) {
  const tn_backend *b = m->backend;
  void *compute = m->device->streams[TN_STREAM_COMPUTE], *out = m->device->streams[TN_STREAM_COPY_OUT];
  for (int32_t i = 0; i < TN_MACHINE_LAUNCHES; i++) enqueue(m, i, i == FAILS_AT ? fail : add);
  recorded[0] = b->event_record(m->env, m->events[0], compute) == TN_OK;
  if (recorded[0]) b->event_await(m->env, m->events[0], out);
  b->copy(m->env, out, TN_COPY_TO_HOST, m->near[1], m->far[1], BYTES);
  recorded[1] = b->event_record(m->env, m->events[1], out) == TN_OK;
}

tn_status tn_machine_try_failure(tn_machine *m) {
  const tn_backend *b = m->backend;
  void *compute = m->device->streams[TN_STREAM_COMPUTE];
  bool recorded[2];
  if (b->accepts == NULL || b->enqueue == NULL) return TN_OK;
  write_views(m);
  TN_TRY(put_row(m, 1));
  TN_TRY(enqueue(m, 0, fold));
  TN_TRY(b->stream_wait(m->env, compute));
  enqueue_failing(m, recorded);
  if (recorded[0])
    tn_machine_expect(m, b->event_wait(m->env, m->events[0]) != TN_OK,
                      "event_wait does not report a failure in front of the event's record");
  if (recorded[1]) b->event_wait(m->env, m->events[1]); /* in time; either answer will do */
  tn_machine_expect(m, b->stream_wait(m->env, compute) == TN_EDEVICE,
                    "stream_wait does not return TN_EDEVICE after a launch has failed");
  tn_machine_expect(m, strstr(tn_error_text(m->env), "broken on purpose") != NULL,
                    "the text of a failure is not that of the kernel that failed");
  tn_machine_expect(m, strstr(tn_error_text(m->env), name) != NULL,
                    "the text of a failure does not name the launch (l->name) that failed");
  tn_machine_expect(m, b->fill_zero(m->env, compute, m->far[1], BYTES) != TN_OK,
                    "a stream takes new work after a launch on it has failed");
  return TN_OK;
}
