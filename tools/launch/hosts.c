/* tools/launch/hosts.c: --hosts, the host of process 0, and hosts that are left out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch/launch.h"

/* ---- reading ---- */

/* This host is started on directly, without ssh. */
static bool hosts_is_here(const char *name) {
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  return strcmp(name, "localhost") == 0 || strcmp(name, own) == 0;
}

/* Names of this host become "". */
static bool hosts_read_name(launch_host *host, const char *text, size_t length) {
  if (length == 0 || length >= sizeof host->name || *text == '-') return false;
  memcpy(host->name, text, length);
  host->name[length] = '\0';
  if (hosts_is_here(host->name)) host->name[0] = '\0';
  return true;
}

/* A host that is named twice is one host with all these processes, or two of them would take one device. */
static bool hosts_add_to(launch *l, const launch_host *host) {
  int h = 0;
  while (h < l->n_hosts && strcmp(l->hosts[h].name, host->name) != 0) h++;
  if (h == LAUNCH_HOSTS) return false;
  if (h == l->n_hosts)
    l->hosts[l->n_hosts++] = *host;
  else
    l->hosts[h].processes += host->processes;
  return l->hosts[h].processes <= LAUNCH_MOST;
}

static int hosts_add(launch *l, const char *text, size_t length) {
  launch_host host = {.to = -1, .from = -1, .said.fd = -1};
  const char *colon = memchr(text, ':', length);
  char *end = NULL;
  long processes = colon != NULL ? strtol(colon + 1, &end, 10) : 1;
  bool good = hosts_read_name(&host, text, colon != NULL ? (size_t)(colon - text) : length) &&
              (colon == NULL || end == text + length) && processes >= 1 && processes <= LAUNCH_MOST;
  host.processes = good ? (int)processes : 0;
  if (good && hosts_add_to(l, &host)) return CLI_OK;
  return cli_refuse(l->args, CLI_USAGE,
                    "--hosts: '%.*s', expected up to %d names such as a or a:4, with commas, of at most %d "
                    "processes",
                    (int)length, text, LAUNCH_HOSTS, LAUNCH_MOST);
}

/* Numbers the processes, those of a host in a row. */
static void hosts_number(launch *l) {
  l->n = 0;
  for (int h = 0; h < l->n_hosts; h++) {
    l->hosts[h].first = l->n;
    l->n += l->hosts[h].processes;
  }
}

static int hosts_check(const launch *l, long long processes) {
  long long n = l->n_hosts > 0 ? l->n : processes;
  if (n > LAUNCH_MOST)
    return cli_refuse(l->args, CLI_USAGE, "%lld processes, expected at most %d", n, LAUNCH_MOST);
  if (processes == 0 || processes == n) return CLI_OK;
  return cli_refuse(l->args, CLI_USAGE, "-n %lld, but --hosts has room for %d processes; give one of both",
                    processes, l->n);
}

int launch_read_hosts(launch *l, const char *text, long long processes) {
  int code = CLI_OK;
  if (text != NULL && *text == '\0') code = hosts_add(l, text, 0);
  for (size_t length; code == CLI_OK && text != NULL && *text != '\0';
       text += length + (text[length] == ',')) {
    length = strcspn(text, ",");
    code = hosts_add(l, text, length);
  }
  hosts_number(l);
  if (code == CLI_OK) code = hosts_check(l, processes);
  if (code != CLI_OK || l->n_hosts > 0) return code;
  l->hosts[l->n_hosts++] =
      (launch_host){.processes = processes > 0 ? (int)processes : 1, .to = -1, .from = -1, .said.fd = -1};
  hosts_number(l);
  return CLI_OK;
}

/* ---- the host of process 0 ---- */

/* MASTER_PORT, where it is set. */
static int hosts_take_port(launch *l) {
  const char *text = getenv("MASTER_PORT");
  char *end = NULL;
  if (text == NULL || *text == '\0') return CLI_OK;
  long port = strtol(text, &end, 10);
  if (*end != '\0' || port < 1 || port > 65535 - 16)
    return cli_refuse(l->args, CLI_USAGE,
                      "the environment has MASTER_PORT=%s, expected a number from 1 to %d", text, 65535 - 16);
  l->port = (int)port;
  return CLI_OK;
}

/* "user@host" is a word for ssh: the others connect to the host. */
int launch_find_master(launch *l) {
  const char *host = l->hosts[0].name, *at = strrchr(host, '@'), *given = getenv("MASTER_ADDR");
  snprintf(l->master, sizeof l->master, "127.0.0.1");
  if (l->n_hosts == 1 && *host == '\0') return CLI_OK;
  snprintf(l->master, sizeof l->master, "%s", at != NULL ? at + 1 : host);
  if (*host == '\0') gethostname(l->master, sizeof l->master - 1);
  if (given != NULL && *given != '\0' && !l->first_is_out) snprintf(l->master, sizeof l->master, "%s", given);
  return hosts_take_port(l);
}

/* ---- hosts that are left out ---- */

static const char *hosts_reason(const launch *l, const launch_host *host, const char *before) {
  const char *name = host->name[0] != '\0' ? host->name : "localhost";
  if (host->unreached) return "is not reached by ssh,";
  return *before != '\0' && strcmp(before, name) == 0 && strcmp(l->crashed, name) == 0
             ? "had the first process that a signal ended, twice in a row,"
             : NULL;
}

void launch_drop_hosts(launch *l, const char *before) {
  int n = 0;
  for (int h = 0; h < l->n_hosts; h++) n += hosts_reason(l, &l->hosts[h], before) == NULL;
  if (n == 0 || n == l->n_hosts) return; /* all: the next attempt tells it again */
  n = 0;
  for (int h = 0; h < l->n_hosts; h++) {
    launch_host *host = &l->hosts[h];
    const char *reason = hosts_reason(l, host, before);
    if (reason == NULL) {
      l->hosts[n++] = *host;
      continue;
    }
    fprintf(stderr, "tenon: host %s %s and is left out\n", host->name[0] != '\0' ? host->name : "localhost",
            reason);
    l->first_is_out = l->first_is_out || h == 0;
  }
  l->n_hosts = n;
  hosts_number(l);
}
