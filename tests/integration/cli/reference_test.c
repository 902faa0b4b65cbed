/* `tenon reference FOLDER` and the descriptors that it reads: types, examples, initializers, sections. */
#include <sys/stat.h>

#include "program.h"

static void has(const char *file, const char *text) {
  if (strstr(file_read(file, NULL), text) == NULL) fail_msg("%s lacks '%s'", file, text);
}

/* The item of that name and kind. */
static const json_t *item(const char *name, const char *kind) {
  const json_t *items = program_member(program_json(0, "inspect %s", name), "items"), *one;
  size_t i;
  json_array_foreach(items, i, one) if (strcmp(program_text(one, "kind"), kind) == 0) return one;
  fail_msg("there is no %s %s", kind, name);
  return NULL;
}

static void a_page_has_doc_options_and_example(void **state) {
  (void)state;
  assert_int_equal(program_run("reference pages"), 0);
  assert_string_equal(program_out, "");
  has("pages/layers.md", "\n## conv2d\n");
  has("pages/layers.md", "\nShapes: (N, C, H, W) to (N, channels, H', W')");
  has("pages/layers.md", "\n| `channels` | integer | required | >= 1 | channels of the result |\n");
  has("pages/layers.md", "\n| `bias` | yes, no | `yes` |  | add a bias per channel |\n");
  has("pages/layers.md", "layers = conv1: conv2d(16, kernel=3, padding=1)\n");
  has("pages/layers.md", "\nInputs: 3 to 4.\n");
  has("pages/layers.md", "\nInputs: 2 or more.\n");
  has("pages/schedules.md", "| `unit` | `epochs`, `steps`, `samples` | `epochs` |  |");
  has("pages/schedules.md", "[schedule]\ntype = exponential\ngamma = 0.95\n");
  has("pages/initializers.md", "layers = fc1: linear(10, init=normal(0, 0.02))\n");
  has("pages/sections.md", "\n## [group.NAME]\n");
  has("pages/sections.md", "names of the file as names of the model: OLD -> NEW, with \\* for equal parts");
  has("pages/commands.md", "| `--resume auto\\|FOLDER` |");
  has("pages/commands.md", "\n| 75 | stopped by a signal, and saved |\n");
  has("pages/README.md", "[global_avg_pool](layers.md#global_avg_pool)");
}

static void pages_are_renewed_and_other_files_are_kept(void **state) {
  (void)state;
  assert_int_equal(program_run("reference pages"), 0);
  assert_int_equal(program_run("reference pages"), 0);
  assert_int_equal(mkdir("mine", 0777), 0);
  file_write("mine/README.md", "# Mine\n");
  assert_int_equal(program_run("reference mine"), 65);
  assert_non_null(strstr(program_err, "mine/README.md is no page of the reference, and is not overwritten"));
  assert_string_equal(file_read("mine/README.md", NULL), "# Mine\n");
}

static void a_folder_that_cannot_be_written_is_named(void **state) {
  (void)state;
  file_write("file", "");
  assert_int_equal(program_run("reference file"), 74);
  assert_non_null(strstr(program_err, "file/README.md: Not a directory"));
  assert_int_equal(program_run("reference missing/pages"), 74);
  assert_non_null(strstr(program_err, "missing/pages: No such file or directory"));
  assert_int_equal(program_run("reference"), 2);
}

static void an_op_has_its_function_on_the_page(void **state) {
  (void)state;
  assert_int_equal(program_run("reference pages"), 0);
  has("pages/ops.md", "\nIn C: `tn_val tn_leaky_relu(tn_build *build, tn_val x, double slope)`\n");
  has("pages/ops.md", "\nThe dimensions before the last two broadcast.\n");
  assert_int_equal(program_run("inspect matmul"), 0);
  assert_non_null(strstr(program_out, "    notes        The dimensions before the last two broadcast.\n"));
}

static void descriptors_have_types_and_examples(void **state) {
  (void)state;
  assert_string_equal(program_text(item("global_avg_pool", "layer"), "types"), "(N, C, H, W) to (N, C)");
  assert_string_equal(program_text(item("cross_entropy", "layer"), "role"), "loss");
  assert_int_equal(program_number(item("attention", "layer"), "min_in"), 3);
  assert_string_equal(program_text(item("digits", "source"), "types"), "image: u8[1, 28, 28], label: i32[]");
  assert_true(json_is_true(program_member(item("mixup", "transform"), "training_only")));
  assert_string_equal(program_text(item("exponential", "schedule"), "example"), "gamma = 0.95");
  assert_string_equal(program_text(item("kaiming_normal", "initializer"), "example"),
                      "kaiming_normal(mode=fan_out)");
  assert_true(json_array_size(program_member(program_json(0, "inspect"), "sections")) > 10);
  assert_int_equal(program_run("inspect split"), 0);
  assert_non_null(strstr(program_out, "    example      inputs = x: f32[64]\n                 layers =\n"));
  assert_int_equal(program_run("inspect kaiming_norml"), 65);
  assert_non_null(strstr(program_err, "did you mean 'kaiming_normal'?"));
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(a_page_has_doc_options_and_example),       CASE(pages_are_renewed_and_other_files_are_kept),
      CASE(a_folder_that_cannot_be_written_is_named), CASE(an_op_has_its_function_on_the_page),
      CASE(descriptors_have_types_and_examples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
