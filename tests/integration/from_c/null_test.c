/* tests/integration/from_c/null_test.c: every exported function with each of its pointers NULL, options
 * structs whose size was not set, failures without a message, and a library that prints nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/conformance.h"
#include "tenon/folders.h"
#include "tenon/export.h"
#include "tenon/import.h"
#include "tenon/inspect.h"
#include "tenon/model.h"
#include "tenon/ops.h"
#include "tenon/session.h"

static const char settings[] =
    "[run]\nname = nulls\noutput =\nepochs = 1\n[plugins]\nload = " HOLES "\n"
    "[backend]\nuse = cpu\n[data]\nsource = holes\nbatch = 8\nworkers = 0\n[model]\n"
    "inputs = image: f32[2, 4, 4]\nlayers =\n    flatten\n    fc: linear(3)\n"
    "loss = cross_entropy\n";

typedef struct handles {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  tn_device *device;
  tn_tensor *tensor, *scalar;
} handles;

static handles h;
static char folder[64];

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int set_up(void **state) {
  (void)state;
  const tn_type type = {TN_F32, 1, {4}}, scalar = {TN_F32, 0, {0}};
  strcpy(folder, "/tmp/tenon-null-XXXXXX");
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  write_text("nulls.ini", settings);
  const tn_session_options options = {.struct_size = sizeof options, .train = 1, .eval = 1, .infer = 1};
  if (tn_context_open(NULL, &h.context) != TN_OK ||
      tn_run_open(h.context, "nulls.ini", NULL, &h.run) != TN_OK ||
      tn_session_open(h.run, &options, &h.session) != TN_OK ||
      tn_device_open(h.context, "cpu", 0, NULL, &h.device) != TN_OK ||
      tn_tensor_new(h.device, &type, &h.tensor) != TN_OK ||
      tn_tensor_new(h.device, &scalar, &h.scalar) != TN_OK) {
    printf("%s %s\n", tn_error_text(h.context), tn_error_text(h.run));
    return -1;
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  tn_tensor_delete(h.scalar);
  tn_tensor_delete(h.tensor);
  tn_device_close(h.device);
  tn_session_close(h.session);
  tn_run_close(h.run);
  tn_context_close(h.context);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

/* ---- every function ---- */

/* A call that refuses a NULL pointer. `handle` NULL: there is no text. */
typedef struct refusal {
  const char *call;
  tn_status status;
  const void *handle;
  char text[256];
} refusal;

enum { MOST_REFUSALS = 200 };
static refusal refusals[MOST_REFUSALS];
static int n_refusals;

static void note(const char *call, const void *handle, tn_status status) {
  assert_true(n_refusals < MOST_REFUSALS);
  refusal *r = &refusals[n_refusals++];
  *r = (refusal){call, status, handle, ""};
  snprintf(r->text, sizeof r->text, "%s", tn_error_text(handle));
}

#define REFUSES(handle, call) note(#call, handle, call)

static tn_status no_model(tn_build *b, void *user) {
  (void)user;
  return tn_build_status(b);
}

