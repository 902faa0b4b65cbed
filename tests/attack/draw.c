/* tests/attack/draw.c: the draws of an attack: SplitMix64 (Steele, Lea and Flood, Fast splittable
 * pseudorandom number generators, 2014), begun from family, seed and number. */
#include "tests/attack/attack.h"

static uint64_t draw_state;

static uint64_t draw_mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void attack_draw_from(const char *family, uint64_t seed, uint64_t number) {
  uint64_t z = draw_mix(seed + 0x9e3779b97f4a7c15u);
  for (const char *c = family; *c != '\0'; c++) z = draw_mix(z ^ (uint64_t)(unsigned char)*c);
  draw_state = draw_mix(z + number * 0x9e3779b97f4a7c15u);
}

uint64_t attack_draw(uint64_t most) { return draw_mix(draw_state += 0x9e3779b97f4a7c15u) % most; }

int attack_draw_between(int least, int most) {
  return least + (int)attack_draw((uint64_t)(most - least) + 1);
}
