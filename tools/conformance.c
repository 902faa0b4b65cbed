/* tools/conformance.c: `tenon conformance [PLUGIN.so]`: compares a backend, or the items of a plugin, with
 * the reference. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tenon/conformance.h"

static void conformance_print_failure(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "failed: %s\n", line);
}

/* Opens a regular file. Opening a FIFO may wait, so the kind is looked at before. O_NONBLOCK is for a file
 * that is replaced in between; it has no effect on regular files. */
static int conformance_open_text(const char *path, FILE **file) {
  struct stat info;
  *file = NULL;
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    const char *kind = S_ISDIR(info.st_mode)    ? "a folder"
                       : S_ISFIFO(info.st_mode) ? "a FIFO"
                       : S_ISSOCK(info.st_mode) ? "a socket"
                                                : "a device";
    fprintf(stderr, "tenon: %s: is not a regular file but %s\n", path, kind);
    return CLI_DATA;
  }
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *file = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (*file != NULL) return CLI_OK;
  fprintf(stderr, "tenon: %s: cannot be opened: %s\n", path, strerror(errno));
  if (fd >= 0) close(fd);
  return CLI_IO;
}

/* The text of a file; the caller's (free). */
static int conformance_read_text(const char *path, char **text) {
  FILE *file;
  size_t n = 0, room = 1 << 16;
  *text = NULL;
  int code = conformance_open_text(path, &file);
  if (code != CLI_OK) return code;
  *text = malloc(room);
  if (*text) n = fread(*text, 1, room - 1, file);
  bool complete = *text && feof(file) && !ferror(file);
  if (*text) (*text)[n] = '\0';
  fclose(file);
  if (complete) return CLI_OK;
  free(*text);
  *text = NULL;
  fprintf(stderr, "tenon: %s: cannot be read as a list of at most %zu bytes\n", path, room - 1);
  return CLI_IO;
}

static void conformance_print_entry(const json_t *one, const char *title) {
  if (json_is_string(one))
    printf("%-12s %s\n", title, json_string_value(one));
  else
    printf("%-12s %s: %s\n", title, json_string_value(json_object_get(one, "case")),
           json_string_value(json_object_get(one, "reason")));
}

static void conformance_print_list(const json_t *report, const char *key, const char *title) {
  const json_t *list = json_object_get(report, key);
  for (size_t i = 0; i < json_array_size(list); i++) conformance_print_entry(json_array_get(list, i), title);
}

/* ---- the line that repeats a case ---- */

