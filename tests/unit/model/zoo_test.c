/* The models of docs/zoo have the numbers of parameters that their papers and packages state: each file is
 * read, and its graph with losses and metrics built. tests/golden/compare_zoo.py compares what they compute.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/model.h"
#include "core/ops/ops.h"
#include "core/plugin/handles.h"

const tn_plugin *tn_static_layers(void);
const tn_plugin *tn_static_losses(void);

typedef struct zoo_row {
  const char *name;
  long long parameters; /* trained; weights that two layers share count once */
} zoo_row;

static const zoo_row rows[] = {
    {"alexnet", 61100840},
    {"bert_base", 109483778},
    {"clip_vit_b_32", 151277313},
    {"convnext_tiny", 28589128},
    {"dcgan", 3576704},
    {"ddpm_cifar10_32", 35746307},
    {"deeplabv3_resnet50", 39638869},
    {"deit_base_patch16_224", 86567656},
    {"deit_small_patch16_224", 22050664},
    {"densenet121", 7978856},
    {"distilbert_base", 66955010},
    {"dlrm", 4622609},
    {"efficientnet_b0", 5288548},
    {"efficientnet_v2_s", 21458488},
    {"fcn_resnet50", 32957013},
    {"gemma_2b", 2506172416},
    {"googlenet", 6624904},
    {"gpt2", 124439808},
    {"inception_v3", 23834568},
    {"llama2_7b", 6738415616},
    {"llama3_8b", 8030261248},
    {"lstm_tagger", 4318865},
    {"mistral_7b", 7241732096},
    {"mixer_b16_224", 59880472},
    {"mobilenet_v2", 3504872},
    {"mobilenet_v3_large", 5483032},
    {"mobilenet_v3_small", 2542856},
    {"pythia_160m", 162322944},
    {"qwen2_0.5b", 494032768},
    {"regnet_x_400mf", 5495976},
    {"regnet_y_400mf", 4344144},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnext50_32x4d", 25028904},
    {"retinanet_resnet50_fpn", 34068119},
    {"roberta_base", 124647170},
    {"sd_vae", 83653863},
    {"shufflenet_v2_x1_0", 2278604},
    {"siamese", 5913920},
    {"smollm_135m", 134515008},
    {"squeezenet1_1", 1235496},
    {"swin_t", 28288354},
    {"t5_small", 60506624},
    {"tinyllama_1b", 1100048384},
    {"unet", 31037698},
    {"vgg11", 132863336},
    {"vgg11_bn", 132868840},
    {"vgg16", 138357544},
    {"vgg16_bn", 138365992},
    {"vit_b_16", 86567656},
    {"wavenet", 645760},
    {"whisper_tiny", 37760640},
    {"wide_resnet50_2", 68883240},
    {"yolo_small", 7235389},
};

static struct {
  tn_env env;
  tn_error_record record;
  tn_registry *registry;
  struct tn_op_table *ops;
} Z;

static void expect_ok(tn_status status) {
  if (status != TN_OK) fail_msg("%s", tn_error_text(&Z.env));
}

static int zoo_open(void **state) {
  (void)state;
  tn_error_record_init_root(&Z.env, &Z.record, &tn_host_api);
  expect_ok(tn_registry_create(&Z.env, "", &Z.registry));
  expect_ok(tn_registry_add(Z.registry, &Z.env, tn_core_ops(), ""));
  expect_ok(tn_registry_add(Z.registry, &Z.env, tn_static_layers(), ""));
  expect_ok(tn_registry_add(Z.registry, &Z.env, tn_static_losses(), ""));
  expect_ok(tn_op_table_create(&Z.env, Z.registry, &Z.ops));
  return 0;
}

static int zoo_close(void **state) {
  (void)state;
  tn_op_table_destroy(Z.ops);
  tn_registry_destroy(Z.registry);
  return 0;
}

static long long count_parameters(const tn_graph *graph) {
  long long n = 0;
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].what == TN_STATE_PARAM) n += tn_type_count(&graph->states.v[i].type);
  return n;
}

static long long build(const char *name) {
  char path[1024];
  tn_ini ini;
  tn_model model;
  snprintf(path, sizeof path, ZOO "/%s.ini", name);
  expect_ok(tn_ini_read(&Z.env, path, &ini));
  bool measured = tn_section_key(tn_ini_section(&ini, "model"), "loss") != NULL;
  tn_model_request request = {.ini = &ini,
                              .registry = Z.registry,
                              .ops = Z.ops,
                              .batch = 2,
                              .training = measured,
                              .measured = measured};
  expect_ok(tn_model_build(&Z.env, &request, &model));
  expect_ok(tn_graph_verify(model.graph));
  long long parameters = count_parameters(model.graph);
  tn_model_free(&model);
  tn_ini_free(&ini);
  return parameters;
}

static void models_have_their_numbers_of_parameters(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    long long n = build(rows[i].name);
    if (n != rows[i].parameters)
      fail_msg("%s has %lld parameters, expected %lld", rows[i].name, n, rows[i].parameters);
  }
}

static bool has_row(const char *file) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t n = strlen(rows[i].name);
    if (strncmp(file, rows[i].name, n) == 0 && strcmp(file + n, ".ini") == 0) return true;
  }
  return false;
}

static void each_model_of_the_folder_is_counted(void **state) {
  (void)state;
  size_t found = 0;
  DIR *folder = opendir(ZOO);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (strstr(entry->d_name, ".ini") == NULL) continue;
    if (!has_row(entry->d_name)) fail_msg("%s has no row in this test", entry->d_name);
    found++;
  }
  closedir(folder);
  assert_int_equal(found, sizeof rows / sizeof *rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models_have_their_numbers_of_parameters),
                                     cmocka_unit_test(each_model_of_the_folder_is_counted)};
  return cmocka_run_group_tests(tests, zoo_open, zoo_close);
}
