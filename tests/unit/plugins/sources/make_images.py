#!/usr/bin/env python3
"""Writes files/images: small pictures of unusual kinds, and pixels.txt, their pixels as Pillow's convert("RGB") gives
them after ImageOps.exif_transpose, and the upper bytes of grey pictures of 16 bits: NAME HEIGHT WIDTH BOUND, then the planes in hexadecimal; and indices.txt, the
numbers of palettes. BOUND is the greatest
difference of a byte: the decoders of lossy formats, and their conversions of colours, are of several versions.
Needs Pillow and numpy; the test needs only the files."""
import io
import os
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files", "images")
os.makedirs(folder, exist_ok=True)
H, W = 5, 7
i = np.arange(H * W).reshape(H, W)
planes = [(i * 7 + 3) % 256, (i * 29 + i * i) % 256, (255 - i * 5) % 256, (i * 11 + 40) % 256]
rgb = np.stack(planes[:3], -1).astype(np.uint8)
rgba = np.stack(planes, -1).astype(np.uint8)
smooth = np.stack([i * 0 + 20 * np.arange(W), i * 0 + 30 * np.arange(H)[:, None], i * 0 + 128], -1).astype(np.uint8)
wide = (i * 1801 % 65536).astype(np.uint16)
grey = Image.fromarray(planes[1].astype(np.uint8))
lines = []


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def add(name, data, bound=0):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    picture = Image.open(io.BytesIO(data))
    picture.load()
    turned = ImageOps.exif_transpose(picture)
    if turned.mode == "I;16":  # convert("RGB") cuts them at 255, so that nearly all are white
        turned = Image.fromarray((np.asarray(turned) >> 8).astype(np.uint8))
    x = np.asarray(turned.convert("RGB")).transpose(2, 0, 1)
    lines.append(f"{name} {x.shape[1]} {x.shape[2]} {bound} {x.tobytes().hex()}\n")


def save(name, image, bound=0, **options):
    data = io.BytesIO()
    image.save(data, format={"jpg": "JPEG", "tif": "TIFF"}.get(name.split(".")[-1], name.split(".")[-1].upper()), **options)
    add(name, data.getvalue(), bound)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows, depth, color, more=b"", interlace=0):
    """A PNG of rows of bytes, without a filter."""
    head = struct.pack(">IIBBBBB", W, H, depth, color, 0, 0, interlace)
    data = b"".join(b"\0" + bytes(r) for r in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def interlaced(pixels):
    """Adam7 passes of pixels (H, W, channels)."""
    rows = []
    for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[y0::dy, x0::dx]
        rows += [r.tobytes() for r in part if r.size]
    return rows


palette = Image.fromarray(rgb).quantize(16)
save("palette.png", palette)
save("palette_alpha.png", palette, transparency=bytes(range(0, 160, 10)))
save("palette_one_transparent.png", palette, transparency=3)
save("rgba.png", Image.fromarray(rgba))
save("grey.png", grey)
save("grey_alpha.png", Image.fromarray(np.stack(planes[:2], -1).astype(np.uint8), "LA"))
save("bit.png", Image.fromarray(planes[1] > 128))
save("grey16.png", Image.fromarray(wide))
add("grey4.png", png([np.packbits(np.unpackbits(((i[y] * 5 % 16) << 4).astype(np.uint8)).reshape(-1, 8)[:, :4]) for y in range(H)], 4, 0))
add("rgb16.png", png([np.stack([wide[y], wide[y] ^ 0x5a5a, 65535 - wide[y]], -1).astype(">u2").tobytes() for y in range(H)], 16, 2))
add("rgba16.png", png([np.stack([wide[y], wide[y] ^ 0x5a5a, 65535 - wide[y], wide[y]], -1).astype(">u2").tobytes() for y in range(H)], 16, 6))
add("rgb_transparent_color.png", png([r.tobytes() for r in rgb], 8, 2, chunk(b"tRNS", struct.pack(">HHH", *map(int, rgb[2, 3])))))
add("interlaced.png", png(interlaced(rgb), 8, 2, interlace=1))
for turn in (1, 2, 3, 4, 5, 6, 7, 8):
    save(f"exif{turn}.png", Image.fromarray(rgb), exif=exif(turn))
save("grey.jpg", Image.fromarray(smooth[..., 0]), bound=1, quality=90)
save("cmyk.jpg", Image.fromarray(rgba, "CMYK"), bound=1, quality=95)
save("progressive.jpg", Image.fromarray(smooth), bound=1, quality=85, progressive=True)
save("progressive_grey.jpg", Image.fromarray(smooth[..., 0]), bound=1, quality=85, progressive=True)
save("small_colors.jpg", Image.fromarray(smooth), bound=1, quality=85, subsampling="4:2:0")
save("exif8.jpg", Image.fromarray(smooth), bound=1, quality=95, exif=exif(8))
save("lossless.webp", Image.fromarray(rgb), lossless=True)
save("lossless_alpha.webp", Image.fromarray(rgba), lossless=True, exact=True)
save("lossy.webp", Image.fromarray(smooth), bound=2, quality=80)
save("lossy_alpha.webp", Image.fromarray(np.dstack([smooth, planes[3].astype(np.uint8)])), bound=2, quality=80, exact=True)
save("exif5.webp", Image.fromarray(rgb), lossless=True, exif=exif(5))
save("rgb.tif", Image.fromarray(rgb))
save("lzw.tif", Image.fromarray(rgba), compression="tiff_lzw")
save("deflate_orientation.tif", Image.fromarray(rgb), compression="tiff_adobe_deflate", tiffinfo={274: 6})
save("packbits.tif", grey, compression="packbits")
save("grey_alpha.tif", Image.fromarray(np.stack(planes[:2], -1).astype(np.uint8), "LA"))
save("predictor.tif", Image.fromarray(rgb), compression="tiff_lzw", tiffinfo={317: 2})
save("bit_plain.tif", Image.fromarray(planes[1] > 128))
save("grey16.tif", Image.fromarray(wide))
save("cmyk.tif", Image.fromarray(rgba, "CMYK"))
save("palette.tif", palette)
save("bit.tif", Image.fromarray(planes[1] > 128), compression="group4")
save("jpeg.tif", Image.fromarray(smooth), bound=3, compression="jpeg", quality=90)
save("rgb.avif", Image.fromarray(smooth), bound=3, quality=95, subsampling="4:4:4")
save("alpha.avif", Image.fromarray(np.dstack([smooth, planes[3].astype(np.uint8)])), bound=3, quality=95, subsampling="4:4:4")
save("grey.avif", Image.fromarray(smooth[..., 0]), bound=3, quality=95)
save("exif6.avif", Image.fromarray(smooth), bound=3, quality=95, subsampling="4:4:4", exif=exif(6))
few = Image.fromarray((i % 3).astype(np.uint8), "P")
few.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
save("palette_bits.png", few, bits=2)
with open(os.path.join(folder, "indices.txt"), "w") as f:
    for name, image in (("palette.png", palette), ("palette_alpha.png", palette), ("palette_bits.png", few)):
        f.write(f"{name} {H} {W} {np.asarray(image).tobytes().hex()}\n")
with open(os.path.join(folder, "pixels.txt"), "w") as f:
    f.writelines(lines)
