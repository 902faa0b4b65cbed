/* tools/predict.c: `tenon predict FILE.ini --weights W --input PATH...`. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"

static const char *predict_class_name(const json_t *class, char number[24]) {
  const char *name = json_string_value(json_object_get(class, "name"));
  snprintf(number, 24, "%lld", (long long)json_integer_value(json_object_get(class, "class")));
  return name != NULL ? name : number;
}

/* A name that a line can show as it is; else, such as a blank, the name as a string of JSON. */
static void predict_print_name(const char *name) {
  bool plain = *name != '\0';
  for (const char *c = name; *c != '\0'; c++) plain = plain && (unsigned char)*c > ' ' && *c != '"';
  json_t *string = plain ? NULL : json_string(name);
  char *quoted = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
  printf("%s", quoted != NULL ? quoted : name);
  free(quoted);
  json_decref(string);
}

/* Scores that are not finite have no order. */
static bool predict_is_not_finite(const json_t *prediction) {
  return json_array_size(json_object_get(prediction, "top")) == 0;
}

/* The numbers of an output, each behind `before`; null, which is no finite number, as nan. */
static void predict_print_values(const json_t *value, const char *before) {
  size_t i;
  const json_t *one;
  if (!json_is_array(value)) {
    printf("%s%.9g", before, json_is_number(value) ? json_number_value(value) : NAN);
    return;
  }
  json_array_foreach(value, i, one) predict_print_values(one, before);
}

/* new.csv:2   price 12.5   box 1 2 3 4 */
static void predict_print_outputs(json_t *values) {
  const char *name;
  json_t *value;
  json_object_foreach(values, name, value) {
    printf("   %s", name);
    predict_print_values(value, " ");
  }
}

/* input,price,box_1,box_2 */
static void predict_print_csv_names(json_t *values) {
  const char *name;
  json_t *value;
  printf("input");
  json_object_foreach(values, name, value) {
    if (!json_is_array(value)) printf(",%s", name);
    for (size_t i = 0; i < json_array_size(value); i++) printf(",%s_%zu", name, i + 1);
  }
  printf("\n");
}

/* cat.jpg   road 61.0 %   sky 20.4 %, the parts of a mask */
static void predict_print_areas(const json_t *areas) {
  size_t i;
  const json_t *one;
  char number[24];
  json_array_foreach(areas, i, one) {
    printf("   ");
    predict_print_name(predict_class_name(one, number));
    printf(" %.1f %%", 100 * json_real_value(json_object_get(one, "part")));
  }
}

/* cat.jpg   cat 93.1 % at 3 4 20.5 30 */
static void predict_print_boxes(const json_t *boxes) {
  size_t i;
  const json_t *one;
  char number[24];
  json_array_foreach(boxes, i, one) {
    printf("   ");
    predict_print_name(predict_class_name(one, number));
    printf(" %.1f %% at", 100 * json_number_value(json_object_get(one, "score")));
    predict_print_values(json_object_get(one, "box"), " ");
  }
  if (json_array_size(boxes) == 0) printf("   no boxes");
}

/* cat.jpg    cat 93.1 %   dog 4.0 % */
static void predict_print_line(const json_t *prediction, int width) {
  size_t i;
  const json_t *class;
  char number[24];
  printf("%-*s", width, json_string_value(json_object_get(prediction, "input")));
  json_t *values = json_object_get(prediction, "values");
  predict_print_outputs(values);
  json_t *areas = json_object_get(prediction, "areas"), *boxes = json_object_get(prediction, "boxes");
  predict_print_areas(areas);
  if (boxes != NULL) predict_print_boxes(boxes);
  const char *picture = json_string_value(json_object_get(prediction, "picture"));
  if (picture != NULL) printf("   %s", picture);
  bool places = areas != NULL || boxes != NULL || picture != NULL;
  if (values == NULL && !places && predict_is_not_finite(prediction)) printf("   not finite");
  json_array_foreach(json_object_get(prediction, "top"), i, class) {
    printf("   ");
    predict_print_name(predict_class_name(class, number));
    printf(" %.1f %%", 100 * json_real_value(json_object_get(class, "probability")));
  }
  printf("\n");
}

/* As RFC 4180 asks: in quotation marks, which are doubled inside. A spreadsheet takes a text that begins so
 * for a formula; an apostrophe in front makes it a text. */
static void predict_print_quoted(const char *text) {
  putchar('"');
  if (*text != '\0' && strchr("=+-@", *text) != NULL) putchar('\'');
  for (; *text != '\0'; text++) {
    if (*text == '"') putchar('"');
    putchar(*text);
  }
  putchar('"');
}