static void call_folders(void) {
  char *text = NULL;
  REFUSES(NULL, tn_write_report(NULL, (const char *[]){folder}, 1, "report.html"));
  REFUSES(h.context, tn_write_report(h.context, NULL, 1, "report.html"));
  REFUSES(h.context, tn_write_report(h.context, (const char *[]){folder}, 1, NULL));
  REFUSES(h.context, tn_write_report(h.context, (const char *[]){NULL}, 1, "report.html"));
  REFUSES(NULL, tn_list_runs(NULL, folder, &text));
  REFUSES(h.context, tn_list_runs(h.context, NULL, &text));
  REFUSES(h.context, tn_list_runs(h.context, folder, NULL));
  REFUSES(NULL, tn_list_sweep(NULL, folder, &text));
  REFUSES(h.context, tn_list_sweep(h.context, NULL, &text));
  REFUSES(h.context, tn_list_sweep(h.context, folder, NULL));
  REFUSES(NULL, tn_write_sweep(NULL, folder));
  REFUSES(h.context, tn_write_sweep(h.context, NULL));
  REFUSES(NULL, tn_list_checkpoints(NULL, folder, &text));
  REFUSES(h.context, tn_list_checkpoints(h.context, NULL, &text));
  REFUSES(h.context, tn_list_checkpoints(h.context, folder, NULL));
  REFUSES(NULL, tn_show_tensors(NULL, folder, 0, &text));
  REFUSES(h.context, tn_show_tensors(h.context, NULL, 0, &text));
  REFUSES(h.context, tn_show_tensors(h.context, folder, 0, NULL));
  REFUSES(NULL, tn_verify_checkpoints(NULL, folder, &text));
  REFUSES(h.context, tn_verify_checkpoints(h.context, NULL, &text));
  REFUSES(h.context, tn_verify_checkpoints(h.context, folder, NULL));
  REFUSES(NULL, tn_compare_tensors(NULL, folder, folder, 0, &text));
  REFUSES(h.context, tn_compare_tensors(h.context, NULL, folder, 0, &text));
  REFUSES(h.context, tn_compare_tensors(h.context, folder, NULL, 0, &text));
  REFUSES(h.context, tn_compare_tensors(h.context, folder, folder, 0, NULL));
  REFUSES(NULL, tn_average_tensors(NULL, (const char *[]){folder}, 1, "x.safetensors", &text));
  REFUSES(h.context, tn_average_tensors(h.context, NULL, 1, "x.safetensors", &text));
  REFUSES(h.context, tn_average_tensors(h.context, (const char *[]){NULL}, 1, "x.safetensors", &text));
  REFUSES(h.context, tn_average_tensors(h.context, (const char *[]){folder}, 1, NULL, &text));
  REFUSES(h.context, tn_average_tensors(h.context, (const char *[]){folder}, 1, "x.safetensors", NULL));
  REFUSES(NULL, tn_convert_tensors(NULL, folder, "x", NULL, &text));
  REFUSES(h.context, tn_convert_tensors(h.context, NULL, "x", NULL, &text));
  REFUSES(h.context, tn_convert_tensors(h.context, folder, NULL, NULL, &text));
  REFUSES(h.context, tn_convert_tensors(h.context, folder, "x", NULL, NULL));
  REFUSES(NULL, tn_merge_adapters(NULL, folder, "x", &text));
  REFUSES(h.context, tn_merge_adapters(h.context, NULL, "x", &text));
  REFUSES(h.context, tn_merge_adapters(h.context, folder, NULL, &text));
  REFUSES(h.context, tn_merge_adapters(h.context, folder, "x", NULL));
}

