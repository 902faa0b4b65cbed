/* tools/checkpoint.c: `tenon checkpoint ls|show|verify|diff|convert|merge`: files of weights and checkpoints.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tools/cli/nearest.h"
#include "tenon/folders.h"
#include "tools/soup.h"

/* ---- ls ---- */

/* The metrics of the validation, else those of the training. */
static void checkpoint_print_metrics(const json_t *metrics) {
  const json_t *valid = json_object_get(metrics, "valid"), *train = json_object_get(metrics, "train");
  const char *name, *before = "";
  json_t *value;
  json_object_foreach((json_t *)(valid ? valid : train), name, value) {
    printf("%s%s %.6g", before, name, json_is_null(value) ? NAN : json_number_value(value));
    before = ", ";
  }
}

static int checkpoint_print_list(const json_t *json) {
  const json_t *list = json_object_get(json, "checkpoints");
  printf("%-12s %10s %7s  %-16s %10s  %s\n", "name", "step", "epoch", "saved", "MiB",
         "metrics of the validation, or of the training");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    const char *reason = cli_text(one, "reason");
    char saved[CLI_DATE];
    cli_format_date(cli_integer(one, "saved"), saved);
    double mib = cli_number(one, "bytes") / 1048576.0;
    if (reason != NULL) {
      printf("%-12s %10s %7s  %-16s %10.2f  cannot be used: %s\n", cli_text(one, "name"), "-", "-", saved,
             mib, reason);
      continue;
    }
    printf("%-12s %10lld %7lld  %-16s %10.2f  ", cli_text(one, "name"), cli_integer(one, "step"),
           cli_integer(one, "epoch"), saved, mib);
    checkpoint_print_metrics(json_object_get(one, "metrics"));
    printf("\n");
  }
  return CLI_OK;
}

/* ---- show ---- */

/* "64, 3, 7, 7"; cut at the size of `text`. */
static void checkpoint_format_shape(const json_t *shape, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < json_array_size(shape) && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? ", " : "",
                          json_integer_value(json_array_get(shape, i)));
}

static int checkpoint_path_width(const json_t *tensors) {
  size_t width = 4;
  for (size_t i = 0; i < json_array_size(tensors); i++) {
    size_t n = strlen(cli_text(json_array_get(tensors, i), "path"));
    width = n > width ? n : width;
  }
  return width < 60 ? (int)width : 60;
}

static void checkpoint_print_tensor(const json_t *t, int width) {
  char shape[128];
  checkpoint_format_shape(json_object_get(t, "shape"), shape, sizeof shape);
  printf("%-*s  %-5s  %-18s %12lld", width, cli_text(t, "path"), cli_text(t, "dtype"), shape,
         cli_integer(t, "bytes"));
  if (json_object_get(t, "nonfinite") != NULL)
    printf(" %12.5g %12.5g %12.5g %10lld", cli_number(t, "min"), cli_number(t, "max"), cli_number(t, "mean"),
           cli_integer(t, "nonfinite"));
  printf("\n");
}

static void checkpoint_print_state(const json_t *state) {
  const char *reason = cli_text(state, "reason");
  if (reason != NULL) printf("state      cannot be read: %s\n", reason);
  if (state != NULL && reason == NULL)
    printf("state      step %lld, epoch %lld, best %.6g, seed %lld\n", cli_integer(state, "step"),
           cli_integer(state, "epoch"), cli_number(state, "best"), cli_integer(state, "seed"));
}

static int checkpoint_print_tensors(const json_t *json) {
  const json_t *tensors = json_object_get(json, "tensors");
  const char *key;
  json_t *value;
  int width = checkpoint_path_width(tensors);
  bool statistics = json_object_get(json_array_get(tensors, 0), "nonfinite") != NULL;
  printf("%-*s  %-5s  %-18s %12s", width, "path", "dtype", "shape", "bytes");
  if (statistics) printf(" %12s %12s %12s %10s", "min", "max", "mean", "not finite");
  printf("\n");
  for (size_t i = 0; i < json_array_size(tensors); i++)
    checkpoint_print_tensor(json_array_get(tensors, i), width);
  printf("\npath       %s\n", cli_text(json, "path"));
  printf("in all     %zu tensors, %lld elements of the model, %.2f MiB\n", json_array_size(tensors),
         cli_integer(json, "elements"), cli_number(json, "bytes") / 1048576.0);
  json_object_foreach(json_object_get(json, "metadata"), key, value)
      printf("metadata   %s = %s\n", key, json_string_value(value));
  checkpoint_print_state(json_object_get(json, "state"));
  return CLI_OK;
}

