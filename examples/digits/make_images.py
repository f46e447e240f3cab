#!/usr/bin/env python3
"""Writes packed_images.hpp: scikit-learn's copy of optdigits, five bits a pixel.

usage: make_images.py [DIGITS.safetensors] > packed_images.hpp

Default: sklearn.datasets.load_digits (Debian: python3-sklearn). DIGITS.safetensors has byte tensors x[n, 8, 8] and y[n]. The last
360 images are the test set.
"""
import json
import pathlib
import struct
import sys

TEST = 360

HEADER = """\
// 8x8 gray-scale images of handwritten digits; pixels are 0 to 16. From "Optical Recognition of Handwritten
// Digits", E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, CC BY 4.0; see DATA.md.
// Written by make_images.py. An image is 320 bits, five a pixel, row by row, the lowest bit first.
#pragma once

#include <cstdint>

namespace digits {

struct PackedImage {
  std::uint32_t words[10];
};
"""


def from_file(path):
    """(images, labels) of a .safetensors file: a list of 64 pixels each, and a list of classes."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = json.loads(data[8:8 + size])

    def tensor(name):
        begin, end = tensors[name]["data_offsets"]
        return list(data[8 + size + begin:8 + size + end])

    pixels = tensor("x")
    return [pixels[i:i + 64] for i in range(0, len(pixels), 64)], tensor("y")


def from_sklearn():
    from sklearn.datasets import load_digits
    digits = load_digits()
    return [[int(pixel) for pixel in row] for row in digits.data], [int(label) for label in digits.target]


def packed(image):
    assert len(image) == 64 and all(0 <= pixel <= 16 for pixel in image)
    bits = sum(pixel << 5 * i for i, pixel in enumerate(image))
    return "{{" + ", ".join(f"0x{bits >> 32 * i & 0xFFFFFFFF:x}" for i in range(10)) + "}},"


def part(name, images, labels):
    """C++ of one part: its size, its images, and its classes as a text of digits."""
    text = "".join(map(str, labels))
    lines = [f'    "{text[i:i + 96]}"' for i in range(0, len(text), 96)]
    return (f"\ninline constexpr int k{name}Images = {len(images)};\n"
            f"inline constexpr PackedImage kPacked{name}[k{name}Images] = {{\n"
            + "".join(f"    {packed(image)}\n" for image in images) + "};\n"
            f"inline constexpr char k{name}Labels[] =\n" + "\n".join(lines) + ";\n")


def main():
    if "--help" in sys.argv:
        sys.exit(__doc__.strip())
    images, labels = from_file(sys.argv[1]) if len(sys.argv) > 1 else from_sklearn()
    assert len(images) == len(labels) and all(0 <= label <= 9 for label in labels)
    train = len(images) - TEST
    print(HEADER + part("Train", images[:train], labels[:train])
          + part("Test", images[train:], labels[train:]) + "\n}  // namespace digits")


main()