static void call_runs(void) {
  char *text = NULL;
  tn_run *run = NULL;
  REFUSES(NULL, tn_context_open(NULL, NULL));
  REFUSES(NULL, tn_context_load(NULL, "x.so"));
  REFUSES(h.context, tn_context_load(h.context, NULL));
  REFUSES(NULL, tn_context_write_index(NULL, folder));
  REFUSES(h.context, tn_context_write_index(h.context, NULL));
  REFUSES(NULL, tn_import_onnx(NULL, "x.onnx", "x.ini", NULL, &text));
  REFUSES(h.context, tn_import_onnx(h.context, NULL, "x.ini", NULL, &text));
  REFUSES(h.context, tn_import_onnx(h.context, "x.onnx", NULL, NULL, &text));
  REFUSES(h.context, tn_import_onnx(h.context, "x.onnx", "x.ini", NULL, NULL));
  REFUSES(NULL, tn_import_gguf(NULL, "x.gguf", "x.ini", &text));
  REFUSES(h.context, tn_import_gguf(h.context, NULL, "x.ini", &text));
  REFUSES(h.context, tn_import_gguf(h.context, "x.gguf", NULL, &text));
  REFUSES(h.context, tn_import_gguf(h.context, "x.gguf", "x.ini", NULL));
  REFUSES(NULL, tn_inspect(NULL, NULL, &text));
  REFUSES(h.context, tn_inspect(h.context, NULL, NULL));
  REFUSES(NULL, tn_explain(NULL, "run", &text));
  REFUSES(h.context, tn_explain(h.context, NULL, &text));
  REFUSES(h.context, tn_explain(h.context, "run", NULL));
  REFUSES(NULL, tn_doctor(NULL, &text));
  REFUSES(h.context, tn_doctor(h.context, NULL));
  call_folders();
  REFUSES(NULL, tn_run_open(NULL, "nulls.ini", NULL, &run));
  REFUSES(h.context, tn_run_open(h.context, NULL, NULL, &run));
  REFUSES(h.context, tn_run_open(h.context, "nulls.ini", NULL, NULL));
  REFUSES(NULL, tn_run_open_model(NULL, no_model, NULL, NULL, NULL, &run));
  REFUSES(h.context, tn_run_open_model(h.context, NULL, NULL, NULL, NULL, &run));
  REFUSES(h.context, tn_run_open_model(h.context, no_model, NULL, NULL, NULL, NULL));
  REFUSES(NULL, tn_run_train(NULL, &text));
  REFUSES(h.run, tn_run_train(h.run, NULL));
  REFUSES(NULL, tn_run_eval(NULL, &text));
  REFUSES(h.run, tn_run_eval(h.run, NULL));
  REFUSES(NULL, tn_run_examine(NULL, &text));
  REFUSES(h.run, tn_run_examine(h.run, NULL));
  const char *inputs[] = {"x.npy", NULL};
  tn_predict_options predict = {.struct_size = sizeof predict, .inputs = inputs, .n_inputs = 1};
  REFUSES(NULL, tn_run_predict(NULL, &predict, &text));
  REFUSES(h.run, tn_run_predict(h.run, NULL, &text));
  REFUSES(h.run, tn_run_predict(h.run, &predict, NULL));
  predict.n_inputs = 2;
  REFUSES(h.run, tn_run_predict(h.run, &predict, &text));
  predict.inputs = NULL;
  REFUSES(h.run, tn_run_predict(h.run, &predict, &text));
  tn_generate_options generate = {.struct_size = sizeof generate};
  REFUSES(NULL, tn_run_generate(NULL, &generate, &text));
  REFUSES(h.run, tn_run_generate(h.run, NULL, &text));
  REFUSES(h.run, tn_run_generate(h.run, &generate, NULL));
  generate.n_tokens = 1;
  REFUSES(h.run, tn_run_generate(h.run, &generate, &text));
  REFUSES(NULL, tn_run_export_onnx(NULL, "x.onnx", NULL, &text));
  REFUSES(h.run, tn_run_export_onnx(h.run, NULL, NULL, &text));
  REFUSES(h.run, tn_run_export_onnx(h.run, "x.onnx", NULL, NULL));
  REFUSES(NULL, tn_run_export_c(NULL, "x", NULL, &text));
  REFUSES(h.run, tn_run_export_c(h.run, NULL, NULL, &text));
  REFUSES(h.run, tn_run_export_c(h.run, "x", NULL, NULL));
  REFUSES(NULL, tn_run_plan(NULL, NULL, &text, NULL));
  REFUSES(h.run, tn_run_plan(h.run, NULL, NULL, NULL));
  REFUSES(NULL, tn_run_memory(NULL, NULL, &text, NULL));
  REFUSES(h.run, tn_run_memory(h.run, NULL, NULL, NULL));
  REFUSES(NULL, tn_run_summary(NULL, &text));
  REFUSES(h.run, tn_run_summary(h.run, NULL));
  REFUSES(NULL, tn_run_bench(NULL, NULL, &text));
  REFUSES(h.run, tn_run_bench(h.run, NULL, NULL));
  REFUSES(NULL, tn_run_data(NULL, NULL, &text));
  REFUSES(h.run, tn_run_data(h.run, NULL, NULL));
  REFUSES(NULL, tn_run_begin_sweep(NULL, NULL, &text));
  REFUSES(h.run, tn_run_begin_sweep(h.run, NULL, NULL));
  REFUSES(NULL, tn_run_find_lr(NULL, NULL, &text));
  REFUSES(h.run, tn_run_find_lr(h.run, NULL, NULL));
  REFUSES(NULL, tn_run_compare_with(NULL, h.run, NULL, &text));
  REFUSES(h.run, tn_run_compare_with(h.run, NULL, NULL, &text));
  REFUSES(h.run, tn_run_compare_with(h.run, h.run, NULL, NULL));
  REFUSES(NULL, tn_run_repeat_launch(NULL, h.run, "x.safetensors", &text));
  REFUSES(h.run, tn_run_repeat_launch(h.run, NULL, "x.safetensors", &text));
  REFUSES(h.run, tn_run_repeat_launch(h.run, h.run, NULL, &text));
  REFUSES(h.run, tn_run_repeat_launch(h.run, h.run, "x.safetensors", NULL));
  REFUSES(NULL, tn_run_config(NULL, &text));
  REFUSES(h.run, tn_run_config(h.run, NULL));
  REFUSES(NULL, tn_run_resolved_config(NULL, &text));
  REFUSES(h.run, tn_run_resolved_config(h.run, NULL));
  assert_null(text);
  assert_null(run);
}

