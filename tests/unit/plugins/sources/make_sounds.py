#!/usr/bin/env python3
"""Writes files/sounds: short sounds in the formats of libsndfile, and in numbers.h what Python's soundfile reads from them:
the mean of the channels of every sixteenth frame. Needs soundfile and numpy."""
import os

import numpy as np
import soundfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "files", "sounds")
os.makedirs(FOLDER, exist_ok=True)
RATE, FRAMES, STEP = 8000, 640, 16
time = np.arange(FRAMES) / RATE
left, right = 0.6 * np.sin(2 * np.pi * 440 * time), 0.3 * np.sin(2 * np.pi * 1000 * time)
FILES = [("mono.flac", left, "FLAC", "PCM_16"), ("stereo.flac", np.stack([left, right], 1), "FLAC", "PCM_24"),
         ("mono.ogg", left, "OGG", "VORBIS"), ("stereo.aiff", np.stack([left, right], 1), "AIFF", "PCM_16")]
with open(os.path.join(HERE, "sound_numbers.h"), "w") as out:
    out.write("/* Written by make_sounds.py. */\n#pragma once\n\n")
    out.write(f"enum {{ SOUND_RATE = {RATE}, SOUND_FRAMES = {FRAMES}, SOUND_STEP = {STEP} }};\n\n")
    out.write("static const struct {\n  const char *name;\n  double numbers[SOUND_FRAMES / SOUND_STEP];\n} sound_numbers[] = {\n")
    for name, samples, kind, subtype in FILES:
        path = os.path.join(FOLDER, name)
        soundfile.write(path, samples, RATE, format=kind, subtype=subtype)
        read, rate = soundfile.read(path, dtype="float32", always_2d=True)
        assert rate == RATE and len(read) == FRAMES
        numbers = ", ".join(f"{v:.9g}" if "." in f"{v:.9g}" or "e" in f"{v:.9g}" else f"{v:.1f}" for v in read.mean(1, dtype=np.float64)[::STEP])
        out.write(f'    {{"{name}",\n     {{{numbers}}}}},\n')
    out.write("};\n")
