/* tools/launch/hosts.c: --hosts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch/launch.h"

/* This host is started on directly, without ssh. */
static bool hosts_is_here(const char *name) {
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  return strcmp(name, "localhost") == 0 || strcmp(name, own) == 0;
}

static int hosts_add(launch *l, const char *text, size_t length) {
  launch_host *host = &l->hosts[l->n_hosts];
  const char *colon = memchr(text, ':', length);
  size_t name = colon != NULL ? (size_t)(colon - text) : length;
  char *end = NULL;
  long processes = colon != NULL ? strtol(colon + 1, &end, 10) : 1;
  bool good = name > 0 && name < sizeof host->name && *text != '-' &&
              (colon == NULL || end == text + length) && processes >= 1 && processes <= LAUNCH_MOST;
  if (!good || l->n_hosts == LAUNCH_HOSTS)
    return cli_refuse(l->args, CLI_USAGE,
                      "--hosts: '%.*s', expected up to %d names such as a or a:4, with commas", (int)length,
                      text, LAUNCH_HOSTS);
  memcpy(host->name, text, name);
  host->name[name] = '\0';
  if (hosts_is_here(host->name)) host->name[0] = '\0';
  host->processes = (int)processes;
  l->n_hosts++;
  return CLI_OK;
}

static int hosts_count(const launch *l) {
  int n = 0;
  for (int i = 0; i < l->n_hosts; i++) n += l->hosts[i].processes;
  return n;
}

int launch_read_hosts(launch *l, const char *text, int processes) {
  if (text == NULL) {
    l->hosts[l->n_hosts++] = (launch_host){.processes = processes > 0 ? processes : 1};
    l->n = l->hosts[0].processes;
    return CLI_OK;
  }
  for (size_t length; *text != '\0'; text += length + (text[length] == ',')) {
    length = strcspn(text, ",");
    int code = hosts_add(l, text, length);
    if (code != CLI_OK) return code;
  }
  l->n = hosts_count(l);
  if (processes == 0 || processes == l->n) return CLI_OK;
  return cli_refuse(l->args, CLI_USAGE, "-n %d, but --hosts has room for %d processes; give one of both",
                    processes, l->n);
}