static void call_sessions(void) {
  tn_session *session = NULL;
  tn_session_field field = {.struct_size = sizeof field};
  float values[32] = {0};
  double value = 0;
  REFUSES(NULL, tn_session_open(NULL, NULL, &session));
  REFUSES(h.run, tn_session_open(h.run, NULL, NULL));
  REFUSES(NULL, tn_session_describe(NULL, 0, &field));
  REFUSES(h.session, tn_session_describe(h.session, 0, NULL));
  REFUSES(NULL, tn_session_bind(NULL, "image", values, sizeof values));
  REFUSES(h.session, tn_session_bind(h.session, NULL, values, sizeof values));
  REFUSES(NULL, tn_session_train(NULL, 0));
  REFUSES(NULL, tn_session_eval(NULL, 0));
  REFUSES(NULL, tn_session_infer(NULL, 0));
  REFUSES(NULL, tn_session_metric(NULL, "loss", &value));
  REFUSES(h.session, tn_session_metric(h.session, NULL, &value));
  REFUSES(h.session, tn_session_metric(h.session, "loss", NULL));
  REFUSES(NULL, tn_session_save(NULL, "x"));
  REFUSES(h.session, tn_session_save(h.session, NULL));
  REFUSES(NULL, tn_session_load(NULL, "x"));
  REFUSES(h.session, tn_session_load(h.session, NULL));
  REFUSES(NULL, tn_session_read(NULL, "fc.bias", values, 12));
  REFUSES(h.session, tn_session_read(h.session, NULL, values, 12));
  REFUSES(h.session, tn_session_read(h.session, "fc.bias", NULL, 12));
  REFUSES(NULL, tn_session_write(NULL, "fc.bias", values, 12));
  REFUSES(h.session, tn_session_write(h.session, NULL, values, 12));
  REFUSES(h.session, tn_session_write(h.session, "fc.bias", NULL, 12));
  assert_null(session);
}

static void call_tensors(void) {
  const tn_type type = {TN_F32, 1, {4}};
  const int32_t order[1] = {0};
  float values[4] = {0};
  tn_device *device = NULL;
  tn_tensor *made = NULL, *in[1] = {h.tensor};
  tn_device_info info = {.struct_size = sizeof info};
  char *text = NULL;
  REFUSES(NULL, tn_device_open(NULL, "cpu", 0, NULL, &device));
  REFUSES(h.context, tn_device_open(h.context, "cpu", 0, NULL, NULL));
  REFUSES(NULL, tn_device_wait(NULL));
  REFUSES(NULL, tn_device_describe(NULL, &info));
  REFUSES(h.device, tn_device_describe(h.device, NULL));
  REFUSES(NULL, tn_tensor_new(NULL, &type, &made));
  REFUSES(h.device, tn_tensor_new(h.device, NULL, &made));
  REFUSES(h.device, tn_tensor_new(h.device, &type, NULL));
  REFUSES(NULL, tn_tensor_wrap(NULL, &type, values, &made));
  REFUSES(h.device, tn_tensor_wrap(h.device, NULL, values, &made));
  REFUSES(h.device, tn_tensor_wrap(h.device, &type, NULL, &made));
  REFUSES(h.device, tn_tensor_wrap(h.device, &type, values, NULL));
  REFUSES(NULL, tn_tensor_view(NULL, &type, 0, &made));
  REFUSES(h.tensor, tn_tensor_view(h.tensor, NULL, 0, &made));
  REFUSES(h.tensor, tn_tensor_view(h.tensor, &type, 0, NULL));
  REFUSES(NULL, tn_tensor_permute(NULL, order, &made));
  REFUSES(h.tensor, tn_tensor_permute(h.tensor, NULL, &made));
  REFUSES(h.tensor, tn_tensor_permute(h.tensor, order, NULL));
  REFUSES(NULL, tn_tensor_write(NULL, values, 16));
  REFUSES(h.tensor, tn_tensor_write(h.tensor, NULL, 16));
  REFUSES(NULL, tn_tensor_read(NULL, values, 16));
  REFUSES(h.tensor, tn_tensor_read(h.tensor, NULL, 16));
  REFUSES(NULL, tn_tensor_fill(NULL, 1));
  REFUSES(NULL, tn_tensor_copy(NULL, h.tensor));
  REFUSES(h.tensor, tn_tensor_copy(h.tensor, NULL));
  REFUSES(NULL, tn_apply(NULL, "relu", in, 1, &made, 1));
  REFUSES(h.device, tn_apply(h.device, NULL, in, 1, &made, 1));
  REFUSES(h.device, tn_apply(h.device, "relu", NULL, 1, &made, 1));
  REFUSES(h.device, tn_apply(h.device, "relu", in, 1, NULL, 1));
  REFUSES(NULL, tn_conformance_run(NULL, NULL, &text));
  REFUSES(h.device, tn_conformance_run(h.device, NULL, NULL));
  assert_null(made);
  assert_null(device);
  assert_null(text);
}

