/* tests/integration/processes/stand_in.h: behaves as OpenSSH's client and server do with a command on another
 * host, for tests without a network. */
#pragma once

/* Runs a command by a shell as another host does: in a session and an environment of its own, in the folder
 * `/`. The bytes of stdin and stdout pass through this process. Returns the command's exit code, or 255 where
 * a signal has ended the command. A signal to this process ends it with 255, and is not passed on: the
 * command sees the end of its stdin, as it does where this process is killed. */
int stand_in_run(const char *command);

/* The same as a whole program, with ssh's arguments `[OPTION]... -- HOST COMMAND`. It appends HOST to the
 * file $STAND_IN_LOG. A host in $STAND_IN_REFUSES is not reached, and one in $STAND_IN_SLOW never is.
 * Words of a login script precede the output of the command. */
int stand_in_main(int argc, char **argv);
