#!/usr/bin/env python3
"""Imports damaged models: every golden file of tests/golden/onnx cut at each 64th byte, and with a flipped bit in each 64 bytes.

    python3 tests/golden/damage_onnx.py BUILD

An import succeeds or is refused with a message; anything else ends the process. Of a build with AddressSanitizer the library of the
sanitizer is loaded first (LD_PRELOAD).
"""
import pathlib
import random
import sys
import tempfile

from tenon_library import Library, Refused

GOLDENS = pathlib.Path(__file__).parent / "onnx"


def damaged(whole):
    chance = random.Random(1)
    for at in range(0, len(whole), 64):
        yield whole[:at]
        flipped = bytearray(whole)
        flipped[min(at + chance.randrange(64), len(whole) - 1)] ^= 1 << chance.randrange(8)
        yield bytes(flipped)


def attempt(library, folder, content):
    (folder / "model.onnx").write_bytes(content)
    for name in ("model.ini", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)
    try:
        library.import_onnx(folder / "model.onnx", folder / "model.ini")
        return True
    except Refused as refusal:
        if not str(refusal) or any((folder / name).exists() for name in ("model.ini", "model.safetensors")):
            raise SystemExit(f"a refusal without a message, or one that leaves files: {refusal}")
        return False


def main():
    library, taken, refused = Library(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "outside.bin").write_bytes((GOLDENS / "outside.bin").read_bytes())
        for path in sorted(GOLDENS.glob("*.onnx")):
            for content in damaged(path.read_bytes()):
                if attempt(library, folder, content):
                    taken += 1
                else:
                    refused += 1
    print(f"{taken + refused} damaged files: {refused} refused, {taken} imported")
    return 0


if __name__ == "__main__":
    sys.exit(main())