/* Number `which` of the calls on a tn_call gets a NULL; tn_call_end reports it. False: there are no more. */
static int spoil_call(tn_call *call, int which) {
  const int64_t ints[1] = {1};
  const double floats[1] = {1};
  tn_call_operand(call, h.tensor);
  switch (which) {
  case 0: tn_call_set_int(call, NULL, 1); return 1;
  case 1: tn_call_set_float(call, NULL, 1); return 1;
  case 2: tn_call_set_ints(call, NULL, 1, ints); return 1;
  case 3: tn_call_set_ints(call, "axis", 1, NULL); return 1;
  case 4: tn_call_set_floats(call, NULL, 1, floats); return 1;
  case 5: tn_call_set_floats(call, "axis", 1, NULL); return 1;
  case 6: tn_call_set_text(call, NULL, "1"); return 1;
  case 7: tn_call_set_text(call, "axis", NULL); return 1;
  default: return 0;
  }
}

static void call_calls(void) {
  tn_tensor *made = NULL;
  for (int which = 0;; which++) {
    tn_call *call = tn_call_begin(h.device, "softmax");
    if (!spoil_call(call, which)) {
      tn_call_cancel(call);
      break;
    }
    REFUSES(h.device, tn_call_end(call, &made, 1));
  }
  REFUSES(h.device, tn_call_end(tn_call_begin(h.device, NULL), &made, 1));
  tn_call *call = tn_call_begin(h.device, "relu");
  tn_call_operand(call, h.tensor);
  REFUSES(h.device, tn_call_end(call, NULL, 1));
  call = tn_call_begin(h.device, "relu");
  tn_call_operand(call, h.tensor);
  REFUSES(h.device, tn_call_end_gradient(call, NULL, 1, NULL, &made, 1));
  call = tn_call_begin(h.device, "relu");
  tn_call_operand(call, h.tensor);
  REFUSES(h.device, tn_call_end_gradient(call, &h.tensor, 1, NULL, NULL, 1));
  assert_null(tn_call_begin(NULL, "relu"));
  assert_int_equal(tn_call_end(NULL, &made, 1), TN_ENOMEM);
  assert_int_equal(tn_call_end_gradient(NULL, NULL, 0, NULL, &made, 1), TN_ENOMEM);
  assert_null(made);
}

