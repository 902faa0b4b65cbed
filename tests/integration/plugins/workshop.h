/* tests/integration/plugins/workshop.h: what the author of a plugin has: an installed Tenon, a compiler, and
 * a folder to work in. Programs are run as from a shell, and what they say is kept. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

/* A temporary folder, which is the current one until it is removed. */
void workshop_open(void);
void workshop_close(void);
/* A file in it. */
void workshop_write(const char *name, const char *text);

/* Runs a shell's command line and returns its exit code. Its output is in workshop_out and workshop_err,
 * up to the next command. */
int workshop_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char workshop_out[1 << 20], workshop_err[1 << 16];

/* install.c: installs the build into the folder, for $TENON, pkg-config and the linker. */
void workshop_install(void);

/* Runs a command that has to succeed. */
void workshop_do(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What `tenon ARGUMENTS --json` prints; it has to succeed. The caller's (json_decref). */
json_t *workshop_tenon(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A number in a result, "train.loss". */
double workshop_number(const json_t *result, const char *path);