/* ---- verify ---- */

static int checkpoint_verdict(const json_t *json) {
  return json_is_true(json_object_get(json, "valid")) ? CLI_OK : CLI_DATA;
}

static int checkpoint_print_verdict(const json_t *json) {
  const json_t *list = json_object_get(json, "checked");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    const char *reason = cli_text(one, "reason");
    printf("%-10s %s%s%s\n", cli_text(one, "state"), cli_text(one, "path"), reason ? ": " : "",
           reason ? reason : "");
  }
  return checkpoint_verdict(json);
}

/* ---- diff ---- */

static void checkpoint_print_names(const json_t *list, const char *what) {
  for (size_t i = 0; i < json_array_size(list); i++)
    printf("%-11s %s\n", what, json_string_value(json_array_get(list, i)));
}

static void checkpoint_print_shapes(const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    char a[128], b[128];
    checkpoint_format_shape(json_object_get(one, "a"), a, sizeof a);
    checkpoint_format_shape(json_object_get(one, "b"), b, sizeof b);
    printf("shapes      %s: [%s] and [%s]\n", cli_text(one, "path"), a, b);
  }
}

static int checkpoint_judge_difference(const json_t *json) {
  return json_is_true(json_object_get(json, "equal")) ? CLI_OK : CLI_DIFFERS;
}

/* A difference from a value that is not finite is infinite. */
static double checkpoint_difference(const json_t *tensor, const char *key) {
  const json_t *value = json_object_get(tensor, key);
  return json_is_null(value) ? INFINITY : json_number_value(value);
}

static int checkpoint_print_difference(const json_t *json) {
  const json_t *tensors = json_object_get(json, "tensors");
  size_t equal = 0, n = json_array_size(tensors);
  int width = checkpoint_path_width(tensors);
  checkpoint_print_names(json_object_get(json, "only_a"), "only in A");
  checkpoint_print_names(json_object_get(json, "only_b"), "only in B");
  checkpoint_print_shapes(json_object_get(json, "shapes"));
  checkpoint_print_names(json_object_get(json, "unread"), "unknown type");
  for (size_t i = 0; i < n; i++) {
    const json_t *t = json_array_get(tensors, i);
    double largest = checkpoint_difference(t, "largest");
    equal += !(largest > 0);
    if (!(largest > 0)) continue;
    if (i == 0)
      printf("%-*s  %-11s %12s %12s %10s\n", width, "path", "dtypes", "largest", "relative", "element");
    char dtypes[32];
    snprintf(dtypes, sizeof dtypes, "%s %s", cli_text(t, "a_dtype"), cli_text(t, "b_dtype"));
    printf("%-*s  %-11s %12.5g %12.5g %10lld\n", width, cli_text(t, "path"), dtypes, largest,
           checkpoint_difference(t, "relative"), cli_integer(t, "at"));
  }
  printf("%zu of %zu tensors that both have are equal\n", equal, n);
  return checkpoint_judge_difference(json);
}

/* ---- convert ---- */

static int checkpoint_print_conversion(const json_t *json) {
  printf("%s: %lld tensors, %.2f MiB, from %s\n", cli_text(json, "to"), cli_integer(json, "tensors"),
         cli_number(json, "bytes") / 1048576.0, cli_text(json, "from"));
  return CLI_OK;
}

/* False: no dtype of floats has this name. */
static bool checkpoint_find_dtype(const char *name, int32_t *dtype) {
  *dtype = TN_ANY;
  if (name == NULL) return true;
  for (*dtype = TN_F16; *dtype <= TN_F64; (*dtype)++)
    if (strcmp(tn_dtype_name(*dtype), name) == 0) return true;
  return false;
}

/* ---- merge ---- */

static int checkpoint_print_merge(const json_t *json) {
  printf("%s: %lld tensors of %s, %lld of them from %s\n", cli_text(json, "to"), cli_integer(json, "tensors"),
         cli_text(json, "base"), cli_integer(json, "merged"), cli_text(json, "from"));
  return CLI_OK;
}

/* ---- the command ---- */

static int checkpoint_done(const json_t *json) { return (void)json, CLI_OK; }

