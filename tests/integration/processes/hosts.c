/* tests/integration/processes/hosts.c: see hosts.h. */
#include "hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stand_in.h"

static char reason[512];

static const char *hosts_fail(const char *what) {
  snprintf(reason, sizeof reason, "%s: %s", what, strerror(errno));
  return reason;
}

static bool hosts_write(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
  if (file >= 0) close(file);
  return written;
}

/* ---- namespaces of this process ---- */

/* In a user namespace this user is root, and the program run by root takes plugins from folders of root only.
 */
static const char *hosts_become_root(void) {
  char users[64], groups[64];
  struct stat program;
  if (stat(TENON, &program) != 0 || program.st_uid != getuid())
    return "this user is not root, and the built program belongs to another one";
  snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
  snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
  if (unshare(CLONE_NEWUSER) != 0) return hosts_fail("neither root nor a user namespace (unshare)");
  bool mapped = hosts_write("/proc/self/setgroups", "deny") && hosts_write("/proc/self/uid_map", users) &&
                hosts_write("/proc/self/gid_map", groups);
  return mapped ? NULL : hosts_fail("the map of a user namespace");
}

/* /run/netns, where `ip` keeps the names of namespaces, and /etc/hosts are those of this process alone. */
static const char *hosts_own_files(void) {
  static const char names[] = "127.0.0.1 localhost\n192.0.2.1 " HOST_A "\n192.0.2.2 " HOST_B "\n";
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return hosts_fail("mounts of its own");
  if (mount("tenon", "/run", "tmpfs", 0, "mode=0755") != 0) return hosts_fail("a file system at /run");
  if (!hosts_write("/run/hosts", names)) return hosts_fail("/run/hosts");
  return mount("/run/hosts", "/etc/hosts", NULL, MS_BIND, NULL) == 0 ? NULL : hosts_fail("/etc/hosts");
}

static const char *hosts_unshare(void) {
  const char *failed = NULL;
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0) return hosts_own_files();
  if (errno != EPERM) return hosts_fail("unshare");
  failed = hosts_become_root();
  if (failed != NULL) return failed;
  return unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ? hosts_own_files() : hosts_fail("unshare");
}

/* ---- the network ---- */

static const char *hosts_run(const char *command) {
  char line[256];
  snprintf(line, sizeof line, "%s >/run/ip.txt 2>&1", command);
  int status = system(line);
  if (status == 0) return NULL;
  FILE *file = fopen("/run/ip.txt", "r");
  size_t n = (size_t)snprintf(reason, sizeof reason, "'%s' fails: ", command);
  if (file != NULL) n += fread(reason + n, 1, sizeof reason - n - 1, file);
  reason[n] = '\0';
  if (file != NULL) fclose(file);
  return reason;
}

static const char *hosts_connect(void) {
  static const char *const commands[] = {"ip link set lo up",
                                         "ip netns add " HOST_A,
                                         "ip netns add " HOST_B,
                                         "ip link add name veth-a netns " HOST_A
                                         " type veth peer name veth-b netns " HOST_B,
                                         "ip -n " HOST_A " addr add 192.0.2.1/24 dev veth-a",
                                         "ip -n " HOST_B " addr add 192.0.2.2/24 dev veth-b",
                                         "ip -n " HOST_A " link set lo up",
                                         "ip -n " HOST_B " link set lo up",
                                         "ip -n " HOST_A " link set veth-a up",
                                         "ip -n " HOST_B " link set veth-b up"};
  const char *failed = NULL;
  for (size_t i = 0; i < sizeof commands / sizeof *commands && failed == NULL; i++)
    failed = hosts_run(commands[i]);
  return failed;
}

const char *hosts_make(void) {
  static bool made;
  static const char *failed;
  if (made) return failed;
  made = true;
  failed = system("ip -V >/dev/null 2>&1") != 0 ? "there is no program `ip` (iproute2)" : hosts_unshare();
  if (failed == NULL) failed = hosts_connect();
  return failed;
}

bool hosts_join(bool joined) {
  return hosts_run(joined ? "ip -n " HOST_A " link set veth-a up"
                          : "ip -n " HOST_A " link set veth-a down") == NULL;
}

/* ---- processes ---- */

bool hosts_enter(const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  bool entered = file >= 0 && setns(file, CLONE_NEWNET) == 0 && unshare(CLONE_NEWUTS) == 0 &&
                 sethostname(name, strlen(name)) == 0;
  if (file >= 0) close(file);
  return entered;
}

int hosts_ssh(int argc, char **argv) {
  static char command[1 << 16];
  size_t n = 0;
  int at = 1;
  while (at < argc && argv[1][0] == '-' && strcmp(argv[at], "--") != 0) at++;
  if (at < argc && strcmp(argv[at], "--") == 0) at++;
  const char *host = at < argc ? argv[at] : "";
  for (at++; at < argc && n < sizeof command; at++)
    n += (size_t)snprintf(command + n, sizeof command - n, "%s ", argv[at]);
  if (hosts_enter(host)) return stand_in_run(command);
  fprintf(stderr, "host %s: %s\n", host, strerror(errno));
  return 255;
}
