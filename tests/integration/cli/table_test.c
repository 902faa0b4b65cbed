/* The source `table`, from a CSV to predictions of another one: what the training rows have taught travels
 * with the weights, so the table itself need not be there. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "program.h"

enum { ROWS = 80 };

/* Keys of the source, and the model for its fields. */
#define PASSENGERS                                                                                           \
  "source = table\nfile = train.csv\nsplit = 0.25\ninputs =\n"                                               \
  "    numbers: numbers(Age, Fare, missing=median, standardize=yes)\n"                                       \
  "    sex:     category(Sex)\n"                                                                             \
  "targets = survived: category(Survived)\n"
#define MODEL                                                                                                \
  "[model]\ninputs = numbers: f32[2], sex: i32[]\ntargets = survived: i32[]\nlayers =\n"                     \
  "    e:   embedding(rows=2, width=4) <- sex\n"                                                             \
  "    x:   concat <- numbers, e\n"                                                                          \
  "    fc1: linear(8)\n         relu\n    fc2: linear(2)\n"                                                  \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[optimizer]\ntype = adamw\nlr = 0.02\n"

/* Survival follows the sex; some ages are missing. */
static void write_passengers(void) {
  char text[8192] = "Name,Sex,Age,Fare,Survived\n";
  size_t used = strlen(text);
  for (int i = 0; i < ROWS; i++) {
    char age[8] = "";
    if (i % 11 != 5) snprintf(age, sizeof age, "%d", 20 + i * 7 % 40);
    int male = i * 5 % 7 < 4;
    used += (size_t)snprintf(text + used, sizeof text - used, "\"Passenger, %d\",%s,%s,%.2f,%s\n", i,
                             male ? "male" : "female", age, 5 + i * 13 % 60 / 4.0, male ? "no" : "yes");
  }
  file_write("train.csv", text);
  file_write("new.csv", "Fare,Age,Sex\n30,,female\n8,40,male\n");
  file_write("net.ini", "[run]\nname = run\nepochs = 20\n[data]\nbatch = 8\n" PASSENGERS MODEL);
  file_write("two.ini", "[run]\nname = run\nepochs = 10\n"
                        "[data]\nbatch = 8\nsource = concat\nsources = a, b\nweights = [1, 2]\n"
                        "[source a]\n" PASSENGERS "[source b]\n" PASSENGERS MODEL);
}

/* 100 + 20 a, of which the model learns a standardized part. */
static void write_prices(void) {
  char text[4096] = "a,price\n";
  size_t used = strlen(text);
  for (int i = 0; i < 64; i++) {
    double a = i * 37 % 64 / 8.0;
    used += (size_t)snprintf(text + used, sizeof text - used, "%g,%g\n", a, 100 + 20 * a);
  }
  file_write("prices.csv", text);
  file_write("few.csv", "a\n0\n4\n");
  file_write("price.ini", "[run]\nname = price\nepochs = 40\n"
                          "[data]\nsource = table\nfile = prices.csv\nfold = 1/4\nbatch = 8\n"
                          "inputs = a: numbers(a, standardize=yes)\n"
                          "targets = price: number(price, standardize=yes)\n"
                          "[model]\ninputs = a: f32[1]\ntargets = price: f32[]\nlayers =\n"
                          "    fc:    linear(1)\n    y: reshape([])\nloss = mse\n"
                          "[optimizer]\nlr = 0.1\n");
}

static const char *best_name(const json_t *result, size_t row) {
  const json_t *one = json_array_get(program_member(result, "predictions"), row);
  return json_string_value(json_object_get(json_array_get(json_object_get(one, "top"), 0), "name"));
}

