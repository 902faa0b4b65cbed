/* tools/conformance.c: `tenon conformance [PLUGIN.so]`: does a backend, or what a plugin brings, compute what
 * the ops mean? */
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"
#include "tenon/conformance.h"

static void say(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "failed: %s\n", line);
}

/* The whole text of a file; the caller's (free). */
static int read_text(const char *path, char **text) {
  FILE *file = fopen(path, "r");
  size_t n = 0, room = 1 << 16;
  *text = file ? malloc(room) : NULL;
  if (*text) n = fread(*text, 1, room - 1, file);
  bool whole = *text && feof(file) && !ferror(file);
  if (*text) (*text)[n] = '\0';
  if (file) fclose(file);
  if (whole) return CLI_OK;
  free(*text);
  *text = NULL;
  fprintf(stderr, "tenon: %s: cannot be read as a list of at most %zu bytes\n", path, room - 1);
  return CLI_IO;
}

static void print_one(const json_t *one, const char *title) {
  if (json_is_string(one))
    printf("%-12s %s\n", title, json_string_value(one));
  else
    printf("%-12s %s: %s\n", title, json_string_value(json_object_get(one, "case")),
           json_string_value(json_object_get(one, "reason")));
}

static void print_list(const json_t *report, const char *key, const char *title) {
  const json_t *list = json_object_get(report, key);
  for (size_t i = 0; i < json_array_size(list); i++) print_one(json_array_get(list, i), title);
}

/* ---- the line that repeats a case ---- */

/* As a shell reads it back. */
static void print_word(const char *option, const char *word) {
  if (option) printf(" %s", option);
  putchar(' ');
  if (*word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") ==
                   strlen(word)) {
    printf("%s", word);
    return;
  }
  putchar('\'');
  for (const char *c = word; *c; c++) printf(*c == '\'' ? "'\\''" : "%c", *c);
  putchar('\'');
}

/* A kernel that was never chosen is one of a plugin as a whole: its name is no case. */
static void print_command(const json_t *report, const cli_args *args, const char *name) {
  printf("%-12s tenon conformance", "again");
  if (args->n_words > 0) print_word(NULL, args->words[0]);
  print_word("--backend", json_string_value(json_object_get(report, "backend")));
  for (int i = 0; i < args->n_plugins; i++) print_word("--plugin", args->plugins[i]);
  if (args->device > 0) printf(" --device %lld", args->device);
  for (int i = 0; i < args->n_set; i++) print_word("--set", args->set[i]);
  if (args->unsupported) print_word("--unsupported", args->unsupported);
  if (strchr(name, '/') || args->n_words == 0)
    print_word("--case", name);
  else if (args->draws > 0)
    printf(" --draws %lld", args->draws);
  putchar('\n');
}

/* That the device is broken is said of the case that broke it. */
static void print_failures(const json_t *report, const cli_args *args) {
  const json_t *list = json_object_get(report, "failed"), *one;
  size_t i;
  json_array_foreach(list, i, one) {
    const char *name = json_string_value(json_object_get(one, "case"));
    print_one(one, "failed");
    if (strcmp(name, "device") != 0) print_command(report, args, name);
  }
}

/* ---- the report ---- */

static void print_report(const json_t *report, const cli_args *args) {
  print_list(report, "unsupported", "unsupported");
  print_list(report, "stale", "stale");
  print_failures(report, args);
  printf("%s (%s): %lld passed, %zu failed, %zu not supported\n",
         json_string_value(json_object_get(report, "backend")),
         json_string_value(json_object_get(report, "device")),
         json_integer_value(json_object_get(report, "passed")),
         json_array_size(json_object_get(report, "failed")) +
             json_array_size(json_object_get(report, "stale")),
         json_array_size(json_object_get(report, "unsupported")));
}

static int finish(tn_device *device, const cli_args *args, char *text) {
  json_t *report = json_loads(text, 0, NULL);
  bool failed = json_array_size(json_object_get(report, "failed")) > 0 ||
                json_array_size(json_object_get(report, "stale")) > 0;
  if (args->json)
    printf("%s\n", text);
  else
    print_report(report, args);
  json_decref(report);
  tn_string_free(device, text);
  return failed ? CLI_INTERNAL : CLI_OK;
}

/* ---- a case that hangs ---- */

/* Nothing brings back a call that waits for ever, so the process ends; only what a signal's handler may do.
 */
static struct {
  volatile sig_atomic_t seconds;
  char text[512];
  volatile size_t n;
} watch;

static void give_up(int signal) {
  (void)signal;
  ssize_t written = write(STDERR_FILENO, watch.text, watch.n);
  (void)written;
  _exit(CLI_INTERNAL);
}

