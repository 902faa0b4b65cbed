/* plugins/observers/observers.h: the observers, for the descriptor. */
#pragma once

#include <stdio.h>

#include "tenon/plugin/observer.h"

/* The facts about a run, in about six lines of at most `columns` (0: 80) columns. */
void observer_print_banner(FILE *to, const tn_run_info *run, int columns);
