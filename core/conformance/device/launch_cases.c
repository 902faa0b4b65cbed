/* core/conformance/device/launch_cases.c: launches of kernels of an accepted family or of the device's own,
 * ops on tensors of an application, and a kernel that fails. */
#include <string.h>

#include "core/conformance/device/device_cases.h"
#include "core/conformance/device/own_kernels.h"
#include "core/plugin/default_callbacks.h"
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

/* ---- kernels of an accepted family ---- */

static tn_status case_fold(tn_launch *l) {
  memcpy(l->folded, l->in[0].data, BYTES);
  return TN_OK;
}

/* y = x + folded, through the workspace. */
static tn_status case_add(tn_launch *l) {
  const float *x = l->in[0].data, *folded = l->folded;
  float *between = l->workspace, *y = l->out[0].data;
  if (l->in[1].data != NULL)
    return tn_fail(l, TN_EINTERNAL, NULL, "an absent operand has an address, expected NULL");
  memcpy(between, x, BYTES);
  for (int32_t i = 0; i < COUNT; i++) y[i] = between[i] + folded[i];
  return TN_OK;
}

static tn_status case_fail(tn_launch *l) { return tn_fail(l, TN_EDEVICE, NULL, "broken on purpose"); }

/* The views of all launches, constant while a launch is under way. The second operand is absent. */
static void write_views(tn_device_fixture *f) {
  tn_type row = {TN_F32, 1, {COUNT}};
  f->views[0] = (tn_view){row, tn_layout_row_major(1), f->device_block[0]};
  f->views[1] = (tn_view){row, tn_layout_row_major(1), NULL};
  f->views[2] = (tn_view){row, tn_layout_row_major(1), f->device_block[1]};
}

static void write_launch(tn_device_fixture *f, tn_launch_host *l) {
  l->pub = (tn_launch){.env = *f->env,
                       .struct_size = sizeof(tn_launch),
                       .n_in = 2,
                       .n_out = 1,
                       .in = f->views,
                       .out = f->views + 2,
                       .workspace = f->device_block[2],
                       .workspace_bytes = BYTES,
                       .stream = f->device->streams[TN_STREAM_COMPUTE],
                       .name = name,
                       .folded = f->device_block[3],
                       .folded_bytes = BYTES};
}

static tn_status enqueue_body(tn_device_fixture *f, int32_t i, tn_status (*body)(tn_launch *l)) {
  tn_launch *l = &f->launches[i].pub;
  write_launch(f, &f->launches[i]);
  return f->backend->enqueue != NULL ? f->backend->enqueue(f->env, l->stream, body, l) : body(l);
}

static tn_status put_row(tn_device_fixture *f, float first) {
  write_floats(f->host_block[0], first);
  return tn_device_fixture_copy(f, TN_COPY_TO_DEVICE, f->device_block[0], f->host_block[0], BYTES);
}

static tn_status expect_row(tn_device_fixture *f, float first, const char *wrong) {
  TN_TRY(tn_device_fixture_copy(f, TN_COPY_TO_HOST, f->host_block[1], f->device_block[1], BYTES));
  tn_device_fixture_expect(f, holds_floats(f->host_block[1], first, 2), wrong);
  return TN_OK;
}

static tn_status enqueue_captured(void *arg) { return enqueue_body(arg, 2, case_add); }

/* A replay reads the present contents of the captured operands. */
static tn_status capture_launch(tn_device_fixture *f) {
  const tn_backend *b = f->backend;
  void *compute = f->device->streams[TN_STREAM_COMPUTE], *capture = NULL;
  tn_status status = b->capture(f->env, f->device->device, compute, enqueue_captured, f, &capture);
  for (int32_t seed = 5; seed < 8 && status == TN_OK; seed++) {
    status = put_row(f, (float)seed);
    if (status == TN_OK) status = b->capture_launch(f->env, capture, compute);
    if (status == TN_OK)
      status = expect_row(f, (float)(seed + 3), "the replay of a launch gives another result");
  }
  if (capture != NULL) b->capture_delete(f->env, capture);
  return status;
}

static tn_status launch_accepted(tn_device_fixture *f) {
  write_views(f);
  TN_TRY(put_row(f, 3));
  TN_TRY(enqueue_body(f, 0, case_fold));
  TN_TRY(enqueue_body(f, 1, case_add));
  TN_TRY(expect_row(f, 6, "a launch does not see its operands, its workspace and its folded memory"));
  bool captures = f->backend->capture != NULL && f->backend->enqueue != NULL;
  return captures ? capture_launch(f) : TN_OK;
}

/* A device without accepted kernels launches its own, one by one and as replays (own_kernels.c). */
tn_status tn_device_case_launch(tn_device_fixture *f) {
  return f->backend->accepts != NULL ? launch_accepted(f) : tn_own_kernels_launch(f);
}

/* ---- ops on tensors ---- */

static tn_status call_copy(tn_device_fixture *f, int32_t i, tn_tensor **x, tn_tensor **y) {
  tn_type row = {TN_F32, 1, {COUNT}};
  write_floats(f->host_block[0], (float)i);
  TN_TRY(tn_tensor_new(f->device, &row, x));
  TN_TRY(tn_tensor_write(*x, f->host_block[0], BYTES));
  return tn_apply(f->device, "copy", x, 1, y, 1);
}