/* A word and its call. */
typedef struct checkpoint_action {
  const char *word;
  int n_paths;
  tn_status (*call)(tn_context *context, const cli_args *args, char **json);
  int (*print)(const json_t *json); /* returns the exit code, as `judge` does with --json */
  int (*judge)(const json_t *json);
} checkpoint_action;

static tn_status checkpoint_ls(tn_context *context, const cli_args *args, char **json) {
  return tn_list_checkpoints(context, args->words[1], json);
}

static tn_status checkpoint_show(tn_context *context, const cli_args *args, char **json) {
  return tn_show_tensors(context, args->words[1], args->stats, json);
}

static tn_status checkpoint_verify(tn_context *context, const cli_args *args, char **json) {
  return tn_verify_checkpoints(context, args->words[1], json);
}

static tn_status checkpoint_diff(tn_context *context, const cli_args *args, char **json) {
  return tn_compare_tensors(context, args->words[1], args->words[2], args->optimizer, json);
}

static tn_status checkpoint_convert(tn_context *context, const cli_args *args, char **json) {
  tn_convert_options options = {.struct_size = sizeof options, .optimizer = args->optimizer};
  checkpoint_find_dtype(args->dtype, &options.dtype);
  return tn_convert_tensors(context, args->words[1], args->words[2], &options, json);
}

static tn_status checkpoint_merge(tn_context *context, const cli_args *args, char **json) {
  return tn_merge_adapters(context, args->words[1], args->words[2], json);
}

static const checkpoint_action checkpoint_actions[] = {
    {"ls", 1, checkpoint_ls, checkpoint_print_list, checkpoint_done},
    {"show", 1, checkpoint_show, checkpoint_print_tensors, checkpoint_done},
    {"verify", 1, checkpoint_verify, checkpoint_print_verdict, checkpoint_verdict},
    {"diff", 2, checkpoint_diff, checkpoint_print_difference, checkpoint_judge_difference},
    {"convert", 2, checkpoint_convert, checkpoint_print_conversion, checkpoint_done},
    {"merge", 2, checkpoint_merge, checkpoint_print_merge, checkpoint_done}};
enum { CHECKPOINT_ACTIONS = sizeof checkpoint_actions / sizeof *checkpoint_actions };

static const checkpoint_action *checkpoint_find_action(const cli_args *args) {
  const char *word = args->words[0];
  const char *names[CHECKPOINT_ACTIONS];
  for (int i = 0; i < CHECKPOINT_ACTIONS; i++) {
    names[i] = checkpoint_actions[i].word;
    if (strcmp(word, names[i]) == 0) return &checkpoint_actions[i];
  }
  const char *nearest = nearest_word(word, names, CHECKPOINT_ACTIONS);
  cli_refuse(args, CLI_USAGE, "expected ls, show, verify, diff, convert, average or merge, not '%s'%s%s%s",
             word, nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  return NULL;
}

static int checkpoint_check_words(const checkpoint_action *action, const cli_args *args) {
  int32_t dtype;
  if (args->n_words != 1 + action->n_paths)
    return cli_refuse(args, CLI_USAGE, "%s: expected %s, found %d", action->word,
                      action->n_paths == 1 ? "one path" : "two paths", args->n_words - 1);
  if (checkpoint_find_dtype(args->dtype, &dtype)) return CLI_OK;
  return cli_refuse(args, CLI_USAGE, "--dtype: expected f16, bf16, f32 or f64, not '%s'", args->dtype);
}

static int checkpoint_command_run(tn_context *context, const cli_args *args) {
  if (strcmp(args->words[0], "average") == 0) return soup_command(context, args);
  const checkpoint_action *action = checkpoint_find_action(args);
  char *text = NULL;
  if (action == NULL) return CLI_USAGE;
  int code = checkpoint_check_words(action, args);
  if (code != CLI_OK) return code;
  tn_status status = action->call(context, args, &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *json = cli_load_plain(text);
  if (args->json) printf("%s\n", text);
  code = args->json ? action->judge(json) : action->print(json);
  json_decref(json);
  tn_string_free(context, text);
  return code;
}

const cli_command command_checkpoint = {
    .name = "checkpoint",
    .words = "ls|show|verify|diff|convert|average|merge PATH...",
    .doc = "list, show, check, compare, convert, average and merge checkpoints and files of weights",
    .min_words = 2,
    .max_words = CLI_MAX_WORDS,
    .options = CLI_JSON | CLI_CHECKPOINT | CLI_OUTPUT | CLI_TRUST,
    .run = checkpoint_command_run};
