/* tests/integration/processes/hosts.h: two hosts of this machine, as network namespaces that a pair of
 * virtual Ethernet devices joins. They belong to namespaces of the calling process, so they end with it and
 * its children, however these end, and nothing of the machine's own network is touched. */
#pragma once

#include <stdbool.h>

#define HOST_A "tenon-a" /* 192.0.2.1 */
#define HOST_B "tenon-b" /* 192.0.2.2 */

/* Moves this process, which must have one thread, into a network of its own and makes both hosts. NULL, or
 * the reason why this machine does not allow it: root or user namespaces, and the program `ip`, are needed.
 * Later calls repeat the first result. */
const char *hosts_make(void);

/* Moves this process to a host, with its name as that of the host. False: there is no such host, or the
 * system refuses. */
bool hosts_enter(const char *name);

/* Cuts or joins the hosts. False: `ip` has failed. */
bool hosts_join(bool joined);

/* Stands in for ssh and for mpirun's agent: the words before `--` are ignored, then come the host and the
 * words of a command for a shell. Returns ssh's exit code (stand_in.h). */
int hosts_ssh(int argc, char **argv);
