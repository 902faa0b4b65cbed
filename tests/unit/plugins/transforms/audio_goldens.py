#!/usr/bin/env python3
"""Prints audio_goldens.h: spectrograms of librosa for the sound of audio_test.c. Needs librosa; the tests need
only the header."""
import librosa, numpy as np

N, RATE = 1000, 8000
t = np.arange(N)
sound = (np.sin(t * 0.3) * 0.5 + np.sin(t * t * 0.0011) * 0.25 + ((t * 7919) % 1000) / 5000.0 - 0.1).astype(np.float32)

def show(name, values):
    text = ", ".join(f"{float(v):.9g}f" if "." in f"{float(v):.9g}" or "e" in f"{float(v):.9g}" else f"{float(v):.1f}f"
                     for v in np.asarray(values).reshape(-1))
    print(f"static const float {name}[] = {{{text}}};")

def mel(**how):
    return librosa.feature.melspectrogram(y=sound, sr=RATE, **how)

print("/* tests/unit/plugins/transforms/audio_goldens.h: written by audio_goldens.py. */")
print("/* clang-format off */")
show("mel_slaney", mel(n_fft=256, hop_length=200, n_mels=8))
show("mel_htk", mel(n_fft=400, hop_length=160, win_length=320, n_mels=6, htk=True, norm=None, power=1.0,
                    fmin=100, fmax=3000, pad_mode="reflect"))
show("mel_db", librosa.power_to_db(mel(n_fft=250, hop_length=250, n_mels=8, center=False), top_db=30))
show("mfcc_db", librosa.feature.mfcc(S=librosa.power_to_db(mel(n_fft=256, hop_length=200, n_mels=12)), n_mfcc=5))
print("/* clang-format on */")
