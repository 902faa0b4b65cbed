/* tools/doctor.c: `tenon doctor`: the backends and devices of this machine. */
#include <jansson.h>

#include "tools/cli.h"
#include "tenon/inspect.h"

static void doctor_print_backend(const json_t *backend) {
  const json_t *devices = json_object_get(backend, "devices");
  const char *reason = json_string_value(json_object_get(backend, "reason"));
  printf("backend    %s", json_string_value(json_object_get(backend, "name")));
  if (reason) printf(": not usable: %s", reason);
  printf("\n");
  for (size_t i = 0; i < json_array_size(devices); i++) {
    const json_t *one = json_array_get(devices, i);
    printf("  device %zu %s, %lld threads, %.0f MiB\n", i, json_string_value(json_object_get(one, "name")),
           json_integer_value(json_object_get(one, "threads")),
           json_number_value(json_object_get(one, "memory_mib")));
  }
}

static int doctor_run(tn_context *context, const cli_args *args) {
  char *text = NULL;
  tn_status status = tn_doctor(context, &text);
  if (status != TN_OK) return cli_fail(context, status);
  if (args->json) {
    printf("%s\n", text);
  } else {
    json_t *json = json_loads(text, 0, NULL), *backends = json_object_get(json, "backends");
    printf("tenon      %s, plugin interface %s\n", json_string_value(json_object_get(json, "version")),
           json_string_value(json_object_get(json, "abi")));
    printf("machine    %lld processors, %.0f MiB\n", json_integer_value(json_object_get(json, "processors")),
           json_number_value(json_object_get(json, "memory_mib")));
    for (size_t i = 0; i < json_array_size(backends); i++) doctor_print_backend(json_array_get(backends, i));
    json_decref(json);
  }
  tn_string_free(context, text);
  return CLI_OK;
}

const cli_command command_doctor = {
    .name = "doctor",
    .words = "",
    .doc = "devices and backends of this machine, and the reasons for unusable ones",
    .min_words = 0,
    .max_words = 0,
    .options = CLI_JSON,
    .run = doctor_run};
