/* The models of docs/examples are exported and imported again, and give the same outputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/export.h"
#include "tenon/import.h"
#include "tenon/session.h"
#include "tests/support/folder.h"

enum { BATCH = 2, MOST_BUFFERS = 8 };
static const double tolerance = 1e-5; /* of the largest output */

#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)

/* A model whose outputs are computed. */
typedef struct model {
  tn_run *run;
  tn_session *session;
  void *buffers[MOST_BUFFERS];
  const float *output;
  int64_t count;
  int n_buffers;
} model;

static tn_context *context;
static folder place;

static const char *in_folder(const char *name, char path[512]) {
  snprintf(path, 512, "%s", folder_path(&place, name));
  return path;
}

static void fill(const tn_type *type, void *to) {
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    if (type->dtype == TN_F32) ((float *)to)[i] = sinf((float)i);
    if (type->dtype == TN_I32) ((int32_t *)to)[i] = (int32_t)(1 + i % 3);
    if (type->dtype == TN_I64) ((int64_t *)to)[i] = 1 + i % 3;
    if (type->dtype == TN_BOOL) ((uint8_t *)to)[i] = i % 4 != 0;
  }
}

static void bind_fields(model *m) {
  tn_session_field field = {.struct_size = sizeof field};
  for (int32_t i = 0; tn_session_describe(m->session, i, &field) == TN_OK; i++) {
    void *buffer = m->buffers[m->n_buffers++] = calloc(tn_type_bytes(&field.type), 1);
    assert_non_null(buffer);
    if (field.role == TN_SESSION_INPUT) fill(&field.type, buffer);
    OK(m->session, tn_session_bind(m->session, field.name, buffer, tn_type_bytes(&field.type)));
    if (field.role != TN_SESSION_OUTPUT || m->output != NULL) continue;
    m->output = buffer;
    m->count = tn_type_count(&field.type);
  }
}

static model compute(const char *path, const char *weights) {
  model m = {NULL};
  static const char *const cpu[] = {"backend.use=cpu"};
  const tn_run_options options = {.struct_size = sizeof options, .set = cpu, .n_set = 1, .weights = weights};
  const tn_session_options infer = {
      .struct_size = sizeof infer, .infer = 1, .batch = BATCH, .weights = weights};
  OK(context, tn_run_open(context, path, &options, &m.run));
  OK(m.run, tn_session_open(m.run, &infer, &m.session));
  bind_fields(&m);
  OK(m.session, tn_session_infer(m.session, 0));
  return m;
}

static void close_model(model *m) {
  for (int i = 0; i < m->n_buffers; i++) free(m->buffers[i]);
  tn_session_close(m->session);
  tn_run_close(m->run);
}

/* The initial weights of a configuration as a file. */
static void write_weights(const char *ini, const char *path) {
  tn_run *run = NULL;
  tn_session *session = NULL;
  const tn_session_options fresh = {.struct_size = sizeof fresh, .infer = 1, .weights = ""};
  OK(context, tn_run_open(context, ini, NULL, &run));
  OK(run, tn_session_open(run, &fresh, &session));
  OK(session, tn_session_save(session, path));
  tn_session_close(session);
  tn_run_close(run);
}

static void check_equal(const char *name, const model *found, const model *expected) {
  double largest = 0, worst = 0;
  assert_int_equal(found->count, expected->count);
  for (int64_t i = 0; i < expected->count; i++) largest = fmax(largest, fabs((double)expected->output[i]));
  for (int64_t i = 0; i < expected->count; i++)
    worst = fmax(worst, fabs((double)found->output[i] - (double)expected->output[i]));
  assert_true(largest > 0);
  if (!(worst <= tolerance * largest)) fail_msg("%s: differs by %g of %g", name, worst, largest);
}

static void give_back(const char *name) {
  char ini[512], weights[512], onnx[512], taken[512], *json = NULL;
  snprintf(ini, sizeof ini, EXAMPLES "/%s.ini", name);
  write_weights(ini, in_folder("weights.safetensors", weights));
  model first = compute(ini, weights);
  OK(first.run, tn_run_export_onnx(first.run, in_folder("model.onnx", onnx), NULL, &json));
  tn_string_free(first.run, json);
  OK(context, tn_import_onnx(context, onnx, in_folder("taken.ini", taken), NULL, &json));
  tn_string_free(context, json);
  model second = compute(taken, NULL);
  check_equal(name, &second, &first);
  close_model(&second);
  close_model(&first);
}

static int open_context(void **state) {
  (void)state;
  folder_make(&place);
  return tn_context_open(NULL, &context) != TN_OK;
}

static int close_context(void **state) {
  (void)state;
  tn_context_close(context);
  folder_remove(&place);
  return 0;
}

#define MODEL(name)                                                                                          \
  static void name##_is_given_back(void **state) {                                                           \
    (void)state;                                                                                             \
    give_back("models/" #name);                                                                              \
  }
MODEL(bert)
MODEL(dlrm)
MODEL(lstm)
MODEL(llama)
MODEL(conformer)
MODEL(speech)
MODEL(unet)

static void a_residual_network_is_given_back(void **state) {
  (void)state;
  give_back("cifar10_resnet9");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(bert_is_given_back),      TEST(dlrm_is_given_back),
                                     TEST(lstm_is_given_back),      TEST(llama_is_given_back),
                                     TEST(conformer_is_given_back), TEST(speech_is_given_back),
                                     TEST(unet_is_given_back),      TEST(a_residual_network_is_given_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