static void begin(void *user, const char *name) {
  (void)user;
  alarm(0);
  int n =
      snprintf(watch.text, sizeof watch.text,
               "failed: %s: it hangs: after %d s it is not done, so the rest is not tried; --timeout gives "
               "it longer. Most likely an event's record is never told, or a wait is let go by nobody\n",
               name, (int)watch.seconds);
  watch.n = n < 0 ? 0 : (size_t)n < sizeof watch.text ? (size_t)n : sizeof watch.text - 1;
  alarm((unsigned)watch.seconds);
}

static void start_watch(const cli_args *args) {
  struct sigaction action = {.sa_handler = give_up};
  watch.seconds = (sig_atomic_t)(args->timeout > 0 ? args->timeout : 60);
  sigaction(SIGALRM, &action, NULL);
}

/* ---- the command ---- */

static int run_on(tn_device *device, const cli_args *args, const char *plugin, const char *unsupported,
                  bool uncaptured) {
  char *text = NULL;
  tn_conformance_options options = {.struct_size = sizeof options,
                                    .only = args->only,
                                    .plugin = plugin,
                                    .unsupported = unsupported,
                                    .draws = args->draws,
                                    .say = args->json || args->quiet ? NULL : say,
                                    .begin = begin,
                                    .uncaptured = uncaptured};
  start_watch(args);
  tn_status status = tn_conformance_run(device, &options, &text);
  alarm(0);
  return status == TN_OK ? finish(device, args, text) : cli_fail(device, status);
}

/* What a configuration would say of the backend: its options, and whether work is captured. */
typedef struct settings {
  const char *backend;
  char options[4096]; /* "devices=2;" */
  size_t n;
  bool uncaptured;
} settings;

static int wrong_set(const settings *s, const char *set) {
  fprintf(stderr,
          "tenon conformance: --set %s: expected OPTION=VALUE or backend.%s.OPTION=VALUE, or "
          "backend.capture=yes|no; a run has no other keys here\n",
          set, s->backend);
  return CLI_USAGE;
}

static int add_option(settings *s, const char *option) {
  int added = snprintf(s->options + s->n, sizeof s->options - s->n, "%s;", option);
  if (added < 0 || (size_t)added >= sizeof s->options - s->n) {
    fprintf(stderr, "tenon: --set: too much text for options of a backend\n");
    return CLI_USAGE;
  }
  s->n += (size_t)added;
  return CLI_OK;
}

/* "devices=2", "backend.acme.devices=2" or "backend.capture=no" */
static int apply_set(settings *s, const char *set) {
  size_t key = strcspn(set, "="), name = strlen(s->backend);
  if (!memchr(set, '.', key)) return add_option(s, set);
  if (strcmp(set, "backend.capture=no") == 0 || strcmp(set, "backend.capture=yes") == 0) {
    s->uncaptured = set[key + 1] == 'n';
    return CLI_OK;
  }
  if (strncmp(set, "backend.", 8) != 0 || strncmp(set + 8, s->backend, name) != 0 || set[8 + name] != '.')
    return wrong_set(s, set);
  return add_option(s, set + 8 + name + 1);
}

static int read_settings(const cli_args *args, settings *s) {
  int code = CLI_OK;
  *s = (settings){.backend = args->backend ? args->backend : "cpu"};
  for (int i = 0; i < args->n_set && code == CLI_OK; i++) code = apply_set(s, args->set[i]);
  return code;
}

static int run_conformance(tn_context *context, const cli_args *args) {
  char path[PATH_MAX], *unsupported = NULL;
  settings s;
  tn_device *device = NULL;
  const char *plugin = args->n_words > 0 ? args->words[0] : NULL;
  int code = read_settings(args, &s);
  if (code == CLI_OK && args->unsupported) code = read_text(args->unsupported, &unsupported);
  if (code != CLI_OK) return code;
  tn_status status = plugin ? tn_context_load(context, plugin) : TN_OK;
  if (plugin && realpath(plugin, path)) plugin = path;
  if (status == TN_OK) status = tn_device_open(context, s.backend, (int32_t)args->device, s.options, &device);
  code =
      status == TN_OK ? run_on(device, args, plugin, unsupported, s.uncaptured) : cli_fail(context, status);
  tn_device_close(device);
  free(unsupported);
  return code;
}

const cli_command command_conformance = {.name = "conformance",
                                         .words = "[PLUGIN.so]",
                                         .doc = "whether a backend or plugin computes what the ops mean",
                                         .min_words = 0,
                                         .max_words = 1,
                                         .options = CLI_JSON | CLI_CONFORMANCE,
                                         .run = run_conformance};