/* Quotes a word for the shell. */
static void conformance_print_word(const char *option, const char *word) {
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

static void conformance_print_words(const json_t *report, const cli_args *args, const char *title) {
  printf("%-12s tenon conformance", title);
  if (args->n_words > 0) conformance_print_word(NULL, args->words[0]);
  conformance_print_word("--backend", json_string_value(json_object_get(report, "backend")));
  for (int i = 0; i < args->n_plugins; i++) conformance_print_word("--plugin", args->plugins[i]);
  if (args->device > 0) printf(" --device %lld", args->device);
  for (int i = 0; i < args->n_set; i++) conformance_print_word("--set", args->set[i]);
  if (args->unsupported) conformance_print_word("--unsupported", args->unsupported);
}

/* The name of a kernel that was never chosen has no '/': the whole plugin is run again. */
static void conformance_print_again(const json_t *report, const cli_args *args, const char *name) {
  conformance_print_words(report, args, "again");
  if (strchr(name, '/') || args->n_words == 0)
    conformance_print_word("--case", name);
  else if (args->draws > 0)
    printf(" --draws %lld", args->draws);
  putchar('\n');
}

/* The line that runs the cases behind the one that broke the device. */
static void conformance_print_onward(const json_t *report, const cli_args *args) {
  const char *broken_in = json_string_value(json_object_get(report, "broken_in"));
  if (broken_in == NULL) return;
  conformance_print_words(report, args, "go on");
  if (args->only) conformance_print_word("--case", args->only);
  if (args->draws > 0) printf(" --draws %lld", args->draws);
  conformance_print_word("--after", broken_in);
  putchar('\n');
}

/* "device" repeats the failure of the case that broke it, so no command is printed for it. */
static void conformance_print_failures(const json_t *report, const cli_args *args) {
  const json_t *list = json_object_get(report, "failed"), *one;
  size_t i;
  json_array_foreach(list, i, one) {
    const char *name = json_string_value(json_object_get(one, "case"));
    conformance_print_entry(one, "failed");
    if (strcmp(name, "device") != 0) conformance_print_again(report, args, name);
  }
}

/* ---- the report ---- */

static void conformance_print_report(const json_t *report, const cli_args *args) {
  conformance_print_list(report, "unsupported", "unsupported");
  conformance_print_list(report, "stale", "stale");
  conformance_print_failures(report, args);
  conformance_print_onward(report, args);
  printf("%s (%s): %lld passed, %zu failed, %zu not supported\n",
         json_string_value(json_object_get(report, "backend")),
         json_string_value(json_object_get(report, "device")),
         json_integer_value(json_object_get(report, "passed")),
         json_array_size(json_object_get(report, "failed")) +
             json_array_size(json_object_get(report, "stale")),
         json_array_size(json_object_get(report, "unsupported")));
}

static int conformance_finish(tn_device *device, const cli_args *args, char *text) {
  json_t *report = cli_load_plain(text);
  bool broken = json_is_string(json_object_get(report, "broken_in"));
  bool failed = json_array_size(json_object_get(report, "failed")) > 0 ||
                json_array_size(json_object_get(report, "stale")) > 0;
  if (args->json)
    printf("%s\n", text);
  else
    conformance_print_report(report, args);
  json_decref(report);
  tn_string_free(device, text);
  if (broken) return CLI_UNFINISHED;
  return failed ? CLI_INTERNAL : CLI_OK;
}

/* ---- a case that hangs ---- */

/* A call that never returns cannot be interrupted, so a signal handler ends the process. */
static struct {
  volatile sig_atomic_t seconds;
  char text[1024];
  volatile size_t n;
} timer;

static void conformance_time_out(int signal) {
  (void)signal;
  ssize_t written = write(STDERR_FILENO, timer.text, timer.n);
  (void)written;
  _exit(CLI_UNFINISHED);
}

static void conformance_begin_case(void *user, const char *name) {
  const cli_args *args = user;
  alarm(0);
  if (args->cases) fprintf(stderr, "case: %s\n", name);
  int n = snprintf(
      timer.text, sizeof timer.text,
      "failed: %s: it hangs: not finished after %d s, so the remaining cases are not run; --timeout raises "
      "the limit, and --after %s runs the cases behind it. The likely cause is an event that is never "
      "signaled, or a wait that never ends\n",
      name, (int)timer.seconds, name);
  timer.n = n < 0 ? 0 : (size_t)n < sizeof timer.text ? (size_t)n : sizeof timer.text - 1;
  alarm((unsigned)timer.seconds);
}

static void conformance_start_timer(const cli_args *args) {
  struct sigaction action = {.sa_handler = conformance_time_out};
  timer.seconds = (sig_atomic_t)(args->timeout > 0 ? args->timeout : 60);
  sigaction(SIGALRM, &action, NULL);
}

/* ---- the command ---- */

/* The options of a backend from --set, and whether launches are captured. */
typedef struct conformance_settings {
  const char *backend;
  char options[4096]; /* "devices=2;" */
  size_t n;
  char items[4096]; /* options of items of the plugin, a line each: "source:idx.images=x" */
  size_t n_items;
  bool uncaptured;
} conformance_settings;

static int conformance_run_device(tn_device *device, const cli_args *args, const char *plugin,
                                  const char *unsupported, const conformance_settings *s) {
  char *text = NULL;
  tn_conformance_options options = {.struct_size = sizeof options,
                                    .only = args->only,
                                    .after = args->after,
                                    .plugin = plugin,
                                    .unsupported = unsupported,
                                    .draws = args->draws,
                                    .say = conformance_print_failure,
                                    .user = (void *)(uintptr_t)args,
                                    .begin = conformance_begin_case,
                                    .uncaptured = s->uncaptured,
                                    .settings = s->n_items > 0 ? s->items : NULL,
                                    .quick = args->quick};
  conformance_start_timer(args);
  tn_status status = tn_conformance_run(device, &options, &text);
  alarm(0);
  return status == TN_OK ? conformance_finish(device, args, text) : cli_fail(args, device, status);
}

static int conformance_wrong_set(const conformance_settings *s, const char *set) {
  fprintf(stderr,
          "tenon conformance: --set %s: expected OPTION=VALUE or backend.%s.OPTION=VALUE, or "
          "backend.capture=yes|no, or KIND:NAME.OPTION=VALUE for an item of a plugin; a run has no other "
          "keys here\n",
          set, s->backend);
  return CLI_USAGE;
}

/* Appends an option and a mark behind it to a text. */
static int conformance_append(char *text, size_t room, size_t *n, const char *option, char mark) {
  int added = snprintf(text + *n, room - *n, "%s%c", option, mark);
  if (added < 0 || (size_t)added >= room - *n) {
    fprintf(stderr, "tenon: --set: more text than the %zu bytes for options\n", room);
    return CLI_USAGE;
  }
  *n += (size_t)added;
  return CLI_OK;
}

static int conformance_add_option(conformance_settings *s, const char *option) {
  return conformance_append(s->options, sizeof s->options, &s->n, option, ';');
}

/* "devices=2", "backend.acme.devices=2", "backend.capture=no" or, for an item of the plugin,
 * "source:idx.images=x" */
static int conformance_apply_set(conformance_settings *s, const char *set) {
  size_t key = strcspn(set, "="), name = strlen(s->backend);
  if (memchr(set, ':', key) != NULL)
    return conformance_append(s->items, sizeof s->items, &s->n_items, set, '\n');
  if (memchr(set, '.', key) == NULL) return conformance_add_option(s, set);
  if (strcmp(set, "backend.capture=no") == 0 || strcmp(set, "backend.capture=yes") == 0) {
    s->uncaptured = set[key + 1] == 'n';
    return CLI_OK;
  }
  if (strncmp(set, "backend.", 8) != 0 || strncmp(set + 8, s->backend, name) != 0 || set[8 + name] != '.')
    return conformance_wrong_set(s, set);
  return conformance_add_option(s, set + 8 + name + 1);
}

static int conformance_read_settings(const cli_args *args, conformance_settings *s) {
  int code = CLI_OK;
  *s = (conformance_settings){.backend = args->backend ? args->backend : "cpu"};
  for (int i = 0; i < args->n_set && code == CLI_OK; i++) code = conformance_apply_set(s, args->set[i]);
  return code;
}

static int conformance_run(tn_context *context, const cli_args *args) {
  char path[PATH_MAX], *unsupported = NULL;
  conformance_settings s;
  tn_device *device = NULL;
  const char *plugin = args->n_words > 0 ? args->words[0] : NULL;
  int code = conformance_read_settings(args, &s);
  if (code == CLI_OK && args->unsupported) code = conformance_read_text(args->unsupported, &unsupported);
  if (code != CLI_OK) return code;
  tn_status status = plugin ? tn_context_load(context, plugin) : TN_OK;
  if (plugin && realpath(plugin, path)) plugin = path;
  if (status == TN_OK) status = tn_device_open(context, s.backend, (int32_t)args->device, s.options, &device);
  code = status == TN_OK ? conformance_run_device(device, args, plugin, unsupported, &s)
                         : cli_fail(args, context, status);
  tn_device_close(device);
  free(unsupported);
  return code;
}

const cli_command command_conformance = {.name = "conformance",
                                         .words = "[PLUGIN.so]",
                                         .doc = "compare a backend or plugin with the reference",
                                         .min_words = 0,
                                         .max_words = 1,
                                         .options = CLI_JSON | CLI_CONFORMANCE,
                                         .run = conformance_run};
