/* tests/integration/cli/terminal.h: runs the built program on a pseudo-terminal. */
#pragma once

#include <sys/types.h>

/* All bytes that the program printed. */
extern char terminal_output[1 << 20];

/* Starts the program on a new terminal with so many columns. This process keeps its end of the program, too.
 * The test is skipped where there are no pseudo-terminals. */
pid_t terminal_start(char *const *words, int columns, int *terminal, int *end);
/* Reads what the program prints, and returns its status (waitpid). After `resize_at` bars the window gets
 * `resized` columns; 0: it keeps its own. */
int terminal_read(pid_t child, int terminal, int end, int resize_at, int resized);