/* The functions without a status do nothing, or return 0, NULL or "". */
static void call_functions_without_status(void) {
  assert_string_equal(tn_error_text(NULL), "");
  assert_non_null(tn_version());
  assert_string_equal(tn_status_name(TN_EINVAL), "invalid");
  tn_context_close(NULL);
  tn_run_close(NULL);
  tn_run_stop(NULL);
  tn_session_close(NULL);
  tn_device_close(NULL);
  tn_device_trim(NULL);
  tn_tensor_delete(NULL);
  tn_call_cancel(NULL);
  tn_call_operand(NULL, NULL);
  tn_call_set_int(NULL, NULL, 0);
  tn_call_set_float(NULL, NULL, 0);
  tn_call_set_ints(NULL, NULL, 0, NULL);
  tn_call_set_floats(NULL, NULL, 0, NULL);
  tn_call_set_text(NULL, NULL, NULL);
  tn_string_free(NULL, NULL);
  tn_text_make_plain(NULL);
  tn_string_free(h.context, NULL);
  assert_int_equal(tn_session_steps(NULL), 0);
  assert_null(tn_tensor_type(NULL));
  assert_null(tn_tensor_device(NULL));
  assert_null(tn_tensor_data(NULL));
  assert_int_equal(tn_model_input(NULL, "x", NULL), 0);
  assert_int_equal(tn_model_target(NULL, "x", NULL), 0);
  tn_model_output(NULL, "x", 0);
  assert_int_equal(tn_model_measured(NULL), 0);
  tn_model_loss(NULL, "mse", NULL, 0);
  tn_model_metric(NULL, "mse", NULL, 0);
  tn_model_loss_value(NULL, "x", 0, 0, 1);
}

static void every_pointer_may_be_null(void **state) {
  (void)state;
  call_runs();
  call_sessions();
  call_tensors();
  call_calls();
  call_functions_without_status();
  for (int i = 0; i < n_refusals; i++) {
    const refusal *r = &refusals[i];
    if (r->status != TN_EINVAL) fail_msg("%s: %s: %s", r->call, tn_status_name(r->status), r->text);
    if (r->handle != NULL && strstr(r->text, "NULL") == NULL) fail_msg("%s: '%s'", r->call, r->text);
  }
  /* the handles still work */
  assert_int_equal(tn_tensor_fill(h.tensor, 2), TN_OK);
  assert_int_equal(tn_device_wait(h.device), TN_OK);
  assert_string_equal(tn_error_text(h.session)[0] != '\0' ? "text" : "", "text");
}

/* The functions of the headers, so that a new one is not forgotten above. */
static void no_exported_function_is_missing_here(void **state) {
  (void)state;
  static char own[1 << 17], line[4096];
  FILE *file = fopen(SOURCE, "r");
  assert_non_null(file);
  own[fread(own, 1, sizeof own - 1, file)] = '\0';
  fclose(file);
  DIR *headers = opendir(HEADERS);
  int found = 0;
  for (struct dirent *entry; (entry = readdir(headers));) {
    char path[4096];
    if (strstr(entry->d_name, ".h") == NULL) continue;
    snprintf(path, sizeof path, "%s/%s", HEADERS, entry->d_name);
    file = fopen(path, "r");
    while (fgets(line, sizeof line, file)) {
      char *bracket = strchr(line, '(');
      if (strncmp(line, "TN_EXPORT ", 10) != 0 || bracket == NULL) continue;
      bracket[1] = '\0';
      char *name = bracket;
      while (name > line && name[-1] != ' ' && name[-1] != '*') name--;
      if (strstr(own, name) == NULL) fail_msg("%s: %s) is not called with NULL here", entry->d_name, name);
      found++;
    }
    fclose(file);
  }
  closedir(headers);
  assert_true(found > 60);
}

/* ---- the builder ---- */

/* Number `*user` of these calls, which have one NULL each. */
static tn_status spoil_build(tn_build *b, void *user) {
  const tn_type type = {TN_F32, 1, {4}};
  tn_val x = tn_model_input(b, "x", &type);
  const int which = *(const int *)user;
  if (which >= 13 && which <= 20) tn_op_begin(b, "softmax");
  switch (which) {
  case 0: tn_model_input(b, NULL, &type); break;
  case 1: tn_model_input(b, "y", NULL); break;
  case 2: tn_model_output(b, NULL, x); break;
  case 3: tn_model_loss(b, NULL, &x, 1); break;
  case 4: tn_model_loss(b, "mse", NULL, 1); break;
  case 5: tn_model_metric(b, NULL, &x, 1); break;
  case 6: tn_model_loss_value(b, NULL, x, 0, 1); break;
  case 7: tn_model_target(b, NULL, &type); break;
  case 8: tn_build_param(b, NULL, &type, "zeros"); break;
  case 9: tn_build_state(b, "s", NULL, "zeros"); break;
  case 10: tn_build_layer(b, "fc", NULL, &x, 1); break;
  case 11: tn_build_layer(b, "fc", "relu", NULL, 1); break;
  case 12: tn_op_begin(b, NULL); break;
  case 13: tn_op_set_int(b, NULL, 1); break;
  case 14: tn_op_set_float(b, NULL, 1); break;
  case 15: tn_op_set_ints(b, NULL, 0, NULL); break;
  case 16: tn_op_set_ints(b, "axis", 1, NULL); break;
  case 17: tn_op_set_floats(b, NULL, 0, NULL); break;
  case 18: tn_op_set_floats(b, "axis", 1, NULL); break;
  case 19: tn_op_set_text(b, NULL, "1"); break;
  case 20: tn_op_set_text(b, "axis", NULL); break;
  case 21: tn_build_random_stream(b, NULL); break;
  default: break;
  }
  return tn_build_status(b);
}
enum { SPOILED_BUILDS = 22 };