/* Every call has memory of its own; a capture would keep the addresses of the first. */
tn_status tn_device_case_calls(tn_device_fixture *f) {
  tn_tensor *x[CALLS] = {NULL}, *y[CALLS] = {NULL};
  tn_status status = TN_OK;
  for (int32_t i = 0; i < CALLS && status == TN_OK; i++) status = call_copy(f, i, &x[i], &y[i]);
  for (int32_t i = 0; i < CALLS && status == TN_OK; i++) {
    status = tn_tensor_read(y[i], f->host_block[1], BYTES);
    tn_device_fixture_expect(f, holds_floats(f->host_block[1], (float)i, 1),
                             "an op on tensors of an application does not use the memory of its own call");
  }
  for (int32_t i = 0; i < CALLS; i++) {
    tn_tensor_delete(x[i]);
    tn_tensor_delete(y[i]);
  }
  tn_device_trim(f->device);
  return status == TN_EUNSUPPORTED ? TN_OK : status; /* the device has no kernel for copy */
}

/* ---- failures ---- */

/* Enqueues launches, one of which fails. own: the device's own kernel for failures. */
static void enqueue_launches(tn_device_fixture *f, const tn_kernel *own) {
  for (int32_t i = 0; i < TN_FIXTURE_LAUNCHES; i++) {
    if (own == NULL) {
      enqueue_body(f, i, i == FAILS_AT ? case_fail : case_add);
    } else if (i == FAILS_AT) {
      write_launch(f, &f->launches[i]);
      own->launch(&f->launches[i].pub);
    } else {
      f->backend->copy(f->env, f->device->streams[TN_STREAM_COMPUTE], TN_COPY_ON_DEVICE, f->device_block[1],
                       f->device_block[0], BYTES);
    }
  }
}

/* After the failure the device may refuse further work. */
static void enqueue_failing(tn_device_fixture *f, const tn_kernel *own, bool recorded[2]) {
  const tn_backend *b = f->backend;
  void *compute = f->device->streams[TN_STREAM_COMPUTE], *out = f->device->streams[TN_STREAM_COPY_OUT];
  enqueue_launches(f, own);
  recorded[0] = b->event_record(f->env, f->events[0], compute) == TN_OK;
  if (recorded[0]) b->event_await(f->env, f->events[0], out);
  b->copy(f->env, out, TN_COPY_TO_HOST, f->host_block[1], f->device_block[1], BYTES);
  recorded[1] = b->event_record(f->env, f->events[1], out) == TN_OK;
}

static void expect_failure(tn_device_fixture *f, const bool recorded[2]) {
  const tn_backend *b = f->backend;
  void *compute = f->device->streams[TN_STREAM_COMPUTE];
  if (recorded[0])
    tn_device_fixture_expect(f, b->event_wait(f->env, f->events[0]) != TN_OK,
                             "event_wait does not report a failure before the event was recorded");
  if (recorded[1]) b->event_wait(f->env, f->events[1]); /* must return; its status does not matter */
  tn_device_fixture_expect(f, b->stream_wait(f->env, compute) == TN_EDEVICE,
                           "stream_wait does not return TN_EDEVICE after a launch has failed");
}

/* The text of the failure is in the env. A driver may not know which of its own launches has failed. */
static void expect_accepted_text(tn_device_fixture *f) {
  tn_device_fixture_expect(f, strstr(tn_error_text(f->env), "broken on purpose") != NULL,
                           "the text of a failure is not that of the kernel that failed");
  tn_device_fixture_expect(f, strstr(tn_error_text(f->env), name) != NULL,
                           "the text of a failure does not name the launch (l->name) that failed");
}

/* own: NULL for a failing kernel of an accepted family. */
static tn_status fail_between(tn_device_fixture *f, const tn_kernel *own) {
  const tn_backend *b = f->backend;
  void *compute = f->device->streams[TN_STREAM_COMPUTE];
  bool recorded[2];
  write_views(f);
  TN_TRY(put_row(f, 1));
  if (own == NULL) TN_TRY(enqueue_body(f, 0, case_fold));
  TN_TRY(b->stream_wait(f->env, compute));
  tn_error_clear(f->env);
  enqueue_failing(f, own, recorded);
  expect_failure(f, recorded);
  if (own == NULL)
    expect_accepted_text(f);
  else
    tn_device_fixture_expect(f, tn_error_text(f->env)[0] != '\0', "a failure has no text");
  tn_device_fixture_expect(f, b->fill_zero(f->env, compute, f->device_block[1], BYTES) != TN_OK,
                           "a stream accepts new work after a launch on it has failed");
  return TN_OK;
}

/* A synchronous device returns the failure of a launch from the launch itself. */
tn_status tn_device_case_failure(tn_device_fixture *f) {
  const tn_kernel *own = NULL;
  if (f->backend->accepts != NULL && f->backend->enqueue != NULL) return fail_between(f, NULL);
  if (tn_backend_is_synchronous(f->backend)) return TN_OK;
  TN_TRY(tn_own_kernels_find_failing(f, &own));
  if (own != NULL) return fail_between(f, own);
  f->lacking = "no kernel of its family has the pattern \"y = device_failure(x)\", and it accepts no kernels "
               "that could fail; see docs/plugins/backend.md, section 13";
  return TN_OK;
}
