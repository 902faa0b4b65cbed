/* tools/doctor.c: `tenon doctor`: this machine, its plugins, backends and devices, and missing parts. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tenon/inspect.h"

static void doctor_print_device(size_t index, const json_t *device) {
  printf("  device %zu %s, %lld threads, %.0f MiB, %.4g GB/s, %.4g GFLOP/s\n", index,
         json_string_value(json_object_get(device, "name")),
         json_integer_value(json_object_get(device, "threads")),
         json_number_value(json_object_get(device, "memory_bytes")) / 1048576.0,
         json_number_value(json_object_get(device, "bytes_per_s")) * 1e-9,
         json_number_value(json_object_get(device, "vector_flops_per_s")) * 1e-9);
}

static void doctor_print_library(const json_t *library) {
  const char *path = json_string_value(json_object_get(library, "path"));
  printf("  library  %s %s%s%s\n", json_string_value(json_object_get(library, "name")),
         json_string_value(json_object_get(library, "version")), path ? ", " : "", path ? path : "");
}

/* A row of the table, or the reason for its absence. */
static void doctor_print_memory(const json_t *memory) {
  const char *reason = json_string_value(json_object_get(memory, "reason"));
  printf("  device %-3lld", json_integer_value(json_object_get(memory, "device")));
  if (reason)
    printf(" unknown: %s\n", reason);
  else
    printf("%12.1f %12.1f %12.1f\n", json_number_value(json_object_get(memory, "device_mib")),
           json_number_value(json_object_get(memory, "taken_mib")),
           json_number_value(json_object_get(memory, "free_mib")));
}

static void doctor_print_memories(const json_t *memories) {
  if (json_array_size(memories) > 0)
    printf("  %-10s%12s %12s %12s   (taken: other processes, the driver, open libraries)\n", "MiB", "all",
           "taken", "for a run");
  for (size_t i = 0; i < json_array_size(memories); i++) doctor_print_memory(json_array_get(memories, i));
}

static void doctor_print_backend(const json_t *backend) {
  const json_t *devices = json_object_get(backend, "devices"),
               *libraries = json_object_get(backend, "libraries");
  const char *reason = json_string_value(json_object_get(backend, "reason"));
  printf("backend    %s", json_string_value(json_object_get(backend, "name")));
  if (reason) printf(": not usable");
  printf("\n");
  for (size_t i = 0; i < json_array_size(libraries); i++) doctor_print_library(json_array_get(libraries, i));
  for (size_t i = 0; i < json_array_size(devices); i++) doctor_print_device(i, json_array_get(devices, i));
  doctor_print_memories(json_object_get(backend, "memory"));
}

static void doctor_print_communicator(const json_t *communicator) {
  const json_t *libraries = json_object_get(communicator, "libraries");
  printf("communicator %s%s\n", json_string_value(json_object_get(communicator, "name")),
         json_object_get(communicator, "reason") != NULL ? ": not usable" : "");
  for (size_t i = 0; i < json_array_size(libraries); i++) doctor_print_library(json_array_get(libraries, i));
}

static void doctor_print_machine(const json_t *json) {
  const char *commit = cli_text(json, "commit");
  printf("tenon      %s%s%s%s, %s, plugin interface %s\n", cli_text(json, "version"), *commit ? " (" : "",
         commit, *commit ? ")" : "", cli_text(json, "compiler"), cli_text(json, "abi"));
  printf("machine    %s\n", cli_text(json, "system"));
  printf("processor  %s, %lld processors\n", cli_text(json, "processor"), cli_integer(json, "processors"));
  printf("isa        %s\n", cli_text(json, "instructions"));
  printf("memory     %.0f MiB, %.0f MiB free\n", cli_number(json, "memory_mib"),
         cli_number(json, "free_mib"));
}

static bool doctor_is_in(const char *file, const char *folder) {
  size_t n = strlen(folder);
  return strncmp(file, folder, n) == 0 && file[n] == '/';
}