static void the_builder_keeps_a_null_as_its_failure(void **state) {
  (void)state;
  for (int which = 0; which < SPOILED_BUILDS; which++) {
    tn_run *run = NULL;
    tn_session *session = NULL;
    const tn_session_options options = {.struct_size = sizeof options, .train = 1};
    assert_int_equal(tn_run_open_model(h.context, spoil_build, &which, NULL, NULL, &run), TN_OK);
    tn_status status = tn_session_open(run, &options, &session);
    if (status != TN_EINVAL || strstr(tn_error_text(run), "NULL") == NULL)
      fail_msg("call %d: %s: %s", which, tn_status_name(status), tn_error_text(run));
    tn_run_close(run);
  }
}

/* ---- sizes of structs ---- */

static void refuses_size(const void *handle, tn_status status, const char *name) {
  char expected[128];
  snprintf(expected, sizeof expected, "%s.struct_size is 0; set it to sizeof(%s)", name, name);
  assert_int_equal(status, TN_EINVAL);
  if (strstr(tn_error_text(handle), expected) == NULL) fail_msg("%s: '%s'", name, tn_error_text(handle));
}

static void a_struct_without_its_size_is_refused(void **state) {
  (void)state;
  const char *const set[] = {"run.seed=7"};
  char *json = NULL;
  tn_context *context = NULL;
  tn_run *run = NULL;
  tn_session *session = NULL;
  const tn_context_options of_context = {.log_level = 3};
  const tn_run_options of_run = {.set = set, .n_set = 1};
  const tn_session_options of_session = {.train = 1};
  const tn_plan_options of_plan = {.dump_after = ""};
  const tn_bench_options of_bench = {.mode = TN_BENCH_INFER};
  const tn_compare_options of_compare = {.steps = 1};
  const tn_sweep_options of_sweep = {.n_set = 0};
  const tn_find_lr_options of_find_lr = {.steps = 20};
  const tn_data_options of_data = {.samples = 20};
  const tn_convert_options of_conversion = {.dtype = TN_F16};
  const tn_conformance_options of_conformance = {.only = "relu"};
  tn_session_field field = {.role = 0};
  tn_device_info info = {.index = 0};
  tn_status status = tn_context_open(&of_context, &context);
  refuses_size(context, status, "tn_context_options");
  tn_context_close(context);
  refuses_size(h.context, tn_run_open(h.context, "nulls.ini", &of_run, &run), "tn_run_options");
  refuses_size(h.run, tn_session_open(h.run, &of_session, &session), "tn_session_options");
  refuses_size(h.run, tn_run_plan(h.run, &of_plan, &json, NULL), "tn_plan_options");
  refuses_size(h.run, tn_run_bench(h.run, &of_bench, &json), "tn_bench_options");
  refuses_size(h.run, tn_run_data(h.run, &of_data, &json), "tn_data_options");
  refuses_size(h.run, tn_run_begin_sweep(h.run, &of_sweep, &json), "tn_sweep_options");
  refuses_size(h.run, tn_run_find_lr(h.run, &of_find_lr, &json), "tn_find_lr_options");
  refuses_size(h.run, tn_run_compare_with(h.run, h.run, &of_compare, &json), "tn_compare_options");
  refuses_size(h.context, tn_convert_tensors(h.context, folder, "x", &of_conversion, &json),
               "tn_convert_options");
  refuses_size(h.device, tn_conformance_run(h.device, &of_conformance, &json), "tn_conformance_options");
  refuses_size(h.session, tn_session_describe(h.session, 0, &field), "tn_session_field");
  refuses_size(h.device, tn_device_describe(h.device, &info), "tn_device_info");
}

