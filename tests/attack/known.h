/* tests/attack/known.h: attacks that have found a defect once, and are repeated in every campaign. */
#pragma once

#include "tests/attack/attack.h"

typedef struct known_attack {
  const char *family;
  uint64_t seed, number;
  const char *words;  /* in its description: where a family has changed its draws, the entry is drawn anew */
  const char *target; /* attack_target; NULL: it is drawn */
} known_attack;

extern const known_attack known_attacks[]; /* ends with family = NULL */

/* NULL: it is not known. */
const known_attack *known_attack_find(const char *family, uint64_t seed, uint64_t number);