/* The plugin folders with their number of plugins, and the plugins that lie elsewhere. */
static void doctor_print_plugins(const json_t *json) {
  const json_t *folders = json_object_get(json, "folders"), *plugins = json_object_get(json, "plugins");
  for (size_t i = 0; i < json_array_size(folders); i++) {
    const char *folder = json_string_value(json_array_get(folders, i));
    int n = 0;
    for (size_t k = 0; k < json_array_size(plugins); k++)
      n += doctor_is_in(cli_text(json_array_get(plugins, k), "file"), folder);
    printf("plugins    %s: %d file%s\n", folder, n, n == 1 ? "" : "s");
  }
  for (size_t k = 0; k < json_array_size(plugins); k++) {
    const json_t *one = json_array_get(plugins, k);
    bool inside = false;
    for (size_t i = 0; i < json_array_size(folders); i++)
      inside = inside || doctor_is_in(cli_text(one, "file"), json_string_value(json_array_get(folders, i)));
    if (!inside && cli_text(one, "name") != NULL)
      printf("plugin     %s %s, %s\n", cli_text(one, "name"), cli_text(one, "version"),
             cli_text(one, "file"));
  }
}

static void doctor_print_missing(const json_t *missing) {
  for (size_t i = 0; i < json_array_size(missing); i++) {
    const json_t *one = json_array_get(missing, i);
    printf("missing    %s: %s\n", cli_text(one, "name"), cli_text(one, "reason"));
  }
  if (json_array_size(missing) == 0) printf("missing    nothing\n");
}

static void doctor_print_json(const json_t *json) {
  char *text = json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
  printf("%s\n", text);
  free(text);
}

static void doctor_print(const json_t *json) {
  const json_t *backends = json_object_get(json, "backends"),
               *communicators = json_object_get(json, "communicators");
  doctor_print_machine(json);
  doctor_print_plugins(json);
  for (size_t i = 0; i < json_array_size(backends); i++) doctor_print_backend(json_array_get(backends, i));
  for (size_t i = 0; i < json_array_size(communicators); i++)
    doctor_print_communicator(json_array_get(communicators, i));
  doctor_print_missing(json_object_get(json, "missing"));
  cli_print_memory_table(json);
}

/* ---- a configuration ---- */

/* The memory that a configuration takes, added to the result. */
static int doctor_add_configuration(tn_context *context, const cli_args *args, json_t *json) {
  tn_run *run = NULL;
  char *text = NULL;
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_memory(run, NULL, &text, NULL);
  if (status == TN_OK) json_object_set_new(json, "memory_table", cli_load_plain(text));
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, text);
  tn_run_close(run);
  return code;
}

static bool doctor_is_configuration(const cli_args *args) {
  size_t n = args->n_words > 0 ? strlen(args->words[0]) : 0;
  return n > 4 && strcmp(args->words[0] + n - 4, ".ini") == 0;
}

/* Prints device 0 of the backend, or of the first backend that has a device where none is named. */
static int doctor_print_device_json(const cli_args *args, const json_t *json) {
  const char *wanted = args->n_words ? args->words[0] : NULL;
  const json_t *backends = json_object_get(json, "backends");
  for (size_t i = 0; i < json_array_size(backends); i++) {
    const json_t *backend = json_array_get(backends, i);
    const json_t *device = json_array_get(json_object_get(backend, "devices"), 0);
    if (device == NULL ||
        (wanted && strcmp(json_string_value(json_object_get(backend, "name")), wanted) != 0))
      continue;
    char *text = json_dumps(device, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    printf("%s\n", text);
    free(text);
    return CLI_OK;
  }
  return cli_refuse(args, CLI_UNAVAILABLE, "backend '%s' has no device here; `tenon doctor` lists them",
                    wanted ? wanted : "any");
}

static int doctor_run(tn_context *context, const cli_args *args) {
  char *text = NULL;
  tn_status status = tn_doctor(context, &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *json = cli_load_plain(text);
  int code = doctor_is_configuration(args) ? doctor_add_configuration(context, args, json) : CLI_OK;
  if (code == CLI_OK && args->device_json)
    code = doctor_print_device_json(args, json);
  else if (code == CLI_OK && args->json)
    doctor_print_json(json);
  else if (code == CLI_OK)
    doctor_print(json);
  json_decref(json);
  tn_string_free(context, text);
  return code;
}

const cli_command command_doctor = {.name = "doctor",
                                    .words = "[BACKEND|FILE.ini]",
                                    .doc =
                                        "this machine: instruction sets, memory, plugins, backends with "
                                        "libraries and devices, and missing parts; the memory that FILE.ini "
                                        "takes",
                                    .min_words = 0,
                                    .max_words = 1,
                                    .options = CLI_JSON | CLI_DOCTOR | CLI_SET,
                                    .run = doctor_run};
