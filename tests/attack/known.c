/* tests/attack/known.c: see known.h. */
#include "tests/attack/known.h"

const known_attack known_attacks[] = {{NULL, 0, 0, NULL}};
