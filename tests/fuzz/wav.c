/* WAV files. */
#include "plugins/sources/audio/wav.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  wav sound;
  fuzz_open(&f);
  tn_status status = wav_find(&f, "fuzz.wav", bytes, size, &sound);
  fuzz_judge(&f, status);
  for (int64_t i = 0; status == TN_OK && i < sound.frames; i++) {
    float number;
    wav_mix(&sound, i, 1, &number);
  }
  fuzz_close(&f);
  return 0;
}
