/* tools/cli/cli.c: log, results and exit codes. */
#include "tools/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/cli/nearest.h"

const cli_exit cli_exits[] = {
    {CLI_OK, "done"},
    {CLI_USAGE, "a wrong command line: command, option, number of arguments"},
    {CLI_DIFFERS, "compare, checkpoint diff: the two differ"},
    {CLI_DATA, "a wrong configuration, input file or checkpoint"},
    {CLI_UNAVAILABLE, "a device, plugin, kernel or memory is missing; the run folder is in use"},
    {CLI_INTERNAL, "a bug of Tenon; failed conformance"},
    {CLI_UNFINISHED, "conformance: a case hung or broke the device, and no later case was run"},
    {CLI_IO, "a file cannot be read or written, also stdout"},
    {CLI_STOPPED, "stopped by a signal, and saved"},
    {CLI_NONFINITE, "the loss, or an output, is not finite"},
    {CLI_COMM, "a rank or a collective failed"},
    {0, NULL}};

static void cli_write_log(void *user, int32_t level, const char *line) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)user;
  fprintf(stderr, "tenon: %s: %s\n", names[level < 0 || level > 3 ? 3 : level], line);
}

int cli_open(const cli_args *args, tn_context **context) {
  tn_context_options settings = {.struct_size = sizeof settings, .log = cli_write_log};
  settings.log_level = args->quiet ? TN_LOG_ERROR : args->verbose ? TN_LOG_DEBUG : TN_LOG_WARN;
  tn_status status = tn_context_open(&settings, context);
  for (int i = 0; status == TN_OK && i < args->n_plugins; i++)
    status = tn_context_load(*context, args->plugins[i]);
  return status == TN_OK ? CLI_OK : cli_fail(args, *context, status);
}

static int cli_exit_code(tn_status status) {
  switch (status) {
  case TN_OK: return CLI_OK;
  case TN_EINVAL: return CLI_DATA;
  case TN_EIO: return CLI_IO;
  case TN_EUNSUPPORTED:
  case TN_EUNAVAILABLE:
  case TN_ENOMEM:
  case TN_EDEVICE:
  case TN_EABI: return CLI_UNAVAILABLE;
  case TN_ESTOPPED: return CLI_STOPPED;
  case TN_ENONFINITE: return CLI_NONFINITE;
  case TN_ECOMM: return CLI_COMM;
  default: return CLI_INTERNAL;
  }
}

static const char *cli_error_text(const void *handle, tn_status status) {
  const char *text = handle ? tn_error_text(handle) : "out of memory";
  return *text ? text : tn_status_name(status);
}

int cli_report(const void *handle, tn_status status) {
  const char *text = cli_error_text(handle, status);
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    fprintf(stderr, "tenon: %.*s\n", (int)n, text);
  }
  return cli_exit_code(status);
}

/* {"status": "failed", "exit": 65, "reason": "invalid", "errors": ["net.ini:3: ..."]} */
static void cli_print_failure(int code, const char *reason, const char *text) {
  json_t *errors = json_array();
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    json_t *one = json_stringn(text, n);
    json_array_append_new(errors, one ? one : json_string("a message that is not UTF-8"));
  }
  json_t *json =
      json_pack("{s:s, s:i, s:s, s:o}", "status", "failed", "exit", code, "reason", reason, "errors", errors);
  char *printed = json ? json_dumps(json, JSON_ENSURE_ASCII) : NULL;
  if (printed) printf("%s\n", printed);
  free(printed);
  json_decref(json);
}

int cli_fail(const cli_args *args, const void *handle, tn_status status) {
  if (args->json)
    cli_print_failure(cli_exit_code(status), tn_status_name(status), cli_error_text(handle, status));
  return cli_report(handle, status);
}

int cli_finish(const cli_args *args, const void *handle, tn_status status, const char *json) {
  if (status == TN_OK) return CLI_OK;
  return json != NULL ? cli_report(handle, status) : cli_fail(args, handle, status);
}

/* The name of the status that gives the exit code; "usage": no status does. */
static const char *cli_reason(int code) {
  static const tn_status statuses[] = {TN_EINVAL, TN_EIO, TN_EUNAVAILABLE, TN_EINTERNAL};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (cli_exit_code(statuses[i]) == code) return tn_status_name(statuses[i]);
  return "usage";
}

int cli_refuse(const cli_args *args, int code, const char *format, ...) {
  char text[8192];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (args->json) cli_print_failure(code, cli_reason(code), text);
  fprintf(stderr, "tenon%s%s: %s\n", args->command ? " " : "", args->command ? args->command : "", text);
  return code;
}

const char *cli_text(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}

long long cli_integer(const json_t *json, const char *key) {
  return json_integer_value(json_object_get(json, key));
}

double cli_number(const json_t *json, const char *key) {
  const json_t *value = json_object_get(json, key);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

void cli_format_date(long long seconds, char text[CLI_DATE]) {
  time_t when = (time_t)seconds;
  struct tm parts;
  if (localtime_r(&when, &parts) == NULL || strftime(text, CLI_DATE, "%Y-%m-%d %H:%M", &parts) == 0)
    snprintf(text, CLI_DATE, "?");
}

/* Columns of the terminal on stderr; 0: stderr is not a terminal, or TERM is dumb. */
static int cli_terminal_columns(void) {
  struct winsize size;
  const char *term = getenv("TERM");
  if (!isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0) return 0;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

int cli_open_run(tn_context *context, const cli_args *args, tn_run **run) {
  tn_run_options settings = {.struct_size = sizeof settings,
                             .set = args->set,
                             .n_set = args->n_set,
                             .output = args->output,
                             .resume = args->resume,
                             .weights = args->weights,
                             .trace = args->trace,
                             .terminal = args->quiet ? 0 : cli_terminal_columns(),
                             .quiet = args->quiet,
                             .progress = 1,
                             .untrusted = args->untrusted,
                             .command = args->line,
                             .n_command = args->n_line};
  tn_status status = tn_run_open(context, args->words[0], &settings, run);
  return status == TN_OK ? CLI_OK : cli_fail(args, context, status);
}

int cli_open_run_or_folder(tn_context *context, const cli_args *args, tn_run **run) {
  struct stat info;
  char config[4096];
  cli_args of_folder = *args;
  if (stat(args->words[0], &info) != 0 || !S_ISDIR(info.st_mode)) return cli_open_run(context, args, run);
  snprintf(config, sizeof config, "%s/config.ini", args->words[0]);
  of_folder.words[0] = config;
  of_folder.untrusted = !args->trust;
  if (of_folder.weights == NULL) of_folder.weights = args->words[0];
  return cli_open_run(context, &of_folder, run);
}

static double cli_memory_mib(const json_t *memory, const char *name) {
  return json_number_value(json_object_get(memory, name));
}

void cli_print_memory(const json_t *result) {
  const json_t *m = json_object_get(result, "memory");
  if (m == NULL) return;
  printf("device     %.1f MiB: %.1f allocated, %.1f by libraries, %.1f by the driver and others, %.1f free\n",
         cli_memory_mib(m, "device_mib"), cli_memory_mib(m, "allocated_mib"),
         cli_memory_mib(m, "libraries_mib"), cli_memory_mib(m, "others_mib"), cli_memory_mib(m, "free_mib"));
}

void cli_print_memory_table(const json_t *result) {
  const json_t *lines = json_object_get(json_object_get(result, "memory_table"), "lines");
  for (size_t i = 0; i < json_array_size(lines); i++)
    printf("%s\n", json_string_value(json_array_get(lines, i)));
}
