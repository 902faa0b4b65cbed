/* tests/integration/from_c/examples_test.c: the programs of docs/examples/c, built like an application
 * with cc and pkg-config against an installed Tenon, and run. */
#include "workshop.h"

static const char *const examples[] = {"graph", "outputs", "predict", "serve", "tensors", "train_and_infer"};

static int set_up(void **state) {
  (void)state;
  workshop_open();
  workshop_install();
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    workshop_do("%s -std=c11 -O2 -Wall -Wextra -Werror %s/%s.c $(pkg-config --cflags --libs tenon) -lm -o %s",
                COMPILER, FROM_C_EXAMPLES, examples[i], examples[i]);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static void a_configuration_trains_and_infers_in_forty_lines(void **state) {
  (void)state;
  workshop_do("cp %s/../digits.ini digits.ini", FROM_C_EXAMPLES);
  workshop_write("short.ini", "include = digits.ini\n[run]\nepochs = 1\nthreads = 2\n[data]\nepoch = 128\n"
                              "[data.valid]\nepoch = 128\n[schedule]\nwarmup = 0\n");
  workshop_do("./train_and_infer short.ini");
  assert_non_null(strstr(workshop_out, "\"status\": \"finished\""));
  for (int digit = 0; digit < 10; digit++) {
    char line[8];
    snprintf(line, sizeof line, "\n%d: ", digit);
    assert_non_null(strstr(workshop_out, line));
  }
  workshop_do("test $(wc -l <%s/train_and_infer.c) -le 40", FROM_C_EXAMPLES);
}

/* The requests of ten threads share batches, and get the answers that they would get alone. */
static void requests_of_several_threads_share_batches(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  print_message("ThreadSanitizer knows no threads of thrd_create\n");
  skip();
#endif
  int requests = 0, batches = 0, failed = -1;
  double difference = -1, scores[2] = {0, 0};
  workshop_do("cp %s/../digits.ini digits.ini", FROM_C_EXAMPLES);
  workshop_write("served.ini", "include = digits.ini\n[run]\nname = served\nepochs = 1\nthreads = 2\n[data]\n"
                               "epoch = 128\n[data.valid]\nepoch = 128\n[schedule]\nwarmup = 0\n");
  assert_int_equal(workshop_run("./serve served.ini"), 1); /* there is no run yet */
  assert_non_null(strstr(workshop_err, "there are no weights"));
  workshop_do("./train_and_infer served.ini && ./serve served.ini");
  const char *line = strstr(workshop_out, "400 requests");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "%d requests in %d batches, %d failed", &requests, &batches, &failed), 3);
  assert_int_equal(failed, 0);
  assert_in_range(batches, 400 / 32, 399); /* some had several, and none more than 32 */
  line = strstr(workshop_out, "largest difference");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "largest difference from one at a time: %lg", &difference), 1);
  assert_true(difference >= 0 && difference < 1e-4);
  line = strstr(workshop_out, "scores of the first");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "scores of the first picture: %lg %lg", &scores[0], &scores[1]), 2);
  assert_true(scores[0] != 0 && scores[0] != scores[1]);
}

/* The path of docs/guide/tutorial.md: a folder of pictures, and the classes of one of them from C. */
static void the_classes_of_a_picture_have_names(void **state) {
  (void)state;
  json_error_t error;
  workshop_do(
      "mkdir -p photos/cat photos/dog && for i in 1 2 3 4; do cp %s/../../../tests/fuzz/seeds/jpeg/rgb.jpg "
      "photos/cat/$i.jpg; cp %s/../../../tests/fuzz/seeds/jpeg/grey.jpg photos/dog/$i.jpg; done",
      FROM_C_EXAMPLES, FROM_C_EXAMPLES);
  workshop_do("$TENON init photos && $TENON train photos.ini --set run.epochs=1 --set schedule.warmup=0");
  workshop_do("./predict runs/photos/config.ini runs/photos photos/cat/1.jpg");
  json_t *result = json_loads(workshop_out, 0, &error);
  json_t *one = json_array_get(json_object_get(result, "predictions"), 0);
  const char *name =
      json_string_value(json_object_get(json_array_get(json_object_get(one, "top"), 0), "name"));
  assert_non_null(name);
  assert_true(strcmp(name, "cat") == 0 || strcmp(name, "dog") == 0);
  json_decref(result);
  assert_int_equal(workshop_run("./predict photos.ini runs/photos no.jpg"), 1);
  assert_non_null(strstr(workshop_err, "no.jpg"));
}

static void a_model_has_several_inputs_and_outputs(void **state) {
  (void)state;
  workshop_write("outputs.ini", "[model]\ninputs = x: f32[4], allowed: bool[4]\nlayers =\n"
                                "    scores = x if allowed else -1e9\n    probs  = softmax(scores)\n"
                                "    best   = argmax(scores, axis=1)\noutputs = scores, probs, best\n");
  workshop_do("./outputs outputs.ini");
  assert_non_null(strstr(workshop_out, "class 3 with probability 0.67"));
}

static void what_is_wrong_is_said_on_stderr(void **state) {
  (void)state;
  assert_int_equal(workshop_run("./train_and_infer missing.ini"), 1);
  assert_non_null(strstr(workshop_err, "missing.ini"));
  assert_string_equal(workshop_out, "");
}

static void tensors_are_made_computed_and_differentiated(void **state) {
  (void)state;
  workshop_do("./tensors");
  assert_string_equal(workshop_out, "gray: 0.299 0.587 0.114 1\ngradient of the kernel: 2 2 2\n");
}

static void a_model_in_c_learns_is_saved_and_used(void **state) {
  (void)state;
  double says = 0;
  workshop_do("./graph && test -s curve.safetensors");
  const char *line = strstr(workshop_out, "sin(1) is 0.84, the curve says ");
  assert_non_null(line);
  assert_int_equal(sscanf(line, "sin(1) is 0.84, the curve says %lf", &says), 1);
  assert_true(says > 0.8 && says < 0.88);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_configuration_trains_and_infers_in_forty_lines),
      cmocka_unit_test(the_classes_of_a_picture_have_names),
      cmocka_unit_test(a_model_has_several_inputs_and_outputs),
      cmocka_unit_test(requests_of_several_threads_share_batches),
      cmocka_unit_test(what_is_wrong_is_said_on_stderr),
      cmocka_unit_test(tensors_are_made_computed_and_differentiated),
      cmocka_unit_test(a_model_in_c_learns_is_saved_and_used),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
