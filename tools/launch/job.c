/* tools/launch/job.c: the program that processes run, and their variables. */
#include "tools/launch/launch.h"

static void job_add(const char **argv, int *n, const char *option, const char *value) {
  if (value == NULL) return;
  if (option != NULL) argv[(*n)++] = option;
  argv[(*n)++] = value;
}

/* A launch that starts again goes on from the last checkpoint. */
void launch_arguments(const launch *l, const char **argv) {
  const cli_args *a = l->args;
  int n = 0;
  job_add(argv, &n, l->program, "train");
  job_add(argv, &n, NULL, a->words[0]);
  for (int i = 0; i < a->n_set; i++) job_add(argv, &n, "--set", a->set[i]);
  for (int i = 0; i < a->n_plugins; i++) job_add(argv, &n, "--plugin", a->plugins[i]);
  job_add(argv, &n, "--resume", l->attempt > 0 ? "auto" : a->resume);
  job_add(argv, &n, "--output", a->output);
  job_add(argv, &n, "--weights", a->weights);
  job_add(argv, &n, "--trace", a->trace);
  job_add(argv, &n, NULL, a->json ? "--json" : NULL);
  job_add(argv, &n, NULL, a->quiet ? "--quiet" : NULL);
  job_add(argv, &n, NULL, a->verbose ? "--verbose" : NULL);
  argv[n] = NULL;
}

/* Other users see the command lines of a host, but not the variables of its processes. */
void launch_set_variables(const launch *l, const launch_host *host, launch_variables *v) {
  enum { BYTES = sizeof v->text[0] };
  snprintf(v->text[0], BYTES, "TENON_PROCESSES=%d", l->n);
  snprintf(v->text[1], BYTES, "TENON_LOCAL_PROCESSES=%d", host->processes);
  snprintf(v->text[2], BYTES, "MASTER_ADDR=%s", l->master);
  snprintf(v->text[3], BYTES, "MASTER_PORT=%d", l->port);
  snprintf(v->text[4], BYTES, "TENON_TOKEN=%s", l->token);
  for (int i = 0; i < LAUNCH_VARIABLES; i++) v->list[i] = v->text[i];
  v->list[LAUNCH_VARIABLES] = NULL;
}
