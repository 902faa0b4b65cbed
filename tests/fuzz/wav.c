/* Sounds: WAV, and the formats of libsndfile. */
#include "plugins/sources/audio/sound.h"
#include "tests/fuzz/fuzz.h"

enum { FRAMES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static float mixed[FRAMES];
  fuzz f;
  sound s;
  fuzz_open(&f);
  tn_status status = sound_open(&f, "fuzz.wav", bytes, size, &s);
  fuzz_judge(&f, status);
  if (status == TN_OK)
    fuzz_judge(&f, sound_mix(&f, "fuzz.wav", &s, s.frames < FRAMES ? s.frames : FRAMES, mixed));
  sound_close(&f, &s);
  fuzz_close(&f);
  return 0;
}
