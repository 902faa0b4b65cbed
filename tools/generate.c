/* tools/generate.c: `tenon generate FILE.ini|RUN|FILE.gguf --prompt TEXT`: the text appears on stdout as it
 * is drawn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/plain_stream.h"

typedef struct generate_numbers {
  int32_t *v;
  int64_t n;
} generate_numbers;

/* `prompt` is written before the first part, when it has been accepted. */
typedef struct generate_output {
  cli_plain_stream stream;
  const char *prompt;
} generate_output;

static void generate_print_prompt(generate_output *output) {
  cli_plain_stream_write(&output->stream, output->prompt, strlen(output->prompt));
  output->prompt = "";
}

static int32_t generate_print_part(void *user, const char *text, size_t bytes) {
  generate_output *output = user;
  generate_print_prompt(output);
  return !cli_plain_stream_write(&output->stream, text, bytes);
}

/* "15496 995" */
static int generate_read_numbers(const cli_args *args, generate_numbers *numbers) {
  const char *at = args->prompt_tokens;
  numbers->v = at != NULL ? calloc(strlen(at) + 1, sizeof *numbers->v) : NULL;
  while (numbers->v != NULL) {
    char *end;
    at += strspn(at, " ,\t\n");
    if (*at == '\0') break;
    errno = 0;
    long value = strtol(at, &end, 10);
    if (end == at || errno != 0 || value < 0 || value > INT32_MAX)
      return cli_refuse(args, CLI_USAGE, "--prompt-tokens: expected numbers from 0, not '%s'", at);
    numbers->v[numbers->n++] = (int32_t)value;
    at = end;
  }
  if (args->prompt_tokens != NULL && numbers->n == 0)
    return cli_refuse(args, CLI_USAGE, "--prompt-tokens: expected numbers from 0, not '%s'",
                      args->prompt_tokens);
  return CLI_OK;
}

/* The prompt, then the text as it comes, then the speed on stderr. */
static tn_status generate_text(tn_run *run, const cli_args *args, const generate_numbers *numbers,
                               generate_output *output, char **json) {
  tn_generate_options options = {.struct_size = sizeof options,
                                 .prompt = args->prompt,
                                 .prompt_bytes = args->prompt != NULL ? strlen(args->prompt) : 0,
                                 .tokens = numbers->v,
                                 .n_tokens = numbers->n,
                                 .count = args->tokens,
                                 .temperature = args->temperature,
                                 .top_k = (int32_t)args->top_k,
                                 .top_p = args->top_p,
                                 .seed = (uint64_t)args->seed,
                                 .write = args->json ? NULL : generate_print_part,
                                 .user = output};
  return tn_run_generate(run, &options, json);
}

static void generate_print_end(generate_output *output, const char *text) {
  json_t *result = json_loads(text, 0, NULL);
  double rate = cli_number(result, "tokens_per_s");
  generate_print_prompt(output);
  cli_plain_stream_end(&output->stream);
  printf("\n");
  if (rate > 0)
    fprintf(stderr, "%zu tokens, %.0f a second\n", json_array_size(json_object_get(result, "tokens")), rate);
  json_decref(result);
}

static int generate_with_run(tn_context *context, const cli_args *args, const generate_numbers *numbers) {
  tn_run *run = NULL;
  char *json = NULL;
  generate_output output = {cli_plain_stream_open(), args->prompt != NULL ? args->prompt : ""};
  int code = cli_open_run_or_folder(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = generate_text(run, args, numbers, &output, &json);
  cli_plain_stream_end(&output.stream);
  if (json && args->json)
    printf("%s\n", json);
  else if (json && !args->quiet)
    generate_print_end(&output, json);
  code = cli_finish(args, run, status, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

static int generate_command_run(tn_context *context, const cli_args *args) {
  generate_numbers numbers = {NULL, 0};
  if (args->prompt != NULL && args->prompt_tokens != NULL)
    return cli_refuse(args, CLI_USAGE, "expected --prompt or --prompt-tokens, not both");
  int code = generate_read_numbers(args, &numbers);
  if (code == CLI_OK) code = generate_with_run(context, args, &numbers);
  free(numbers.v);
  return code;
}

const cli_command command_generate = {.name = "generate",
                                      .words = "FILE.ini|RUN|FILE.gguf",
                                      .doc = "the text that a language model writes behind a prompt",
                                      .min_words = 1,
                                      .max_words = 1,
                                      .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_TRUST | CLI_GENERATE,
                                      .run = generate_command_run};
