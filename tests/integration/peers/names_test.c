/* tests/integration/peers/names_test.c: the parameters and running statistics of the examples have the names
 * and shapes of torchvision's and Hugging Face's state dicts (tests/golden/make_names.py), so that their
 * files load without a mapping. */
#include "peers.h"

/* The shape of a state in the format of the lists: "64x3x7x7". */
static void shape_text(const json_t *state, char text[64]) {
  const json_t *shape = json_object_get(state, "shape");
  int n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < json_array_size(shape); i++)
    n += snprintf(text + n, 64 - (size_t)n, "%s%lld", i > 0 ? "x" : "",
                  (long long)json_integer_value(json_array_get(shape, i)));
}

/* Maps the paths of a checkpoint's model to shapes. */
static json_t *names_of_plan(const json_t *plan) {
  json_t *names = json_object(), *states = json_object_get(plan, "states");
  for (size_t i = 0; i < json_array_size(states); i++) {
    const json_t *state = json_array_get(states, i);
    const char *kind = program_text(state, "kind");
    char shape[64];
    if (strcmp(kind, "param") != 0 && strcmp(kind, "buffer") != 0) continue;
    shape_text(state, shape);
    json_object_set_new(names, program_text(state, "path"), json_string(shape));
  }
  return names;
}

/* Removes each listed name from `names`; remaining names are failures. */
static void take_listed(const char *list, json_t *names) {
  char path[512], name[256], shape[64];
  snprintf(path, sizeof path, ROOT "/tests/golden/names/%s.txt", list);
  for (char *rest = file_read(path, NULL), *line; (line = strsep(&rest, "\n")) && *line;) {
    if (*line == '#') continue;
    assert_int_equal(sscanf(line, "%255s %63s", name, shape), 2);
    const char *ours = json_string_value(json_object_get(names, name));
    if (!ours || strcmp(ours, shape) != 0)
      fail_msg("%s: %s, expected %s", name, ours ? ours : "absent", shape);
    json_object_del(names, name);
  }
}

static void has_names(const char *example, const char *list, double parameters) {
  const json_t *plan = program_json(0, "plan " ROOT "/docs/examples/%s.ini", example);
  assert_true(program_number(plan, "parameters") == parameters);
  json_t *names = names_of_plan(plan);
  take_listed(list, names);
  if (json_object_size(names) > 0)
    fail_msg("%s is not in the list", json_object_iter_key(json_object_iter(names)));
  json_decref(names);
}

static void resnet18_is_torchvisions(void **state) {
  (void)state;
  has_names("imagenet_resnet18", "resnet18", 11689512);
}

static void resnet50_is_torchvisions(void **state) {
  (void)state;
  has_names("imagenet_resnet50", "resnet50", 25557032);
}

static void gpt2_is_hugging_faces(void **state) {
  (void)state;
  has_names("gpt2_124m", "gpt2", 124439808);
}

static void every_example_plans_without_data(void **state) {
  (void)state;
  static const char *const examples[] = {"digits",          "mnist_mlp",        "mnist_lenet",
                                         "cifar10_resnet9", "cifar10_resnet18", "cifar10_resnet18_224",
                                         "shakespeare_char"};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    program_json(0, "plan " ROOT "/docs/examples/%s.ini", examples[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(resnet18_is_torchvisions, program_open, program_close),
      cmocka_unit_test_setup_teardown(resnet50_is_torchvisions, program_open, program_close),
      cmocka_unit_test_setup_teardown(gpt2_is_hugging_faces, program_open, program_close),
      cmocka_unit_test_setup_teardown(every_example_plans_without_data, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
