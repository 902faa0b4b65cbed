/* tests/attack/known.h: attacks that have found a defect once, and are repeated in every campaign. */
#pragma once

#include "tests/attack/attack.h"

typedef struct known_attack {
  const char *family;
  uint64_t seed, number;
  const char *words; /* in its description: where a family has changed its draws, the entry is drawn anew */
} known_attack;

extern const known_attack known_attacks[]; /* ends with family = NULL */