static void rows_of_another_table_are_predicted_without_the_first(void **state) {
  (void)state;
  write_passengers();
  const json_t *r = program_json(0, "train net.ini");
  assert_true(program_number(r, "valid.accuracy") == 1);
  double loss = program_number(r, "valid.loss");
  r = program_json(0, "eval net.ini --weights runs/run/checkpoints/last");
  assert_true(fabs(program_number(r, "loss") - loss) < 1e-6);
  assert_int_equal(unlink("train.csv"), 0);
  r = program_json(0, "predict runs/run --input new.csv");
  assert_string_equal(best_name(r, 0), "yes");
  assert_string_equal(best_name(r, 1), "no");
  assert_int_equal(program_run("predict runs/run --input new.csv --output out.csv"), 0);
  const char *out = file_read("out.csv", NULL);
  assert_ptr_equal(strstr(out, "input,class,no,yes\n"), out);
  assert_non_null(strstr(out, "new.csv:2,yes,"));
  assert_non_null(strstr(out, "new.csv:3,no,"));
  file_write("new.csv", "Fare,Age,Sex\n30,,unknown\n");
  assert_int_equal(program_run("predict runs/run --input new.csv"), 65);
  assert_non_null(strstr(program_err,
                         "new.csv:2: column 'Sex', value 'unknown': is no class of the training rows, "
                         "expected one of female, male"));
  assert_int_equal(program_run("predict net.ini --input new.csv --set data.inputs=numbers:numbers(Fare)"),
                   65);
  assert_non_null(
      strstr(program_err, "the weights were trained with other data: the number of columns differs"));
}

/* Each of two joined tables has learnt for itself. */
static void joined_tables_travel_with_the_weights(void **state) {
  (void)state;
  write_passengers();
  program_json(0, "train two.ini");
  unlink("train.csv");
  const json_t *r = program_json(0, "predict runs/run --input new.csv");
  assert_string_equal(best_name(r, 0), "yes");
  assert_string_equal(best_name(r, 1), "no");
}

static void a_run_is_resumed_with_any_number_of_workers(void **state) {
  (void)state;
  write_passengers();
  program_json(0, "train net.ini --output whole --set run.epochs=3");
  program_json(0,
               "train net.ini --output parts --set run.epochs=3 --set run.max_steps=11 --set data.workers=0");
  program_json(0, "train net.ini --output parts --set run.epochs=3 --resume auto");
  checkpoints_equal("whole", "parts");
}

/* With another row in the table the mean would be another one; that of the run is kept. */
static void a_resumed_run_keeps_what_it_has_learnt(void **state) {
  (void)state;
  size_t n;
  write_passengers();
  program_json(0, "train net.ini --set run.epochs=1");
  char *text = file_read("train.csv", &n);
  FILE *file = fopen("train.csv", "a");
  fputs("New,male,99,1000,no\n", file);
  fclose(file);
  const char *weights = "runs/run/checkpoints/last/model.safetensors";
  const char *before = strstr(file_read(weights, &n) + 8, "tenon.data");
  assert_non_null(before);
  char *kept = strndup(before, 300);
  program_json(0, "train net.ini --set run.epochs=2 --resume runs/run");
  assert_non_null(strstr(file_read(weights, &n) + 8, kept));
  free(kept);
  assert_non_null(text);
}

static void predictions_are_in_the_units_of_the_table(void **state) {
  (void)state;
  write_prices();
  program_json(0, "train price.ini");
  const json_t *r = program_json(0, "predict price.ini --input few.csv"), *values;
  static const double expected[] = {100, 180};
  for (size_t i = 0; i < 2; i++) {
    values = json_object_get(json_array_get(program_member(r, "predictions"), i), "values");
    assert_true(fabs(json_number_value(json_object_get(values, "price")) - expected[i]) < 1);
  }
  assert_int_equal(program_run("predict price.ini --input few.csv --csv"), 0);
  assert_ptr_equal(strstr(program_out, "input,price\n\"few.csv:2\","), program_out);
  assert_int_equal(program_run("predict price.ini --input few.csv"), 0);
  assert_non_null(strstr(program_out, "few.csv:3   price 1"));
  assert_int_equal(program_run("predict price.ini --input few.csv --output out.csv"), 0);
  const char *out = file_read("out.csv", NULL);
  assert_ptr_equal(strstr(out, "input,price\nfew.csv:2,"), out);
}