/* A line for each class of a mask, and for each box. */
static void predict_print_csv_places(const json_t *prediction) {
  const json_t *areas = json_object_get(prediction, "areas"), *boxes = json_object_get(prediction, "boxes"),
               *one;
  size_t i;
  char number[24];
  json_array_foreach(areas != NULL ? areas : boxes, i, one) {
    predict_print_quoted(json_string_value(json_object_get(prediction, "input")));
    printf(",%zu,%lld,", i + 1, (long long)json_integer_value(json_object_get(one, "class")));
    predict_print_quoted(predict_class_name(one, number));
    printf(",%.9g", json_number_value(json_object_get(one, areas != NULL ? "part" : "score")));
    if (areas == NULL) predict_print_values(json_object_get(one, "box"), ",");
    printf("\n");
  }
}

static const char *predict_csv_names(const json_t *first) {
  if (json_object_get(first, "areas") != NULL) return "input,rank,class,name,part";
  if (json_object_get(first, "boxes") != NULL) return "input,rank,class,name,score,x0,y0,x1,y1";
  if (json_object_get(first, "picture") != NULL) return "input,picture";
  return "input,rank,class,name,probability";
}

/* A line for each class of each prediction. A prediction without classes has a line whose probability is nan,
 * so that no input is missing. */
static void predict_print_csv(const json_t *prediction) {
  size_t i;
  const json_t *class;
  char number[24];
  const char *name;
  json_t *values = json_object_get(prediction, "values"), *value;
  if (json_object_get(prediction, "areas") != NULL || json_object_get(prediction, "boxes") != NULL) {
    predict_print_csv_places(prediction);
    return;
  }
  const char *picture = json_string_value(json_object_get(prediction, "picture"));
  if (picture != NULL) {
    predict_print_quoted(json_string_value(json_object_get(prediction, "input")));
    putchar(',');
    predict_print_quoted(picture);
    putchar('\n');
    return;
  }
  if (values != NULL) {
    predict_print_quoted(json_string_value(json_object_get(prediction, "input")));
    json_object_foreach(values, name, value) predict_print_values(value, ",");
    printf("\n");
    return;
  }
  if (predict_is_not_finite(prediction)) {
    predict_print_quoted(json_string_value(json_object_get(prediction, "input")));
    printf(",1,,,nan\n");
  }
  json_array_foreach(json_object_get(prediction, "top"), i, class) {
    predict_print_quoted(json_string_value(json_object_get(prediction, "input")));
    printf(",%zu,%lld,", i + 1, (long long)json_integer_value(json_object_get(class, "class")));
    predict_print_quoted(predict_class_name(class, number));
    printf(",%.9g\n", json_real_value(json_object_get(class, "probability")));
  }
}

static int predict_width(const json_t *predictions) {
  size_t i, width = 0;
  const json_t *one;
  json_array_foreach(predictions, i, one) {
    size_t n = strlen(json_string_value(json_object_get(one, "input")));
    width = n > width ? n : width;
  }
  return width < 60 ? (int)width : 60;
}

static void predict_print(const cli_args *args, const char *text) {
  size_t i;
  json_t *result = cli_load_plain(text), *predictions = json_object_get(result, "predictions");
  const json_t *one;
  int width = predict_width(predictions);
  json_t *values = json_object_get(json_array_get(predictions, 0), "values");
  if (args->csv && values != NULL)
    predict_print_csv_names(values);
  else if (args->csv)
    printf("%s\n", predict_csv_names(json_array_get(predictions, 0)));
  json_array_foreach(predictions, i, one) {
    if (args->csv)
      predict_print_csv(one);
    else
      predict_print_line(one, width);
  }
  json_decref(result);
}

static int predict_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  if (args->n_inputs == 0)
    return cli_refuse(
        args, CLI_USAGE,
        "expected --input PATH: a picture, a folder of them, a table, a text, a .npy or a .safetensors file");
  cli_args of_run = *args;
  of_run.output = NULL; /* names the file of arrays, not the folder of runs */
  int code = cli_open_run_or_folder(context, &of_run, &run);
  if (code != CLI_OK) return code;
  tn_predict_options options = {.struct_size = sizeof options,
                                .inputs = args->inputs,
                                .n_inputs = args->n_inputs,
                                .output = args->output,
                                .top = (int32_t)args->top,
                                .show = args->show,
                                .threshold = args->threshold > 0 ? args->threshold : -1};
  tn_status status = tn_run_predict(run, &options, &json);
  if (json && args->json)
    printf("%s\n", json);
  else if (json)
    predict_print(args, json);
  code = cli_finish(args, run, status, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_predict = {.name = "predict",
                                     .words = "FILE.ini|RUN",
                                     .doc = "the model's outputs for pictures, tables, texts or arrays",
                                     .min_words = 1,
                                     .max_words = 1,
                                     .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_TRUST | CLI_INPUT |
                                                CLI_OUTPUT,
                                     .run = predict_command_run};