static void a_list_without_its_texts_is_refused(void **state) {
  (void)state;
  tn_run *run = NULL;
  const char *const holes[] = {"run.seed=7", NULL};
  const tn_run_options none = {.struct_size = sizeof none, .n_set = 1},
                       one = {.struct_size = sizeof one, .set = holes, .n_set = 2};
  assert_int_equal(tn_run_open(h.context, "nulls.ini", &none, &run), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(h.context), "tn_run_options.set is NULL"));
  assert_int_equal(tn_run_open(h.context, "nulls.ini", &one, &run), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(h.context), "tn_run_options.set[1] is NULL"));
  const tn_run_options words = {.struct_size = sizeof words, .command = holes, .n_command = 2};
  assert_int_equal(tn_run_open(h.context, "nulls.ini", &words, &run), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(h.context), "tn_run_options.command[1] is NULL"));
}

/* ---- failures without a message ---- */

static int occurrences(const char *text, const char *word) {
  int n = 0;
  for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) n++;
  return n;
}

/* The source fails for every sample, and says nothing. */
static void a_silent_failure_is_told_once(void **state) {
  (void)state;
  tn_run *run = NULL;
  char *json = NULL;
  const char *const set[] = {"data.silent=yes"};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 1};
  assert_int_equal(tn_run_open(h.context, "nulls.ini", &options, &run), TN_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tn_run_train(run, &json), TN_EINVAL);
    const char *text = tn_error_text(run);
    if (occurrences(text, "failed without a message: invalid") != 1 || occurrences(text, "sample") != 1 ||
        strlen(text) > 160)
      fail_msg("%zu characters: %s", strlen(text), text);
  }
  tn_run_close(run);
}

/* The same layer fails silently with each call. */
static tn_status fail_silently(tn_build *b, void *user) {
  (void)b, (void)user;
  return TN_EINVAL;
}

static void a_silent_model_is_told_once(void **state) {
  (void)state;
  tn_run *run = NULL;
  char *json = NULL, first[512] = "";
  assert_int_equal(tn_run_open_model(h.context, fail_silently, NULL, NULL, NULL, &run), TN_OK);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(tn_run_summary(run, &json), TN_EINVAL);
    if (i == 0) snprintf(first, sizeof first, "%s", tn_error_text(run));
    assert_string_equal(tn_error_text(run), first);
  }
  assert_true(strlen(first) > 10 && strlen(first) < 100);
  tn_run_close(run);
}

/* ---- no output ---- */

static size_t printed_by_training(int progress) {
  tn_run *run = NULL;
  char *json = NULL;
  struct stat info;
  const tn_run_options options = {.struct_size = sizeof options, .progress = progress};
  assert_int_equal(tn_run_open(h.context, "nulls.ini", &options, &run), TN_OK);
  fflush(NULL);
  int file = open("printed", O_RDWR | O_CREAT | O_TRUNC, 0600), out = dup(1), err = dup(2);
  dup2(file, 1);
  dup2(file, 2);
  tn_status status = tn_run_train(run, &json);
  fflush(NULL);
  dup2(out, 1);
  dup2(err, 2);
  fstat(file, &info);
  close(file);
  close(out);
  close(err);
  assert_int_equal(status, TN_OK);
  tn_string_free(run, json);
  tn_run_close(run);
  return (size_t)info.st_size;
}

static void training_prints_nothing_unless_asked(void **state) {
  (void)state;
  assert_int_equal(printed_by_training(0), 0);
  assert_true(printed_by_training(1) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pointer_may_be_null),
      cmocka_unit_test(no_exported_function_is_missing_here),
      cmocka_unit_test(the_builder_keeps_a_null_as_its_failure),
      cmocka_unit_test(a_struct_without_its_size_is_refused),
      cmocka_unit_test(a_list_without_its_texts_is_refused),
      cmocka_unit_test(a_silent_failure_is_told_once),
      cmocka_unit_test(a_silent_model_is_told_once),
      cmocka_unit_test(training_prints_nothing_unless_asked),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