/* Two standardized targets, whose outputs are told by the losses. */
static void each_output_is_in_the_units_of_its_target(void **state) {
  (void)state;
  char text[4096] = "a,price,mass\n";
  size_t used = strlen(text);
  for (int i = 0; i < 64; i++) {
    double a = i * 37 % 64 / 8.0;
    used += (size_t)snprintf(text + used, sizeof text - used, "%g,%g,%g\n", a, 100 + 20 * a, 7 - a);
  }
  file_write("two.csv", text);
  file_write("few.csv", "a\n0\n4\n");
  file_write(
      "two.ini",
      "[run]\nname = two\nepochs = 40\n[data]\nsource = table\nfile = two.csv\nbatch = 8\n"
      "inputs = a: numbers(a, standardize=yes)\n"
      "targets =\n    price: numbers(price, standardize=yes)\n    mass: numbers(mass, standardize=yes)\n"
      "[model]\ninputs = a: f32[1]\ntargets = price: f32[1], mass: f32[1]\nlayers =\n"
      "    y: linear(1) <- a\n    z: linear(1) <- a\noutputs = z, y\n"
      "loss =\n    of_y: mse <- y, price\n    of_z: mse <- z, mass\n[optimizer]\nlr = 0.1\n");
  program_json(0, "train two.ini");
  assert_int_equal(unlink("two.csv"), 0);
  assert_int_equal(program_run("predict runs/two --input few.csv --output out.csv"), 0);
  const char *out = file_read("out.csv", NULL), *row = strstr(out, "few.csv:3,");
  assert_ptr_equal(strstr(out, "input,mass_1,price_1\n"), out);
  assert_non_null(row);
  assert_true(fabs(strtod(row + 10, NULL) - 3) < 0.2);
  assert_true(fabs(strtod(strchr(row + 10, ',') + 1, NULL) - 180) < 3);
}

static void has(const char *file, const char *text) {
  if (strstr(file_read(file, NULL), text) == NULL)
    fail_msg("%s lacks '%s':\n%s", file, text, file_read(file, NULL));
}

/* The last column is the target, names are left out, and the proposal trains and predicts. */
static void init_proposes_a_network_for_a_table(void **state) {
  (void)state;
  write_passengers();
  const json_t *r = program_json(0, "init train.csv");
  assert_string_equal(program_text(r, "kind"), "table");
  has("train.ini", "different words: 'Name'\n");
  has("train.ini", "    numbers: numbers(Age, Fare, missing=median, standardize=yes)\n");
  has("train.ini", "    Sex: category(Sex, unknown=other, missing=class)\n");
  has("train.ini", "targets = Survived: category(Survived, classes=no|yes)\n");
  r = program_json(0, "train train.ini --set run.epochs=2");
  assert_true(program_number(r, "valid.accuracy") > 0);
  assert_int_equal(program_run("predict train.ini --input new.csv --csv"), 0);
  assert_non_null(strstr(program_out, "\"new.csv:2\",1,"));
  write_prices();
  assert_int_equal(program_run("init prices.csv"), 0);
  has("prices.ini", "number(price, standardize=yes)");
  program_json(0, "train prices.ini --set run.epochs=1");
  assert_int_equal(program_run("predict prices.ini --input few.csv"), 0);
  file_write("few.tsv", "a\tb\n1\t2\n");
  assert_int_equal(program_run("init few.tsv"), 65);
  assert_non_null(strstr(program_err, "has 1 rows of 2 columns, expected at least 10 rows and 2 columns"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(rows_of_another_table_are_predicted_without_the_first),
      IN_FOLDER(joined_tables_travel_with_the_weights),
      IN_FOLDER(a_run_is_resumed_with_any_number_of_workers),
      IN_FOLDER(a_resumed_run_keeps_what_it_has_learnt),
      IN_FOLDER(predictions_are_in_the_units_of_the_table),
      IN_FOLDER(each_output_is_in_the_units_of_its_target),
      IN_FOLDER(init_proposes_a_network_for_a_table),
  };
  return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
